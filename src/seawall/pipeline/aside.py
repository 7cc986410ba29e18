"""What turns and hooks keep about a call, beside what every call has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
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
    """Something that hooks can end: a turn."""

    def end(self, status: TurnStatus, reason: str) -> None:
        """Begin nothing more; the first who says so gives the reason."""
        ...


class Pausing(Protocol):
    """A limit that can stand still."""

    def pause(self) -> None:
        """Let no time pass."""
        ...

    def resume(self) -> None:
        """Go on, with as much time left as there was."""
        ...


class Aside:
    """What turns and hooks keep about a call; most calls have none."""

    __slots__ = ("limit", "messages", "seen", "signature", "turn", "turnstile")

    def __init__(self) -> None:
        self.turn: Ending | None = None
        """The turn it belongs to."""
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

    def shared(self) -> Aside:
        """What a call that this call's tool makes shares with it."""
        aside = Aside()
        aside.turn = self.turn
        aside.messages = self.messages
        return aside
