"""One parsed policy file, taken apart: units read, unknown keys refused, faults with their line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from seawall.contract.annotations import Annotations, Risk
from seawall.contract.errors import ConfigurationError, Fault
from seawall.contract.policy import SECTIONS as RUN_SECTIONS
from seawall.layers.risk_rules import ArgumentRule
from seawall.policy import units
from seawall.policy.argument_rules import ARGUMENT_RULE
from seawall.policy.changes import Changes, Family, unknown
from seawall.policy.origins import KeyPath, Place, fault_at, place_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from seawall.policy.units import Reader

Table = dict[str, Any]


_SELECTORS: Mapping[str, Reader] = {
    "match": units.some_texts,
    "tags": units.some_texts,
    "categories": units.some_texts,
    "servers": units.some_texts,
}
_CHOICE = (*_SELECTORS, "annotations")
_HINTS: Mapping[str, Reader] = dict.fromkeys(Annotations.__struct_fields__, units.flag)
_RULE: Mapping[str, Reader] = {"preset": units.text, **units.RUN_READERS}
_RISK: Mapping[str, Reader] = {
    "ask_from": units.risk,
    "strict": units.flag,
    "allow": units.texts,
    "ask": units.texts,
    "deny": units.texts,
}
SETTINGS: Mapping[str, Mapping[str, Reader]] = {
    "trace": {"capacity": units.count},
    "loop": {
        "threshold": units.count,
        "window": units.limit(units.count),
        "cycle_rounds": units.limit(units.count),
        "pause_s": units.limit(units.duration),
        "exempt": units.texts,
        "exempt_tags": units.texts,
        "scope": units.text,
        "mode": units.text,
    },
    "console": {"allow": units.texts},
    "http_check": {"allow": units.addresses},
    "audit": {"calls": units.text, "wait": units.flag},
    "approvals": {
        "max_waiting": units.limit(units.count),
        "max_waiting_bytes": units.limit(units.size),
    },
    "shared": {
        "url": units.text,
        "url_env": units.text,
        "replicas": units.count,
        "timeout_s": units.duration,
        "prefix": units.text,
    },
}
"""Sections of plain settings: what a file says in one is laid over the same of its base."""

SECTIONS = ("extends", "presets", "default", "tools", "families", "risk", *SETTINGS)


class Sheet(msgspec.Struct):
    """What a file says; whether it makes sense together is for `Policies` to find out."""

    extends: str | None = None
    presets: dict[str, Table] = {}
    default: Table | None = None
    tools: dict[str, Table] = {}
    families: dict[str, tuple[Table, Table]] = {}
    """What chooses the tools, and the rule for them."""
    risk: Table = {}
    settings: dict[str, Table] = {}
    """The sections of `SETTINGS` that there are."""
    has_loop: bool | None = None
    """Whether loops are looked for; None where nothing is said."""
    places: dict[KeyPath, Place] = {}
    faults: list[Fault] = []

    def over(self, base: Sheet) -> Sheet:
        """Lay what this file says over what the file that it extends says."""
        families = dict(base.families)
        for name, (chosen, table) in self.families.items():
            chosen_before, table_before = families.get(name, ({}, {}))
            families[name] = ({**chosen_before, **chosen}, _rule_over(table, table_before))
        return Sheet(
            presets=_over(self.presets, base.presets),
            default=(
                base.default
                if self.default is None
                else _rule_over(self.default, base.default or {})
            ),
            tools=_over(self.tools, base.tools),
            families=families,
            risk=_risk_over(self.risk, base.risk),
            settings={
                name: {**base.settings.get(name, {}), **self.settings.get(name, {})}
                for name in (*base.settings, *self.settings)
            },
            has_loop=base.has_loop if self.has_loop is None else self.has_loop,
            places={**base.places, **self.places},
            faults=[*base.faults, *self.faults],
        )

    def rules(self) -> dict[str, Any]:
        """Give the arguments of `Policies` that are rules."""
        return {
            "default": None if self.default is None else Changes(**self.default),
            "tools": {name: Changes(**table) for name, table in self.tools.items()},
            "families": {
                name: Family(**chosen, policy=Changes(**table))
                for name, (chosen, table) in self.families.items()
            },
            "presets": {name: Changes(**table) for name, table in self.presets.items()},
        }


def read_sheet(document: Table, places: dict[KeyPath, Place]) -> Sheet:
    """Take a parsed file apart; what is faulty is noted and left out."""
    return _SheetReader(document, places).sheet


def _over(tables: dict[str, Table], base: dict[str, Table]) -> dict[str, Table]:
    merged = {name: _rule_over(table, base.get(name, {})) for name, table in tables.items()}
    return {**base, **merged}


def _rule_over(table: Table, base: Table) -> Table:
    """Merge two rules key by key; one that names a preset starts anew."""
    if "preset" in table:
        return table
    merged = {**base, **table}
    for name in RUN_SECTIONS:
        if isinstance(base.get(name), dict) and isinstance(table.get(name), dict):
            merged[name] = {**base[name], **table[name]}
    return merged


def _risk_over(risk: Table, base: Table) -> Table:
    """Merge who is asked; lists take the place of an `ask_from` that was there before.

    Rules are a list, and replaced as all lists are; risks of tools are merged name by name.
    """
    kept = {key: value for key, value in base.items() if key != "ask_from" or "allow" not in risk}
    merged = {**kept, **risk}
    if "tools" in kept and "tools" in risk:
        merged["tools"] = {**kept["tools"], **risk["tools"]}
    return merged


class _SheetReader:
    def __init__(self, document: Table, places: dict[KeyPath, Place]) -> None:
        self.sheet = Sheet(places=places)
        for name, raw in document.items():
            self._section(name, raw)

    def _section(self, name: str, raw: Any) -> None:
        sheet = self.sheet
        match name:
            case "extends":
                sheet.extends = self._values({name: raw}, {name: units.text}, ()).get(name)
            case "presets":
                sheet.presets = {
                    path[-1]: self._rule(t, path) for path, t in self._named(raw, name)
                }
            case "tools":
                sheet.tools = {path[-1]: self._rule(t, path) for path, t in self._named(raw, name)}
            case "families":
                sheet.families = {
                    path[-1]: self._family(t, path) for path, t in self._named(raw, name)
                }
            case "default":
                sheet.default = self._rule(self._table(raw, (name,)), (name,))
            case "risk":
                sheet.risk = self._risk(self._table(raw, (name,)))
            case "loop" if raw is False:
                sheet.has_loop = False
            case _ if name in SETTINGS:
                sheet.has_loop = True if name == "loop" else sheet.has_loop
                table = self._table(raw, (name,))
                sheet.settings[name] = self._values(table, SETTINGS[name], (name,))
            case _:
                self._fault((name,), unknown(name, SECTIONS))

    def _rule(self, table: Table, path: KeyPath, also: tuple[str, ...] = ()) -> Table:
        """Read the keys of a run policy, and the tables in it."""
        found = self._values(table, _RULE, path, (*RUN_SECTIONS, *also))
        for name, readers in units.SECTION_READERS.items():
            section = table.get(name)
            if isinstance(section, bool):
                found[name] = section
            elif section is not None:
                within = (*path, name)
                found[name] = self._values(self._table(section, within), readers, within)
        return found

    def _family(self, table: Table, path: KeyPath) -> tuple[Table, Table]:
        chosen = self._values(_only(table, _SELECTORS), _SELECTORS, path)
        if "annotations" in table:
            within = (*path, "annotations")
            hints = self._table(table["annotations"], within)
            chosen["annotations"] = self._values(hints, _HINTS, within)
        return chosen, self._rule(table, path, _CHOICE)

    def _risk(self, table: Table) -> Table:
        found = self._values(table, _RISK, ("risk",), ("tools", "rules"))
        if "tools" in table:
            within = self._table(table["tools"], ("risk", "tools"))
            readers = dict.fromkeys(within, units.risk)
            found["tools"] = self._values(within, readers, ("risk", "tools"))
        if "rules" in table:
            found["rules"] = tuple(self._rules(table["rules"]))
        strict = found.pop("strict", None)
        if strict is not None:
            asked = found.setdefault("ask_from", Risk.MEDIUM if strict else Risk.HIGH)
            if strict != (asked <= Risk.MEDIUM):
                self._fault(("risk", "strict"), "contradicts ask_from; give one of the two")
        return found

    def _rules(self, raw: Any) -> Iterator[ArgumentRule]:
        if not isinstance(raw, list):
            self._fault(("risk", "rules"), f"is {units.shown(raw)}; write [[risk.rules]]")
            return
        for number, table in enumerate(raw):
            path = ("risk", "rules", str(number))
            before = len(self.sheet.faults)
            values = self._values(self._table(table, path), ARGUMENT_RULE, path)
            missing = [key for key in ("tool", "argument", "decide") if key not in values]
            if len(self.sheet.faults) > before:
                continue
            if missing:
                self._fault(path, f"needs {' and '.join(missing)}")
                continue
            try:
                yield ArgumentRule(**values, place=str(place_of(path, self.sheet.places) or ""))
            except ConfigurationError as error:
                for fault in error.faults:
                    self._fault((*path, fault.key), fault.message)

    def _named(self, raw: Any, section: str) -> Iterator[tuple[KeyPath, Table]]:
        for name, table in self._table(raw, (section,)).items():
            path = (section, name)
            if name.strip():
                yield path, self._table(table, path)
            else:
                self._fault(path, "has an empty name; give it one")

    def _table(self, raw: Any, path: KeyPath) -> Table:
        if isinstance(raw, dict):
            return raw
        self._fault(path, f"is {units.shown(raw)}; it takes a table")
        return {}

    def _values(
        self, table: Table, readers: Mapping[str, Reader], path: KeyPath, also: Iterable[str] = ()
    ) -> Table:
        """Read the values that `readers` know; those in `also` are read elsewhere."""
        found = {}
        for key, raw in table.items():
            if key in readers:
                try:
                    found[key] = readers[key](raw)
                except ValueError as error:
                    self._fault((*path, key), str(error))
            elif key not in also:
                self._fault((*path, key), _unknown_in(path, key, raw, (*readers, *also)))
        return found

    def _fault(self, path: KeyPath, message: str) -> None:
        self.sheet.faults.append(fault_at(path, message, self.sheet.places))


def _only(table: Table, keys: Iterable[str]) -> Table:
    return {key: table[key] for key in keys if key in table}


def _unknown_in(path: KeyPath, key: str, raw: Any, known: Iterable[str]) -> str:
    if isinstance(raw, dict) and path[:1] == ("tools",):
        return f'is unknown; a name with dots is quoted: [tools."{path[-1]}.{key}"]'
    return unknown(key, known)
