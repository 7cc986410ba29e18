"""A tool's policy, and what changes in it, as short as it can be said: what is alike stands once.

`--full` and `--json` of the commands have every value by itself.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any

import msgspec

from seawall.contract.policy import RunPolicy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from seawall.edges.cli.paper import Paper
    from seawall.policy.differences import Difference
    from seawall.policy.explain import Given

ALWAYS = frozenset({"timeout_s", "max_retries", "rate", "breaker"})
"""What everybody wants to know, also where nothing is said of it."""

COLUMNS = ("setting", "before", "after", "by the rule")

_USUAL = {name: getattr(RunPolicy(), name) for name in RunPolicy.__struct_fields__}
_PLACE = re.compile(r"(.*) \(([^()]+)\)")


class Line(msgspec.Struct, frozen=True):
    """A setting, or a table of them, with its value and where that stands."""

    key: str
    value: str
    place: str


class Brief(msgspec.Struct, frozen=True):
    """What is worth reading of a policy, by the rule that says it, and how much is not."""

    rules: dict[str, list[Line]]
    left_out: int


def brief(found: Mapping[str, Given], say: Callable[[str, Any], str]) -> Brief:
    """Leave out what is as it is without any rule; put a table into one line for each rule."""
    base = Counter(_parted(given.rule)[0] for given in found.values()).most_common(1)
    usual_rule = base[0][0] if base else ""
    rows: dict[tuple[str, str], list[tuple[str, Given]]] = {}
    left_out = 0
    for key, given in found.items():
        rule, section = _parted(given.rule)[0], key.partition(".")[0]
        if rule == usual_rule and _is_usual(key, given.value):
            left_out += 1
        else:
            rows.setdefault((rule, section), []).append((key, given))
    rules: dict[str, list[Line]] = {}
    for (rule, section), lines in rows.items():
        rules.setdefault(rule, []).append(_line(section, lines, say))
    return Brief(rules, left_out)


def _is_usual(key: str, value: Any) -> bool:
    section, _, part = key.partition(".")
    if section in ALWAYS and not part:
        return False
    return value in (None, False, ()) if part else bool(value == _USUAL.get(key))


def _line(section: str, given: Sequence[tuple[str, Given]], say: Callable[[str, Any], str]) -> Line:
    places = dict.fromkeys(_parted(one.rule)[1] for _, one in given)
    told = [(key.partition(".")[2], say(key, one.value)) for key, one in given]
    value = ", ".join(f"{part} {said}" if part else said for part, said in told)
    return Line(section, value, _short([place for place in places if place]))


def _short(places: Sequence[str]) -> str:
    """Name a file once for all of its lines: `shop.toml:3, 4, 7`."""
    lines: dict[str, list[str]] = {}
    for place in places:
        file, colon, line = place.rpartition(":")
        lines.setdefault(f"{file}{colon}" if colon else place, []).extend([line] if colon else [])
    return ", ".join(f"{file}{', '.join(found)}" for file, found in lines.items())


def _parted(rule: str) -> tuple[str, str]:
    """Take the place off a rule, which is another for each of its values."""
    found = _PLACE.fullmatch(rule)
    return (rule, "") if found is None else (found[1], found[2])


def write_brief(
    found: Mapping[str, Given],
    say: Callable[[str, Any], str],
    paper: Paper,
    rest: str = "",
) -> None:
    """Write a policy by its rules; `rest` says how to see what is left out."""
    said = brief(found, say)
    wide = max((len(line.key) for lines in said.rules.values() for line in lines), default=0)
    for rule, lines in said.rules.items():
        paper.line("by ", (rule, "bold"))
        for line in lines:
            place = (f"  ({line.place})", "dim") if line.place else ""
            paper.line(line.value, place, lead=f"  {line.key:<{wide}}  ")
    if said.left_out:
        paper.line(f"{said.left_out} other settings are as they are without any rule{rest}.")


def alike(found: Iterable[Difference]) -> dict[tuple[str, ...], list[Difference]]:
    """Put together the tools of which the same changes, by the same rule: names, and changes."""
    tools: dict[tuple[str, ...], list[Difference]] = {}
    for one in found:
        tools.setdefault((one.key, *map(repr, (one.before, one.after)), one.rule_after), []).append(
            one
        )
    groups: dict[tuple[str, ...], list[Difference]] = {}
    for same in tools.values():
        groups.setdefault(tuple(one.tool for one in same), []).append(same[0])
    # What holds for all tools first, then what holds for many.
    return dict(sorted(groups.items(), key=lambda group: (group[0] != ("",), -len(group[0]))))


def write_alike(found: Iterable[Difference], tools: int, paper: Paper) -> None:
    """Write what changes, each once, with the tools that it changes for."""
    for place, (names, same) in enumerate(alike(found).items()):
        if place:
            paper.line("")
        paper.line((_of_whom(names, tools), "bold"))
        rows = [(one.key, plain(one.before), plain(one.after), one.rule_after) for one in same]
        told = len(COLUMNS) if any(one.rule_after for one in same) else len(COLUMNS) - 1
        paper.table(COLUMNS[:told], [row[:told] for row in rows])


def _of_whom(names: Sequence[str], tools: int) -> str:
    if names == ("",):
        return "All calls"
    if len(names) == 1:
        return names[0]
    if len(names) == tools:
        return f"All {tools} tools"
    return f"{len(names)} of {tools} tools: {', '.join(names)}"


def plain(value: Any) -> str:
    """Write a value of a policy for a reader."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (tuple, list)):
        return ", ".join(map(str, value)) or "none"
    if hasattr(value, "name"):
        return str(value.name).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)
