"""Find what is wrong inside of an object or a list."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

from seawall.contract.pointer import escaped
from seawall.pipeline.arguments.faults import wording
from seawall.pipeline.arguments.faults.misnamed import Misnamed
from seawall.pipeline.arguments.schema.documents import mapping
from seawall.pipeline.arguments.schema.redaction import declared, declared_names

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seawall.pipeline.arguments.faults.looking import Looking
    from seawall.pipeline.arguments.faults.survey import Spot

_LONGEST_KEY = 200
_ITEMS_AT_ONCE = 256
_CULPRITS_TRIED = 100


class Members:
    """The members of an object that is refused at a place."""

    def __init__(self, finder: Looking, spot: Spot, value: dict[str, Any], path: str) -> None:
        self._finder = finder
        self._spot = spot
        self._node: dict[str, Any] = spot.node
        self._value = value
        self._path = path
        self._declared = mapping(spot.node, "properties")
        self._misnamed: Misnamed | None = None

    def look(self) -> None:
        """Tell the faults: what is declared in its order, then what is not."""
        required = self._spot.required
        for name in self._declared:
            if name in self._value:
                self._part(name, "properties", name)
            elif name in required:
                self._missing(name, self._spot.part("properties", name).expected)
        for name in required:
            if name not in self._declared and name not in self._value:
                self._missing(name, "")
        if self._spot.limits_others:
            self._others()
            self._names()
            self._dependents()

    def look_at_unevaluated(self) -> None:
        """Tell which members no part of the schema speaks of; all parts that do are content."""
        rest = self._node.get("unevaluatedProperties", True)
        if rest is True:
            return
        finder, places = self._finder, self._spot.together
        documents = finder.survey.documents
        unknown = [
            name for name in self._value if not declared(documents, places, name, finder.matches)
        ]
        for name in unknown:
            if finder.is_done:
                return
            if rest is False:
                said = wording.unknown(name, list(declared_names(places)))
                finder.tell(self._below(name), said, "unevaluatedProperties")
            else:
                self._part(name, "unevaluatedProperties")
        if not unknown:
            self._leave_out_one()

    def _leave_out_one(self) -> None:
        """Tell which declared members belong to an alternative that was not taken."""
        for name in islice(self._value, _CULPRITS_TRIED):
            others = {key: item for key, item in self._value.items() if key != name}
            if not self._finder.refuses(self._spot, others):
                said = f"{wording.name(name)} is not allowed together with the others"
                self._finder.tell(self._below(name), said, "unevaluatedProperties")

    def _missing(self, name: str, wanted: str) -> None:
        said = f"missing; {wanted}" if wanted else "missing"
        self._finder.tell(self._below(name), said + self._instead_of(name), "required")

    def _instead_of(self, name: str) -> str:
        if self._node.get("additionalProperties") is False:
            return ""  # what came under another name is told as a fault of its own
        if self._misnamed is None:
            known = self._declared | self._spot.required
            self._misnamed = Misnamed(self._finder, self._value, self._path, known)
        return self._misnamed.instead_of(name)

    def _others(self) -> None:
        patterns = mapping(self._node, "patternProperties")
        rest = self._node.get("additionalProperties", True)
        if rest is True and not patterns:
            return
        for name in self._value:
            if self._finder.is_done:
                return
            fitting = [pattern for pattern in patterns if self._finder.matches(pattern, name)]
            for pattern in fitting:
                self._part(name, "patternProperties", pattern)
            if fitting or name in self._declared:
                continue
            if rest is False:
                said = wording.unknown(name, list(self._declared), patterns)
                self._finder.tell(self._below(name), said, "additionalProperties")
            elif rest is not True:
                self._part(name, "additionalProperties")

    def _names(self) -> None:
        if "propertyNames" not in self._node:
            return
        names = self._spot.part("propertyNames")
        for name in self._value:
            if not self._finder.is_done and self._finder.refuses(names, name):
                faults = self._finder.trial(names, name, self._below(name))
                said = f"the name {wording.name(name)} is not allowed"
                said += f": {faults[0].message}" if faults else ""
                self._finder.tell(self._below(name), said, "propertyNames")

    def _dependents(self) -> None:
        for keyword in ("dependentRequired", "dependencies"):
            for trigger, names in mapping(self._node, keyword).items():
                if trigger in self._value and isinstance(names, list):
                    self._missing_beside(trigger, names)

    def _missing_beside(self, trigger: str, names: list[str]) -> None:
        for name in names:
            if name not in self._value:
                said = f"missing; required when {wording.name(trigger)} is given"
                said += self._instead_of(name)
                self._finder.tell(self._below(name), said, "dependentRequired")

    def _part(self, name: str, *steps: str) -> None:
        part, item = self._spot.part(*steps).final, self._value[name]
        if self._finder.refuses(part, item):
            self._finder.visit(part, item, self._below(name))

    def _below(self, name: str) -> str:
        """Point to a member; to what encloses it if its name takes too long to say."""
        if len(name) > _LONGEST_KEY:
            return self._path
        return f"{self._path}/{escaped(name)}"


class Items:
    """The items of a list that is refused at a place."""

    def __init__(self, finder: Looking, spot: Spot, value: Sequence[Any], path: str) -> None:
        self._finder = finder
        self._spot = spot
        self._node: dict[str, Any] = spot.node
        self._value = value
        self._path = path

    def look(self) -> None:
        """Tell the faults, in the order of the items."""
        keyword = "prefixItems" if "prefixItems" in self._node else "items"
        listed = self._node.get(keyword)
        first = len(listed) if isinstance(listed, list) else 0
        for index, item in enumerate(self._value[:first]):
            self._finder.part_at(self._spot.part(keyword, str(index)), item, self._below(index))
        rest = "additionalItems" if isinstance(self._node.get("items"), list) else "items"
        if rest in self._node:
            self._rest(self._spot.part(rest), first)
        if "contains" in self._node:
            self._contained(self._spot.part("contains"))

    def look_at_unevaluated(self) -> None:
        """Tell the first item that no part of the schema speaks of."""
        if "unevaluatedItems" not in self._node:
            return
        for index in range(min(len(self._value), _CULPRITS_TRIED)):
            if self._finder.refuses(self._spot, list(self._value[: index + 1])):
                self._finder.tell(self._below(index), "unexpected item", "unevaluatedItems")
                return

    def _rest(self, part: Spot, start: int) -> None:
        """Look at items that all have one schema: they may be many, and nearly all valid."""
        if part.node is False and len(self._value) > start:
            said = f"unexpected item; expected at most {wording.counted(start, 'item')}"
            self._finder.tell(self._below(start), said, part.place.steps[-1])
        if isinstance(part.node, bool):
            return
        for begin in range(start, len(self._value), _ITEMS_AT_ONCE):
            some = self._value[begin : begin + _ITEMS_AT_ONCE]
            if self._finder.refuses_one(part, some):
                for index, item in enumerate(some, begin):
                    self._finder.part_at(part, item, self._below(index))
            if self._finder.is_done:
                return

    def _contained(self, wanted: Spot) -> None:
        found = sum(not self._finder.refuses(wanted, item) for item in self._value)
        counts = self._node if self._finder.survey.dialect.counts_contained else {}
        least, most = counts.get("minContains", 1), counts.get("maxContains", found)
        if least <= found <= most or self._finder.is_done:
            return
        relation, bound = ("at least", least) if found < least else ("at most", most)
        what = wanted.expected.removeprefix("expected ")
        counted = wording.counted(bound, "matching item") + (f" ({what})" if what else "")
        said = f"expected {relation} {counted}, got {found}"
        self._finder.tell(self._path, said, "contains")

    def _below(self, index: int) -> str:
        return f"{self._path}/{index}"
