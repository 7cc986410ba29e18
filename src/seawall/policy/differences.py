"""What another policy would change, tool by tool, and which rule says so."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from seawall.policy.explain import Given
from seawall.policy.sheet import SETTINGS
from seawall.policy.units import SECTION_READERS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from seawall.contract.tool import Tool
    from seawall.policy.model import Policies


class Difference(msgspec.Struct, frozen=True):
    """One value that differs. `tool` is empty for what holds for all: `[risk]`, `[loop]`."""

    tool: str
    key: str
    before: Any
    after: Any
    rule_before: str = ""
    rule_after: str = ""


def differences(before: Policies, after: Policies, tools: Iterable[Tool]) -> list[Difference]:
    """Compare two policies for these tools; what has the same value by another rule is equal."""
    found = list(_of_sections(before, after))
    for tool in tools:
        found += _of_tool(tool.name, before.explain(tool), after.explain(tool))
    return found


def _of_tool(tool: str, before: dict[str, Given], after: dict[str, Given]) -> Iterator[Difference]:
    for key, old, new in _pairs(before, after):
        if old.value != new.value:
            yield Difference(tool, key, old.value, new.value, old.rule, new.rule)


def _pairs(before: dict[str, Given], after: dict[str, Given]) -> Iterator[tuple[str, Given, Given]]:
    """Pair what both say; a table that only one of them has is one difference, not many."""
    for name in SECTION_READERS:
        if (name in before) != (name in after):
            yield name, _whole(before, name), _whole(after, name)
    yield from ((key, before[key], after[key]) for key in before if key in after)


def _whole(found: dict[str, Given], name: str) -> Given:
    """Say whether there is a table at all, and by which rule."""
    gone = found.get(name)
    if gone is not None:
        return Given(value=False, rule=gone.rule)
    first = next(given for key, given in found.items() if key.startswith(f"{name}."))
    return Given(value=True, rule=first.rule)


def _of_sections(before: Policies, after: Policies) -> Iterator[Difference]:
    for section in ("risk", *SETTINGS):
        old, new = getattr(before, section), getattr(after, section)
        if old is None or new is None:
            if old is not new:
                yield Difference("", section, old is not None, new is not None)
            continue
        for field in old.__struct_fields__:
            one, other = getattr(old, field), getattr(new, field)
            if one != other:
                yield Difference("", f"{section}.{field}", one, other)
