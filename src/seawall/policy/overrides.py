"""Single values of a policy that the environment says, over what the file says.

    SEAWALL_POLICY__TOOLS__search__TIMEOUT_S=5s
    SEAWALL_POLICY__TOOLS__github__search__BREAKER__THRESHOLD=3     # the tool github__search
    SEAWALL_POLICY__PRESETS__network__RATE=10/minute
    SEAWALL_POLICY__RISK__ASK_FROM=medium

Sections and keys are read in any case, names as they are. A value is what a file would have behind
the `=`, and text may stand without its quotes.
"""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING, Any

from seawall.contract.errors import Fault
from seawall.policy.changes import unknown
from seawall.policy.origins import KeyPath, Place
from seawall.policy.sheet import SECTIONS, SETTINGS, Sheet, read_sheet
from seawall.policy.units import SECTION_READERS

if TYPE_CHECKING:
    from collections.abc import Mapping

PREFIX = "SEAWALL_POLICY__"

_NAMED = ("presets", "tools", "families")
_NESTED = (*SECTION_READERS, "annotations")
_PLAIN = ("default", "risk", *SETTINGS)
_KNOWN = tuple(name for name in SECTIONS if name != "extends")


def is_overridden(environment: Mapping[str, str]) -> bool:
    """Whether the environment says anything about the policy."""
    return any(name.upper().startswith(PREFIX) for name in environment)


def read_overrides(environment: Mapping[str, str], base: Sheet) -> Sheet:
    """Read what the environment says, as a sheet to lay over `base`; faults name the variable."""
    document: dict[str, Any] = {}
    places: dict[KeyPath, Place] = {}
    faults: list[Fault] = []
    for name in sorted(environment):
        if not name.upper().startswith(PREFIX):
            continue
        path = _path(name[len(PREFIX) :])
        fault = _wrong(path, base) or _put(document, path, _value(environment[name]))
        if fault:
            faults.append(Fault(fault, file=name))
        else:
            _place(path, Place(name, 0, 0), places)
    sheet = read_sheet(document, places)
    sheet.faults += faults
    return sheet


def _path(text: str) -> KeyPath:
    """Take a variable's name apart: what stands between section and key is one name."""
    section, *rest = text.split("__")
    section = section.lower()
    if section not in _NAMED or len(rest) < 2:
        return (section, *(part.lower() for part in rest))
    depth = 2 if rest[-2].lower() in _NESTED and len(rest) > 2 else 1
    name = "__".join(rest[:-depth])
    return (section, name, *(part.lower() for part in rest[-depth:]))


def _wrong(path: KeyPath, base: Sheet) -> str | None:
    section = path[0]
    if section not in (*_NAMED, *_PLAIN):
        return f"section {section!r} {unknown(section, _KNOWN)}"
    least = 3 if section in _NAMED else 2
    if len(path) < least and path != ("loop",):
        shape = "SECTION__NAME__KEY" if least == 3 else "SECTION__KEY"
        return f"names no value; it is written {PREFIX}{shape}"
    if section == "default" and base.default is None:
        return (
            "the policy has no [default], and one made here would take all other limits away;"
            f" change a preset instead, as {PREFIX}PRESETS__network__TIMEOUT_S"
        )
    return None


def _put(document: dict[str, Any], path: KeyPath, value: Any) -> str | None:
    table: Any = document
    for part in path[:-1]:
        table = table.setdefault(part, {})
        if not isinstance(table, dict):
            return f"is inside of {part!r}, which another variable has set as a whole"
    if path[-1] in table:
        return f"{path[-1]} is given twice, by names that differ in their case"
    table[path[-1]] = value
    return None


def _place(path: KeyPath, place: Place, places: dict[KeyPath, Place]) -> None:
    for depth in range(2, len(path) + 1):
        places.setdefault(path[:depth], place)


def _value(raw: str) -> Any:
    """Read a value as TOML has it, or as plain text."""
    text = raw.strip()
    if "\n" in text or "#" in text:
        return text
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (ValueError, RecursionError):
        return text
