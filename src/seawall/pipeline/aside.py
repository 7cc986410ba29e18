"""What turns and hooks keep about a call, beside what every call has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from seawall.contract.decision import Decision
    from seawall.contract.result import ToolResult
    from seawall.contract.span import Digest
    from seawall.contract.turn import TurnStatus


class Turnstile(Protocol):
    """Lets one call of a turn through, when it is time."""

    async def enter(self) -> ToolResult | None:
        """Wait to be let through; a refusal if the turn has ended."""
        ...

    def leave(self) -> None:
        """Make room for the next."""
        ...


class Ending(Protocol):
    """Something that hooks can end: a turn, or what stands for one."""

    @property
    def ended(self) -> tuple[TurnStatus, str] | None:
        """How it was ended, and why; None while calls of it may begin."""
        ...

    def end(self, status: TurnStatus, reason: str) -> None:
        """Begin nothing more; the first who says so gives the reason."""
        ...

    async def wait_for_answer(self, call: Any, decision: Decision) -> ToolResult | None:
        """Have the whole turn wait for a person; None if it cannot."""
        ...


class Pausing(Protocol):
    """A limit that can stand still."""

    def pause(self) -> None:
        """Let no time pass."""
        ...

    def resume(self) -> None:
        """Go on, with as much time left as there was."""
        ...


class Alone:
    """What hooks end where there is no turn: a call with all that its tool calls, or a batch."""

    __slots__ = ("ended",)

    def __init__(self) -> None:
        self.ended: tuple[TurnStatus, str] | None = None

    def end(self, status: TurnStatus, reason: str) -> None:
        """Begin nothing more; the first who says so gives the reason."""
        self.ended = self.ended or (status, reason)


class Aside:
    """What turns and hooks keep about a call; most calls have none."""

    __slots__ = (
        "carry",
        "handed_on",
        "limit",
        "messages",
        "on_lost",
        "resumed",
        "seen",
        "signature",
        "turn",
        "turnstile",
    )

    def __init__(self) -> None:
        self.turn: Ending | Alone | None = None
        """The turn it belongs to, or what stands for one; None for a call that calls nothing."""
        self.turnstile: Turnstile | None = None
        """Holds it until the gates of its turn are passed."""
        self.limit: Pausing | None = None
        """The deadline of the call, which stands still while the turn holds it."""
        self.messages: list[Any] = []
        """Injected by hooks; nested calls share the list of the outermost."""
        self.signature: Digest | None = None
        """Digest of what the model asked for, where a hook changed it."""
        self.seen: int | None = None
        """What the loop detector keeps of it: a fingerprint of the call with its result."""
        self.resumed = False
        """Whether a person approved it before: hooks have seen it then, and it waits no more."""
        self.carry: Any = None
        """The caller's own state, kept with an approval of this call."""
        self.handed_on = False
        """Whether another tool was called in its place, which may have had an effect."""
        self.on_lost: Callable[[], object] | None = None
        """Takes back what waits because of this call, if its caller is not told that it does."""

    def lost(self) -> None:
        """The caller is not told what came of the call."""
        on_lost, self.on_lost = self.on_lost, None
        if on_lost is not None:
            on_lost()

    @property
    def alone(self) -> Alone | None:
        """What stands for its turn, if it belongs to none."""
        return self.turn if isinstance(self.turn, Alone) else None

    def shared(self) -> Aside:
        """What a call that this call's tool makes shares with it."""
        if self.turn is None:
            self.turn = Alone()
        aside = Aside()
        aside.turn = self.turn
        aside.messages = self.messages
        return aside
