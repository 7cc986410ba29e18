"""Where the rules of a policy stand in their files, and the faults found in them."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import msgspec

from seawall.contract.errors import ConfigurationError, Fault

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

READY_MADE = "policies/"
"""How the files that come with Seawall are named for a reader begin."""

KeyPath = tuple[str, ...]
"""The keys from the top of a document down to one of its values."""


class Place(msgspec.Struct, frozen=True):
    """A key's position in a file; lines and columns count from 1.

    Line 0: it is in no file, but in the environment's variable that `file` names.
    """

    file: str
    line: int
    column: int = 1

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.line else self.file


class Origins:
    """Turns paths of keys into lines for a reader, and collects faults to tell at once."""

    def __init__(
        self, places: Mapping[KeyPath, Place] | None = None, faults: Iterable[Fault] = ()
    ) -> None:
        self._places = places or {}
        self.faults = list(faults)

    def line(self, path: KeyPath, key: str = "") -> str:
        """Say where a key stands, as ` (policies/x.toml:12)`; nothing if it is in no file."""
        place = place_of((*path, *key.split(".")) if key else path, self._places)
        return f" ({place})" if place else ""

    def said(self, path: KeyPath) -> str:
        """Name a section for a reader, with its line."""
        return dotted(path) + self.line(path)

    def is_own(self, path: KeyPath) -> bool:
        """Whether a section stands in a file, and in none of those that come with Seawall."""
        place = place_of(path, self._places)
        return place is not None and not place.file.startswith(READY_MADE)

    def fault(self, path: KeyPath, message: str) -> None:
        """Note what is wrong with a key."""
        self.faults.append(fault_at(path, message, self._places))

    def faults_of(self, error: ConfigurationError, path: KeyPath) -> None:
        """Note what is wrong with values of the rule at `path`; an entry counts for its list."""
        for fault in error.faults:
            key = fault.key.partition("[")[0]
            self.fault((*path, *key.split(".")) if key else path, fault.message)

    def check(self) -> None:
        """Tell all that was found, in the order of the files."""
        if self.faults:
            raise ConfigurationError(
                sorted(self.faults, key=lambda fault: (fault.file, fault.line or 0))
            )


def place_of(path: KeyPath, places: Mapping[KeyPath, Place]) -> Place | None:
    """Find the place of a key or, if it has none, of the nearest table around it."""
    while path and path not in places:
        path = path[:-1]
    return places.get(path)


def fault_at(path: KeyPath, message: str, places: Mapping[KeyPath, Place]) -> Fault:
    """Say what is wrong with a key, and where in which file it stands."""
    place = place_of(path, places)
    if place is None:
        return Fault(message, key=dotted(path))
    return Fault(message, dotted(path), place.file, place.line or None, place.column or None)


def dotted(path: KeyPath) -> str:
    """Write a path as TOML does, with quotes where it needs them."""
    return ".".join(
        part if _BARE.fullmatch(part) else json.dumps(part, ensure_ascii=False) for part in path
    )


_BARE = re.compile(r"[A-Za-z0-9_-]+")
