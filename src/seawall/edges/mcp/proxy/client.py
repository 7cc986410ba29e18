"""What the proxy knows of one client: what it can do, what it was shown, what it was asked."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import msgspec

from seawall.edges.mcp.proxy.messages import CAPABILITIES_KEY, OWN, VERSION_KEY, decoded
from seawall.pipeline.session import Session

if TYPE_CHECKING:
    from collections.abc import Mapping

    from seawall.edges.mcp.proxy.messages import Message
    from seawall.pipeline.chance import Chance


class Client:
    """One client: of a pipe, of an HTTP session, or those that come without a session."""

    def __init__(self, chance: Chance, *, stateless: bool = False, shared: bool = False) -> None:
        self.stateless = stateless
        """It keeps no session: nothing may be remembered from one call to the next."""
        self._shared = shared or stateless
        self.session = Session(chance.token(8))
        self.capabilities: Mapping[str, Any] = {}
        self.names: set[str] = set()
        """Tools that its server session has listed; no others are hinted at."""
        self.listed_at: float | None = None
        """When all its tools were listed last; None if that is to be done before the next call."""
        self._prefix = f"{OWN}{chance.token(6)}-"
        # Its server is told ids of the former kind, and must not be able to ask under these.
        self._questions = f"{OWN}{chance.token(12)}-"
        self._count = 0
        self._asked: dict[str, asyncio.Future[dict[str, Any]]] = {}

    def initialized(self, params: Mapping[str, Any]) -> None:
        """Keep what `initialize` says that the client can do."""
        found = params.get("capabilities")
        self.capabilities = found if isinstance(found, dict) else {}

    def session_for_call(self, chance: Chance) -> Session:
        """Give the session of a call: one of its own where clients may be several."""
        return Session(chance.token(8)) if self._shared else self.session

    def new_id(self) -> str:
        """Make an id that neither the client nor its server uses."""
        self._count += 1
        return f"{self._prefix}{self._count}"

    def new_question(self) -> str:
        """Make an id for a question to the client; its server cannot foretell it."""
        self._count += 1
        return f"{self._questions}{self._count}"

    def new_token(self) -> str:
        """Make a progress token for a call whose client wants to hear of no progress."""
        self._count += 1
        return f"{self._prefix}token-{self._count}"

    def made_token(self, token: Any) -> bool:
        """Whether a token is one of those."""
        return isinstance(token, str) and token.startswith(f"{self._prefix}token-")

    def ask(self, request_id: str) -> asyncio.Future[dict[str, Any]]:
        """Wait for the answer to a request of the proxy's own."""
        future: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._asked[request_id] = future
        future.add_done_callback(lambda _: self._asked.pop(request_id, None))
        return future

    def answered(self, message: Message) -> bool:
        """Take the answer to a request of the proxy's own; false if it is somebody else's."""
        request_id = message.envelope.id
        if not isinstance(request_id, str) or not request_id.startswith(self._questions):
            return False
        future = self._asked.get(request_id)
        if future is not None and not future.done():
            future.set_result(_result_of(message))
        return True


def _result_of(message: Message) -> dict[str, Any]:
    found = message.envelope.result
    if found is msgspec.UNSET:
        return {}
    try:
        result = decoded(found)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return {}
    return result if isinstance(result, dict) else {}


def is_stateless(meta: Mapping[str, Any]) -> bool:
    """Whether a request carries its revision with it, as those without sessions do."""
    return isinstance(meta.get(VERSION_KEY), str)


def capabilities_in(meta: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a request without a session says that its client can do."""
    found = meta.get(CAPABILITIES_KEY)
    return found if isinstance(found, dict) else {}


def can_be_asked(capabilities: Mapping[str, Any]) -> bool:
    """Whether the client can put a form before a person; a bare capability means forms."""
    elicitation = capabilities.get("elicitation")
    if not isinstance(elicitation, dict):
        return False
    return not elicitation or "form" in elicitation
