"""Arguments, results and the caller's state on their way to a store and back: sealed, or not kept.

For showing, arguments are kept apart: redacted by the schema (`writeOnly`, `format: password`), by
fields that were listed, and whole for a sensitive tool. Without a key only what is shown is kept.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from seawall.contract.approval import payload
from seawall.contract.result import ToolResult
from seawall.orchestration.approvals.binding import SALT_BYTES, digest_of
from seawall.pipeline.arguments.faults.explain import (
    ALL_THERE_IS,
    FOR_PERSON,
    HIDDEN,
    Redaction,
)
from seawall.pipeline.foreign import guarded
from seawall.pipeline.visible import visible_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seawall.contract.tool import Tool
    from seawall.orchestration.approvals.store import Box

SALT = "salt"
STATE = "state"
AS_KEPT = b"="
"""Says that all that may be seen is what is kept to be run."""
CUT = "~"
"""Before what is not all, long as it is."""
LAID_OUT = 50_000
"""Characters of JSON that is laid out for a reader."""
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
        shown, whole = shown_arguments(tool, arguments, hidden)
        self._put(payload(position, "shown"), shown.encode())
        if self.is_sealed:
            self._put(payload(position, "arguments"), json.dumps(arguments).encode())
        if whole is not None:
            as_kept = whole.is_all_kept and self.is_sealed
            self._put(payload(position, "whole"), AS_KEPT if as_kept else whole.text().encode())

    def _put(self, name: str, plain: bytes) -> None:
        self.sealed[name] = self.closed(name, plain)

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

    def is_cut(self, position: int) -> bool:
        """Whether that leaves out something that is no secret."""
        return payload(position, "whole") in self.sealed

    def whole(self, position: int) -> tuple[str, bool]:
        """Give arguments as a person may see them, all of them; whether even so they are cut."""
        name = payload(position, "whole")
        if name not in self.sealed:
            return self.shown(position), False
        text = self._text(name)
        if text == AS_KEPT.decode():
            return visible_json(_laid_out(self._text(payload(position, "arguments")))), False
        return visible_json(text.removeprefix(CUT)), text.startswith(CUT)

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


class Whole(NamedTuple):
    """Arguments of which a person is shown a part first."""

    redaction: Redaction
    arguments: dict[str, Any]
    is_all_kept: bool
    """Whether nothing of them is to be hidden."""

    def text(self) -> str:
        """Write all that may be seen, without what each level of them would take on paper."""
        if self.is_all_kept:
            return json.dumps(self.arguments, ensure_ascii=False)
        shown = self.redaction.shown(self.arguments, ALL_THERE_IS)
        return f"{CUT}{shown.text}" if shown.is_cut else shown.text


def shown_arguments(
    tool: Tool, arguments: dict[str, Any], hidden: Sequence[str]
) -> tuple[str, Whole | None]:
    """Write arguments for whoever decides, without secrets: bounded, and all if that left any out.

    What the tool declares comes first, so that nothing that it takes is behind what it does not.
    """
    if tool.annotations.sensitive:
        names_alone, redaction = dict.fromkeys(arguments, HIDDEN), Redaction({"type": "object"})
        return _parted(redaction, names_alone, is_hidden=True)
    names = frozenset(name.casefold() for name in hidden)
    seen = _without(arguments, names) if names else arguments
    declared = tool.input_schema.get("properties")
    first = declared if isinstance(declared, Mapping) else {}
    ordered = {key: seen[key] for key in (*(key for key in first if key in seen), *seen)}
    return _parted(Redaction(tool.input_schema), ordered, is_hidden=bool(names))


def _parted(
    redaction: Redaction, arguments: dict[str, Any], *, is_hidden: bool
) -> tuple[str, Whole | None]:
    shown = redaction.shown(arguments, FOR_PERSON)
    is_all_kept = not (is_hidden or shown.has_secrets)
    return shown.text, Whole(redaction, arguments, is_all_kept) if shown.is_cut else None


def _laid_out(text: str) -> str:
    """Write JSON for a reader, unless the levels of it would take too much."""
    found = json.loads(text) if text.startswith("{") else None
    if found is None:
        return text  # that it cannot be read
    return json.dumps(found, ensure_ascii=False, indent=2 if len(text) <= LAID_OUT else None)


def _without(value: Any, names: frozenset[str]) -> Any:
    if isinstance(value, dict):
        return {
            key: HIDDEN if key.casefold() in names else _without(item, names)
            for key, item in value.items()
        }
    return [_without(item, names) for item in value] if isinstance(value, list) else value
