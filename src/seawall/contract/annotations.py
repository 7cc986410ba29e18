"""What a tool does to the world: hints of its author, and the risk they mean."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping


class Risk(IntEnum):
    """How much harm a call can do; ordered, so that the worst of several is `max`."""

    LOW = 0
    MEDIUM = 1
    HIGH = 2

    @classmethod
    def parse(cls, text: str) -> Risk:
        """Read a name or its synonym: safe, sensitive, dangerous."""
        try:
            return _RISKS[text.strip().lower()]
        except KeyError:
            raise ValueError(f"unknown risk {text!r}: use one of {', '.join(_RISKS)}") from None


_RISKS = {
    "low": Risk.LOW,
    "medium": Risk.MEDIUM,
    "high": Risk.HIGH,
    "safe": Risk.LOW,
    "sensitive": Risk.MEDIUM,
    "dangerous": Risk.HIGH,
}


class Annotations(msgspec.Struct, frozen=True, kw_only=True):
    """Behaviour hints. None means that nobody said; the properties below then take MCP's defaults.

    A value that was given is kept as given, also an explicit `False`.
    """

    read_only: bool | None = None
    """Changes nothing; MCP's `readOnlyHint`."""
    destructive: bool | None = None
    """May take something away for good; MCP's `destructiveHint`."""
    idempotent: bool | None = None
    """The same call again changes nothing more; MCP's `idempotentHint`."""
    open_world: bool | None = None
    """Reaches what is outside of our control; MCP's `openWorldHint`."""
    sensitive: bool = False
    """Touches private data: risk MEDIUM at least, and never shown unredacted."""

    @property
    def is_read_only(self) -> bool:
        """Changes nothing (default: no)."""
        return bool(self.read_only)

    @property
    def is_destructive(self) -> bool:
        """May destroy something (default: yes, unless read-only)."""
        return not self.read_only and self.destructive is not False

    @property
    def is_idempotent(self) -> bool:
        """A second equal call changes nothing more (default: no)."""
        return bool(self.idempotent)

    @property
    def is_open_world(self) -> bool:
        """Reaches things outside of our control (default: yes)."""
        return self.open_world is not False

    @property
    def retry_safe(self) -> bool:
        """Whether the same call may be made again although its effect is not known."""
        return bool(self.read_only or self.idempotent)

    @property
    def declared(self) -> bool:
        """Whether any hint was given at all."""
        return any(
            hint is not None
            for hint in (self.read_only, self.destructive, self.idempotent, self.open_world)
        )

    def risk(self, *, undeclared: Risk = Risk.MEDIUM) -> Risk:
        """Risk that follows from the hints really given; `undeclared` if there are none."""
        if not self.declared:
            found = undeclared
        elif self.destructive and not self.read_only:
            found = Risk.HIGH
        else:
            found = Risk.LOW if self.read_only else Risk.MEDIUM
        return max(found, Risk.MEDIUM) if self.sensitive else found

    @classmethod
    def from_mcp(cls, hints: Mapping[str, object] | None) -> Annotations:
        """Read `readOnlyHint` and its kin; anything that is not a boolean counts as not given."""
        given = {
            name: value
            for hint, name in _MCP_HINTS.items()
            if isinstance(value := (hints or {}).get(hint), bool)
        }
        return cls(**given)

    def to_mcp(self) -> dict[str, bool]:
        """Write the hints that were given, explicit `False` included."""
        return {
            hint: value
            for hint, name in _MCP_HINTS.items()
            if (value := getattr(self, name)) is not None
        }

    @classmethod
    def for_reading(cls, *, open_world: bool = False) -> Annotations:
        """Read only; with `open_world`, of things outside."""
        return cls(read_only=True, destructive=False, idempotent=True, open_world=open_world)

    @classmethod
    def for_overwriting(cls) -> Annotations:
        """Write a whole thing: destructive, but a second time changes nothing."""
        return cls(read_only=False, destructive=True, idempotent=True, open_world=False)

    @classmethod
    def for_changing(cls) -> Annotations:
        """Change something; neither repeatable nor destructive."""
        return cls(read_only=False, destructive=False, idempotent=False, open_world=False)

    @classmethod
    def for_destroying(cls) -> Annotations:
        """Take something away for good."""
        return cls(read_only=False, destructive=True, idempotent=False, open_world=False)


_MCP_HINTS = {
    "readOnlyHint": "read_only",
    "destructiveHint": "destructive",
    "idempotentHint": "idempotent",
    "openWorldHint": "open_world",
}
