"""What a session gave its tools when a person was asked: it is part of what was approved.

A tool may do by its session's state what its arguments do not say, such as whose table it wipes.
The state itself is not kept with a request, but a keyed digest of it: where nobody holds the
session any more, one with the same state has to be given.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import PurePath
from typing import TYPE_CHECKING, Any
from uuid import UUID

import msgspec

from seawall.orchestration.approvals.binding import same_digest
from seawall.pipeline.foreign import guarded
from seawall.pipeline.plain import MAX_DEPTH, Plain

if TYPE_CHECKING:
    from seawall.contract.approval import Frozen
    from seawall.orchestration.approvals.kept import Envelope
    from seawall.pipeline.session import Session

NAME = "the state of a session"
"""Stands where the digest of arguments has the name of a tool."""

_CANNOT = "not comparable: "
"""Stands before the type of a value that another process cannot have the same of."""

_AS_TEXT = (date, datetime, time, timedelta, Decimal, PurePath, UUID, bytes)

_GIVE_IT = "give `session=` to `resume`, with"


def digest_of_state(session: Session, envelope: Envelope) -> str:
    """Digest what the tools of a session see as its state; empty if that is nothing."""
    if not session.state:
        return ""
    told = _Told()
    plain = guarded(
        f"the state of session {session.id!r} cannot be written down",
        lambda: told.of(session.state),
        lambda _: None,
    )
    if plain is None or told.odd:
        return f"{_CANNOT}{told.odd or 'a value that fails'}"
    # As text, so that 1 and 1.0 are two, and "1" is neither.
    return envelope.digest(NAME, json.dumps(plain, sort_keys=True))


def unlike(
    frozen: Frozen, envelope: Envelope, session: Session, asked: Session | None
) -> str | None:
    """Say why what a session gives its tools is not what it was; None if it is.

    `asked` is the session that made the request, if this process still holds it.
    """
    if session is asked:
        return None
    return _other_state(frozen, envelope, session, asked) or _fewer_services(frozen, session)


def _other_state(
    frozen: Frozen, envelope: Envelope, session: Session, asked: Session | None
) -> str | None:
    before = frozen.session_state
    if asked is not None and session.state is asked.state:
        return None
    if before.startswith(_CANNOT):
        kind = before.removeprefix(_CANNOT)
        return (
            f"the state of its session holds {kind}, of which nobody can tell here whether it is"
            " the same; it can be resumed where it was asked for"
        )
    if before and not session.state:
        return (
            "its session had a state when it was approved, and that is not held here:"
            f" {_GIVE_IT} that state"
        )
    if not same_digest(digest_of_state(session, envelope), before):
        return "the state of its session is not what it was when it was approved"
    return None


def _fewer_services(frozen: Frozen, session: Session) -> str | None:
    missing = [name for name in frozen.services if name not in session.lasting.names]
    if not missing:
        return None
    listed = ", ".join(repr(name) for name in missing[:5])
    return f"its session offered services that are not offered here: {_GIVE_IT} {listed}"


class _Told(Plain):
    """The same for equal values in every process; `odd` is the type of one that cannot be told."""

    def __init__(self) -> None:
        super().__init__()
        self.odd = ""

    def of(self, value: Any, depth: int = MAX_DEPTH) -> Any:
        """Make plain data of it; what is too much or too deep is odd."""
        found = super().of(value, depth)
        if self._left < 0 or (depth == 0 and isinstance(found, str) and found is not value):
            self.odd = self.odd or "more than can be compared"
        return found

    def _container(self, value: Any, depth: int) -> Any:
        if isinstance(value, Enum):
            return [_name(value), self.of(value.value, depth)]
        if isinstance(value, _AS_TEXT):
            return [_name(value), value.hex() if isinstance(value, bytes) else str(value)]
        if isinstance(value, Mapping):
            return {self._key(key): self.of(item, depth) for key, item in value.items()}
        if isinstance(value, tuple):
            return super()._container(list(value), depth)
        return super()._container(value, depth)

    def _key(self, key: Any) -> str:
        if not isinstance(key, (str, int, float, bool, type(None))):
            self.odd = self.odd or f"a key of type {_name(key)}"
        return f"{type(key).__name__} {key}"

    def members(self, items: list[Any]) -> list[Any]:
        """Sort what a set holds."""
        return sorted(json.dumps(item, sort_keys=True) for item in items)

    def other(self, value: Any, depth: int) -> Any:
        """Look into what has fields; anything else is odd."""
        fields = _fields(value)
        if fields is None:
            self.odd = self.odd or f"a {_name(value)}"
            return None
        return [_name(value), self.of(fields, depth)]


def _fields(value: Any) -> Mapping[str, Any] | None:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {one.name: getattr(value, one.name) for one in dataclasses.fields(value)}
    if isinstance(value, msgspec.Struct):
        return msgspec.structs.asdict(value)
    dump: Any = getattr(type(value), "model_dump", None)  # a model of pydantic
    dumped = dump(value) if callable(dump) else None
    return dumped if isinstance(dumped, Mapping) else None


def _name(value: Any) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}"
