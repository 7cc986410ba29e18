"""Arguments, results and the caller's state on their way to a store and back: sealed, or not kept.

For showing, arguments are kept apart: redacted by the schema (`writeOnly`, `format: password`), by
fields that were listed, and whole for a sensitive tool. Without a key only what is shown is kept.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import msgspec

from seawall.contract.approval import payload
from seawall.contract.result import ToolResult
from seawall.orchestration.approvals.binding import SALT_BYTES, digest_of
from seawall.pipeline.arguments.faults.explain import HIDDEN, show
from seawall.pipeline.foreign import guarded
from seawall.pipeline.visible import visible_json

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from seawall.contract.tool import Tool
    from seawall.orchestration.approvals.store import Box

SALT = "salt"
STATE = "state"
_UNREADABLE = b"(cannot be read: it was changed, or needs another key)"


class Envelope:
    """What is kept beside one record, under the names of `payload`."""

    def __init__(
        self, batch_id: str, box: Box | None, sealed: Mapping[str, bytes] | None = None
    ) -> None:
        self._id = batch_id
        self._box = box
        self.sealed: dict[str, bytes] = dict(sealed or {})
        self._salt = b""

    @classmethod
    def new(cls, batch_id: str, box: Box | None, salt: str) -> Envelope:
        """Begin one; `salt` is fresh chance, in hexadecimal."""
        envelope = cls(batch_id, box)
        envelope._salt = bytes.fromhex(salt)[:SALT_BYTES]
        # Whoever could read it may try arguments against the digest: see `digest_of`.
        envelope.sealed[SALT] = envelope.closed(SALT, envelope._salt)
        return envelope

    @property
    def is_sealed(self) -> bool:
        """Whether there is a key."""
        return self._box is not None

    def closed(self, name: str, plain: bytes) -> bytes:
        """Seal for this record; as it is, if there is no key."""
        if self._box is None:
            return plain
        return self._box.close(plain, f"approvals:{self._id}:{name}")

    def _opened(self, name: str) -> bytes | None:
        sealed = self.sealed.get(name)
        if sealed is None or self._box is None:
            return sealed
        return self._box.open(sealed, f"approvals:{self._id}:{name}")

    def digest(self, tool: str, arguments: Any) -> str:
        """Digest arguments as this record has it."""
        salt = self._salt or self._opened(SALT) or b""
        return digest_of(tool, arguments, salt, guessable=not self.is_sealed)

    def put_arguments(
        self, position: int, tool: Tool, arguments: dict[str, Any], hidden: Sequence[str]
    ) -> None:
        """Keep arguments: redacted for showing, and all of them if there is a key."""
        shown = payload(position, "shown")
        self.sealed[shown] = self.closed(shown, shown_arguments(tool, arguments, hidden).encode())
        if self.is_sealed:
            name = payload(position, "arguments")
            self.sealed[name] = self.closed(name, json.dumps(arguments).encode())

    def put_reason(self, position: int, reason: str) -> None:
        """Keep why a person is asked: a rule of somebody's own may say arguments in it."""
        name = payload(position, "reason")
        self.sealed[name] = self.closed(name, reason.encode("utf-8", "replace"))

    def reason(self, position: int) -> str:
        """Give why a person is asked."""
        return self._text(payload(position, "reason"))

    def arguments(self, position: int) -> dict[str, Any] | None:
        """Give all arguments, or None if they were not kept."""
        if not self.is_sealed:
            return None
        text = self._opened(payload(position, "arguments"))
        found: dict[str, Any] | None = None
        if text is not None:
            found = json.loads(text)
        return found

    def shown(self, position: int) -> str:
        """Give arguments as a person may see them, and sees them all."""
        return visible_json(self._text(payload(position, "shown")))

    def _text(self, name: str) -> str:
        """Give a text for a person; that it cannot be read, where that is so."""
        found = guarded(f"{name} of {self._id}", lambda: self._opened(name), lambda _: _UNREADABLE)
        return (found or b"").decode("utf-8", "replace")

    def put_state(self, state: Any) -> None:
        """Keep what the caller gave to go on with; without a key it is not kept."""
        if state is not None and self.is_sealed:
            self.sealed[STATE] = self.closed(STATE, encoded_state(state))

    def state(self) -> Any:
        """Give it back."""
        if not self.is_sealed:
            return None
        text = guarded(f"state of {self._id}", lambda: self._opened(STATE), lambda _: None)
        return None if text is None else msgspec.json.decode(text)

    def put_result(self, position: int, what: str, result: ToolResult) -> dict[str, bytes]:
        """Keep a result, `result` or `refusal`; gives it sealed, to be stored. None without a key.

        A refusal of Seawall's own says nothing of arguments that are in order, but one about
        arguments that are not may: it is treated like any other.
        """
        if not self.is_sealed:
            return {}
        name = payload(position, what)
        sealed = self.closed(name, _encoded(result))
        self.sealed[name] = sealed
        return {name: sealed}

    def result(self, position: int, what: str) -> ToolResult | None:
        """Give a result, or None if it was not kept."""
        text = self._opened(payload(position, what)) if self.is_sealed else None
        return None if text is None else msgspec.json.decode(text, type=ToolResult)


def encoded_state(state: Any) -> bytes:
    """Write the caller's state; raises `TypeError` if it is no JSON."""
    return msgspec.json.encode(state)


def _encoded(result: ToolResult) -> bytes:
    return msgspec.json.encode(result, enc_hook=_named)


def _named(value: Any) -> str:
    """Stand in for what is no JSON; only `details`, `usage` and `metadata` may have such."""
    return f"<{type(value).__name__}>"


def shown_arguments(tool: Tool, arguments: dict[str, Any], hidden: Sequence[str]) -> str:
    """Write arguments for whoever decides: bounded, without secrets."""
    if tool.annotations.sensitive:
        return show(dict.fromkeys(arguments, HIDDEN), {"type": "object"})
    names = frozenset(name.casefold() for name in hidden)
    return show(_without(arguments, names) if names else arguments, tool.input_schema)


def _without(value: Any, names: frozenset[str]) -> Any:
    if isinstance(value, dict):
        return {
            key: HIDDEN if key.casefold() in names else _without(item, names)
            for key, item in value.items()
        }
    return [_without(item, names) for item in value] if isinstance(value, list) else value
