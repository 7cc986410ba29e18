"""Which rule gave each value: rules laid over each other, from the least specific to the most.

The policy that a tool runs under is made of the very same table, so the two cannot differ.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from seawall.contract.policy import SECTIONS, RunPolicy
from seawall.policy.changes import RUN_FIELDS, SECTION_FIELDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_DEFAULTS = {
    name: {field.name: field.default for field in msgspec.structs.fields(kind)}
    for name, kind in SECTIONS.items()
}


class Given(msgspec.Struct, frozen=True):
    """A value and the rule that gave it: `tools.http_check (policies/x.toml:12)`."""

    value: Any
    rule: str


class Rule(msgspec.Struct, frozen=True, eq=False):
    """What one section of a policy says, in the flat form."""

    values: dict[str, Given]
    whole: bool = False
    """Replaces what less specific rules say, instead of changing single values."""


def settle(rules: Iterable[Rule]) -> dict[str, Given]:
    """Lay rules over each other, the last one on top; the first is a whole one."""
    found: dict[str, Given] = {}
    for rule in rules:
        if rule.whole:
            found.clear()
        for key, given in rule.values.items():
            if key in SECTIONS:
                _lay_section(key, found, given)
            else:
                found[key] = given
    return found


def _lay_section(section: str, found: dict[str, Given], given: Given) -> None:
    """Take a table of the policy away, or see to it that there is one to change."""
    there = found.get(section)
    if given.value is None:
        for name in SECTION_FIELDS[section]:
            found.pop(f"{section}.{name}", None)
    elif there is None or there.value is None:
        for name, value in _DEFAULTS[section].items():
            found.setdefault(f"{section}.{name}", Given(value, given.rule))
    found[section] = given


def explained(found: Mapping[str, Given]) -> dict[str, Given]:
    """Put settled values in the order of `RunPolicy`; those of its tables are dotted."""
    table: dict[str, Given] = {}
    for name in RUN_FIELDS:
        if name not in SECTIONS or found[name].value is None:
            table[name] = found[name]
        else:
            table |= {f"{name}.{part}": found[f"{name}.{part}"] for part in SECTION_FIELDS[name]}
    return table


def policy_from(found: Mapping[str, Given]) -> RunPolicy:
    """Make the policy that settled values mean."""
    plain = {name: found[name].value for name in RUN_FIELDS}
    for section, kind in SECTIONS.items():
        if plain[section] is not None:
            plain[section] = kind(
                **{name: found[f"{section}.{name}"].value for name in SECTION_FIELDS[section]}
            )
    return RunPolicy(**plain)
