"""Who decides which calls a person is asked about: by risk, or by lists of names.

A policy of one's own has `decide(prepared) -> Decision`, a plain function that sees the prepared
arguments. The two here look at the tool alone, so the gate asks them once per tool, not per call.
"""

from __future__ import annotations

import re
from fnmatch import translate
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from seawall.contract.annotations import Risk
from seawall.contract.decision import Action, Decision
from seawall.contract.errors import ConfigurationError, Fault

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from seawall.contract.decision import Prepared
    from seawall.contract.tool import Tool

MAX_ENTRIES = 10_000


class CallPolicy(Protocol):
    """What the risk gate asks about each call."""

    def decide(self, prepared: Prepared) -> Decision:
        """Allow, ask or deny; what it raises refuses the call."""
        ...


class RiskPolicy(msgspec.Struct, frozen=True):
    """Asks from a risk on: HIGH, or MEDIUM too if `strict`; never denies."""

    ask_from: Risk = Risk.HIGH
    """The least risk that a person is asked about."""
    strict: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.ask_from, Risk):
            raise ConfigurationError(
                [Fault(f"must be a Risk, not {self.ask_from!r}", key="ask_from")]
            )

    def decide(self, prepared: Prepared) -> Decision:
        """Decide by the tool's risk."""
        return self.for_tool(prepared.tool)

    def for_tool(self, tool: Tool, risk: Risk | None = None) -> Decision:
        """Decide for all calls of a tool; `risk` instead of its own, if an operator says so."""
        risk = tool.effective_risk if risk is None else risk
        reason = f"{risk.name.lower()} risk"
        ask_from = min(self.ask_from, Risk.MEDIUM) if self.strict else self.ask_from
        return Decision(Action.ASK if risk >= ask_from else Action.ALLOW, reason)


class AllowlistPolicy:
    """Denies whatever no list names. Entries are names, or patterns with `*`, `?` and `[…]`.

    A tool stands in one list: the same entry in two, or a name that a pattern of another list
    matches, is a `ConfigurationError`, as nobody can tell which was meant. Whether two patterns
    meet shows only with a tool's name: `faults(names)` tells it when the tools are known, and
    such a tool is denied. Letters count as they are written. With `ask_from`, what the allow list
    names is asked about from that risk on.
    """

    def __init__(
        self,
        allow: Iterable[str] = (),
        ask: Iterable[str] = (),
        deny: Iterable[str] = (),
        *,
        ask_from: Risk | None = None,
    ) -> None:
        faults: list[Fault] = []
        self._ask_from = ask_from
        self._lists = tuple(
            _List(action, _entries(action, given, faults))
            for action, given in ((Action.ALLOW, allow), (Action.ASK, ask), (Action.DENY, deny))
        )
        faults.extend(self._overlaps())
        if faults:
            raise ConfigurationError(faults)

    def decide(self, prepared: Prepared) -> Decision:
        """Decide by the tool's name."""
        return self.for_tool(prepared.tool)

    def for_tool(self, tool: Tool, risk: Risk | None = None) -> Decision:
        """Decide for all calls of a tool; `risk` instead of its own, if an operator says so."""
        found = self._found(tool.name)
        if len(found) == 1:
            action, entry = found[0]
            risk = tool.effective_risk if risk is None else risk
            if action is Action.ALLOW and self._ask_from is not None and risk >= self._ask_from:
                said = f"the allow list has {entry!r}, but not for {risk.name.lower()} risk"
                return Decision(Action.ASK, said)
            return Decision(action, f"the {action} list has {entry!r}")
        if not found:
            return Decision(Action.DENY, "no list has it")
        return Decision(Action.DENY, f"more than one list has it ({_said(found)})")

    def faults(self, names: Iterable[str]) -> tuple[Fault, ...]:
        """Tell the tools that patterns of two lists match."""
        found = ((name, self._found(name)) for name in names)
        return tuple(
            Fault(f"is matched by more than one list ({_said(lists)}); {_ONE_LIST}", key=name)
            for name, lists in found
            if len(lists) > 1
        )

    def _found(self, name: str) -> list[tuple[Action, str]]:
        entries = ((one.action, one.entry(name)) for one in self._lists)
        return [(action, entry) for action, entry in entries if entry is not None]

    def _overlaps(self) -> Iterator[Fault]:
        for one in self._lists:
            for other in self._lists:
                if other is not one:
                    yield from _shared(one, other)


_ONE_LIST = "a tool may stand in one list only: make the pattern narrower, or name the tools"


class _List:
    """One list: what it does, its names, and its patterns."""

    __slots__ = ("_matches", "action", "names", "patterns")

    def __init__(self, action: Action, entries: list[str]) -> None:
        self.action = action
        self.names = frozenset(entry for entry in entries if not is_pattern(entry))
        self.patterns = tuple(dict.fromkeys(entry for entry in entries if is_pattern(entry)))
        self._matches = [(pattern, re.compile(translate(pattern))) for pattern in self.patterns]

    def entry(self, name: str) -> str | None:
        """Find the entry for a tool: its name, or the first pattern that matches."""
        if name in self.names:
            return name
        return next((p for p, regex in self._matches if regex.match(name)), None)


def is_pattern(entry: str) -> bool:
    """Whether an entry stands for more than the name that it is."""
    return not set("*?[").isdisjoint(entry)


def _shared(one: _List, other: _List) -> Iterator[Fault]:
    """Names of `one` that `other` has too, or matches; each pair of equal entries once."""
    for name in sorted(one.names):
        entry = other.entry(name)
        if entry is not None and (entry != name or one.action < other.action):
            also = f"{other.action} too" if entry == name else f"{other.action} as {entry!r}"
            yield Fault(f"has {name!r}, and so has {also}; {_ONE_LIST}", key=one.action)
    if one.action < other.action:
        for pattern in sorted(set(one.patterns) & set(other.patterns)):
            yield Fault(f"has {pattern!r}, and so has {other.action}; {_ONE_LIST}", key=one.action)


def _entries(action: Action, given: Any, faults: list[Fault]) -> list[str]:
    """Take the entries of a list; what is no entry is a fault."""
    if isinstance(given, str):
        faults.append(Fault(f"must be a list of names, not the text {given!r:.80}", key=action))
        return []
    entries = list(given)
    if len(entries) > MAX_ENTRIES:
        faults.append(Fault(f"has {len(entries)} entries; {MAX_ENTRIES} are enough", key=action))
    fine = [entry for entry in entries if isinstance(entry, str) and entry.strip() == entry != ""]
    if len(fine) < len(entries):
        faults.append(
            Fault(
                "has an entry that is blank, padded, or no text; write names or patterns",
                key=action,
            )
        )
    return fine


def _said(found: list[tuple[Action, str]]) -> str:
    return ", ".join(f"{action}: {entry!r}" for action, entry in found)
