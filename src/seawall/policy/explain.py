"""Which rule gave each value: rules laid over each other, from the least specific to the most.

The policy that a tool runs under is made of the very same table, so the two cannot differ.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from seawall.contract.policy import BreakerPolicy, RunPolicy
from seawall.policy.changes import BREAKER_FIELDS, RUN_FIELDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_BREAKER_DEFAULTS = msgspec.structs.asdict(BreakerPolicy())


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
            if key == "breaker":
                _lay_breaker(found, given)
            else:
                found[key] = given
    return found


def _lay_breaker(found: dict[str, Given], given: Given) -> None:
    """Take the breaker away, or see to it that there is one to change."""
    there = found.get("breaker")
    if given.value is None:
        for name in BREAKER_FIELDS:
            found.pop(f"breaker.{name}", None)
    elif there is None or there.value is None:
        for name, value in _BREAKER_DEFAULTS.items():
            found.setdefault(f"breaker.{name}", Given(value, given.rule))
    found["breaker"] = given


def explained(found: Mapping[str, Given]) -> dict[str, Given]:
    """Put settled values in the order of `RunPolicy`; the breaker's are dotted."""
    table: dict[str, Given] = {}
    for name in RUN_FIELDS:
        if name != "breaker" or found[name].value is None:
            table[name] = found[name]
        else:
            table |= {f"breaker.{part}": found[f"breaker.{part}"] for part in BREAKER_FIELDS}
    return table


def policy_from(found: Mapping[str, Given]) -> RunPolicy:
    """Make the policy that settled values mean."""
    plain = {name: found[name].value for name in RUN_FIELDS}
    if plain["breaker"] is not None:
        plain["breaker"] = BreakerPolicy(
            **{name: found[f"breaker.{name}"].value for name in BREAKER_FIELDS}
        )
    return RunPolicy(**plain)
