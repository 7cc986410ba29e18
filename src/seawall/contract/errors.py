"""A configuration that cannot work, told when it is loaded or registered."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Sequence


class Fault(msgspec.Struct, frozen=True):
    """One thing that is wrong, and where."""

    message: str
    key: str = ""
    """The setting, dotted, or the tool and its field."""
    file: str = ""
    line: int | None = None
    column: int | None = None

    def __str__(self) -> str:
        place = ":".join(str(part) for part in (self.file, self.line, self.column) if part)
        return ": ".join(part for part in (place, self.key, self.message) if part)


class ConfigurationError(ValueError):
    """Settings, tools or policies that cannot work; holds all faults found, not only the first."""

    def __init__(self, faults: str | Sequence[Fault]) -> None:
        self.faults: tuple[Fault, ...] = (
            (Fault(faults),) if isinstance(faults, str) else tuple(faults)
        )
        super().__init__("\n".join(str(fault) for fault in self.faults))

    def __reduce__(self) -> tuple[type[ConfigurationError], tuple[tuple[Fault, ...]]]:
        return type(self), (self.faults,)
