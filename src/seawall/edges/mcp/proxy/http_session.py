"""What is known of one session that clients have with a server over HTTP."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Protocol

from seawall.edges.mcp.proxy.messages import key_of
from seawall.orchestration.progress import Pace

if TYPE_CHECKING:
    from seawall.edges.mcp.proxy.client import Client
    from seawall.edges.mcp.proxy.exchange import Exchange
    from seawall.edges.mcp.proxy.guard import Guard
    from seawall.edges.mcp.proxy.messages import Message

MAX_KEPT_ANSWERS = 64
"""Answers of one session kept for a client that comes back for them."""


class Call(Protocol):
    """A call under way."""

    @property
    def exchange(self) -> Exchange:
        """What was asked."""
        ...

    async def answered_elsewhere(self, message: Message) -> bytes:
        """Take the answer from another stream; gives what the client gets there."""
        ...


class HttpSession:
    """What is known of one session of the server's, or of clients without one."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.of_others = Pace()
        """How much progress is told that is of no call under way."""
        self.calls: dict[Any, Call] = {}
        """Calls under way, by the client's id."""
        self.awaited: dict[Any, Call] = {}
        """Calls whose stream was closed before their answer, by the id the server knows."""
        self.kept: OrderedDict[Any, bytes] = OrderedDict()
        """Answers that nobody was there to take."""
        self.held: dict[Any, tuple[Call, ...]] = {}

    def keep(self, attempt_id: Any, answer: bytes) -> None:
        """Keep an answer for a client that comes back."""
        self.kept[key_of(attempt_id)] = answer
        while len(self.kept) > MAX_KEPT_ANSWERS:
            self.kept.popitem(last=False)

    def is_of_a_call(self, key: Any) -> bool:
        """Whether an answer of this id is one to a call under way, which is given by its guard."""
        exchanges = [call.exchange for call in self.calls.values()]
        return any(key in (key_of(one.id), key_of(one.attempt_id)) for one in exchanges)

    def hold(self, message: Message, guard: Guard) -> None:
        """The server asks the client something: no call is given up for silence meanwhile."""
        held = tuple(self.calls.values())
        self.held[key_of(message.envelope.id)] = held
        for call in held:
            call.exchange.hold(guard.clock)

    def release(self, request_id: Any) -> None:
        """The client answered."""
        for call in self.held.pop(key_of(request_id), ()):
            call.exchange.release()
