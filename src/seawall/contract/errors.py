"""A configuration that cannot work, told when it is loaded or registered."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Sequence


class Fault(msgspec.Struct, frozen=True):
    """One thing that is wrong, and where."""

    message: str
    """What is wrong, and what to do."""
    key: str = ""
    """The setting, dotted, or the tool and its field."""
    file: str = ""
    """The file it is in, if it is in one."""
    line: int | None = None
    """From 1."""
    column: int | None = None
    """From 1."""

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


class MissingExtra(ImportError):  # noqa: N818  # named by what is missing
    """A part that is an extra was asked for and is not installed; says what to install."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} needs an extra: pip install 'seawall[{extra}]'")
        self.extra = extra


class StoreUnavailable(Exception):  # noqa: N818  # named by what happened
    """A store did not answer, or not in time; whoever needs it decides what is refused then.

    `may_have_written` says whether what was asked may still take, or have taken, effect: it is
    False only where nothing can have been kept. The message holds no values of what was asked.
    """

    def __init__(self, store: str, said: str, *, may_have_written: bool = True) -> None:
        super().__init__(store, said)
        self.store = store
        self.said = said
        self.may_have_written = may_have_written

    def __str__(self) -> str:
        return f"the state at {self.store} is not available: {self.said}"


class SealBroken(Exception):  # noqa: N818  # named by what happened
    """Something kept sealed cannot be opened: another key is needed, or it was changed."""
