"""The keys of `[[risk.rules]]`: a tool, an argument, a condition, and what it decides.

[[risk.rules]]
tool = "write_file"                 # a name, or a pattern
argument = "/path"                  # JSON Pointer; `*` for all members or items
under = ["/srv/data"]               # or host, equals, matches, above, at_least, below, at_most
decide = "allow"                    # allow, ask or deny
otherwise = "deny"
reason = "agents write there alone"
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from seawall.contract.decision import Action
from seawall.policy import units

if TYPE_CHECKING:
    from collections.abc import Mapping

    from seawall.policy.units import Reader


def action(raw: Any) -> Action:
    """Read allow, ask or deny."""
    if isinstance(raw, str) and raw in list(Action):
        return Action(raw)
    raise ValueError(f"is {units.shown(raw)}; it takes {', '.join(Action)}")


def number(raw: Any) -> int | float | str:
    """Read a number, or one in quotes, which is exact however many digits it has."""
    if isinstance(raw, (int, float, str)) and not isinstance(raw, bool):
        return raw
    raise ValueError(f"is {units.shown(raw)}; it takes a number")


def values(raw: Any) -> tuple[Any, ...]:
    """Read one value, or a list of them."""
    found = tuple(raw) if isinstance(raw, list) else (raw,)
    if not found:
        raise ValueError("is empty; leave it out if it is not to count")
    return found


ARGUMENT_RULE: Mapping[str, Reader] = {
    "tool": units.text,
    "argument": units.text,
    "decide": action,
    "otherwise": action,
    "under": units.some_texts,
    "host": units.some_texts,
    "above": number,
    "at_least": number,
    "below": number,
    "at_most": number,
    "equals": values,
    "matches": units.some_texts,
    "reason": units.text,
}
