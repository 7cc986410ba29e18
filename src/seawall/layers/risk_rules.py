"""Rules that look at the arguments of a call: where a path leads, which host, how much.

    ArgumentRule("write_file", "/path", under=("/srv/data",), decide=ALLOW, otherwise=DENY)

A rule says `decide` where its condition holds, and `otherwise` where it does not; without the
latter it says nothing then. Of what several rules say the strictest counts, and it takes the place
of what the policy below says, but for a denial, which no rule lifts. What cannot be told for sure
(the argument is absent, is of another type, or can be read in two ways) counts as whichever answer
is the strictest.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import msgspec

from seawall.contract.annotations import Risk
from seawall.contract.decision import Action, Decision
from seawall.contract.errors import ConfigurationError, Fault
from seawall.contract.pointer import steps_of
from seawall.contract.sentences import joined
from seawall.layers.argument_values import (
    HostPattern,
    PathPattern,
    Unclear,
    exact_number,
    host_of,
    path_of,
)
from seawall.layers.risk_policies import AllowlistPolicy, RiskPolicy, is_pattern

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from seawall.contract.decision import Prepared
    from seawall.contract.tool import Tool

MAX_RULES = 1_000
MAX_VALUES = 1_000
"""Values that one `*` may stand for; of more it cannot be told."""

_ORDER = (Action.ALLOW, Action.ASK, Action.DENY)
_BOUNDS = ("above", "at_least", "below", "at_most")


class ArgumentRule(msgspec.Struct, frozen=True, kw_only=True):
    """One rule. It has one kind of condition: a path, a host, a number, or a text."""

    tool: str
    """A name, or a pattern with `*`, `?` and `[…]`."""
    argument: str
    """JSON Pointer to the argument; a part `*` stands for all members or items."""
    decide: Action
    """What holds where the condition does."""
    otherwise: Action | None = None
    """What holds where it does not; None says nothing."""
    under: tuple[str, ...] = ()
    """The argument is a path below one of these, or one of them itself."""
    host: tuple[str, ...] = ()
    """It is, or leads to, one of these: `example.org`, `*.example.org`, `10.0.0.0/8`."""
    above: int | float | str | None = None
    """True for numbers above this."""
    at_least: int | float | str | None = None
    """True for this number and above."""
    below: int | float | str | None = None
    """True for numbers below this."""
    at_most: int | float | str | None = None
    """True for this number and below."""
    equals: tuple[Any, ...] = ()
    """It is one of these values."""
    matches: tuple[str, ...] = ()
    """It is a text that one of these patterns matches, letters as they are written."""
    reason: str = ""
    """For whoever is asked, and for the model."""
    place: str = ""
    """Where the rule stands in its file."""

    def __post_init__(self) -> None:
        faults = list(_faults(self))
        if faults:
            raise ConfigurationError(faults)

    @property
    def steps(self) -> list[str]:
        """The parts of the pointer to the argument."""
        return steps_of(self.argument)

    @property
    def said(self) -> str:
        """The rule for a reader."""
        otherwise = "" if self.otherwise is None else f", otherwise {self.otherwise}"
        return f"{self.decide} if {self.argument} is {self._condition}{otherwise}"

    @property
    def _condition(self) -> str:
        lists = {"under": self.under, "on": self.host, "": self.equals, "like": self.matches}
        for word, values in lists.items():
            if values:
                return f"{word} {' or '.join(map(str, values))}".strip()
        words = ((name, getattr(self, name)) for name in _BOUNDS)
        return " and ".join(
            f"{name.replace('_', ' ')} {value}" for name, value in words if value is not None
        )


def _faults(rule: ArgumentRule) -> Iterator[Fault]:
    if not rule.tool.strip():
        yield Fault("needs a tool", key="tool")
    if not rule.argument.startswith("/") or rule.argument.endswith("/"):
        yield Fault("must be a JSON Pointer such as /path or /items/*/name", key="argument")
    kinds = [name for name in ("under", "host", "equals", "matches") if getattr(rule, name)]
    bounds = [name for name in _BOUNDS if getattr(rule, name) is not None]
    if len(kinds) + bool(bounds) != 1:
        known = f"under, host, equals, matches, or bounds ({', '.join(_BOUNDS)})"
        has = ", ".join((*kinds, *bounds)) or "none"
        yield Fault(f"needs one kind of condition, {known}; it has {has}", key="argument")
    if rule.otherwise is rule.decide:
        yield Fault(
            f"is {rule.otherwise} as well, so the rule says it always; leave it out",
            key="otherwise",
        )
    for name, read in (("under", PathPattern), ("host", HostPattern)):
        for value in getattr(rule, name):
            try:
                read(value)
            except ValueError as error:
                yield Fault(str(error), key=name)
    for name in bounds:
        if exact_number(getattr(rule, name)) is Unclear:
            yield Fault(f"is {getattr(rule, name)!r}; it takes a number", key=name)


class RuledPolicy:
    """A policy with rules for arguments laid over it, and risks that an operator says of tools.

    `risks` has names or patterns; the exact name counts first, then the longest pattern. A
    `sensitive` tool stays MEDIUM at least.
    """

    def __init__(
        self,
        base: RiskPolicy | AllowlistPolicy,
        rules: Iterable[ArgumentRule] = (),
        *,
        risks: Mapping[str, Risk] | None = None,
    ) -> None:
        self.base = base
        self.rules = tuple(rules)
        self._risks = dict(risks or {})
        if len(self.rules) > MAX_RULES:
            raise ConfigurationError(
                [Fault(f"has {len(self.rules)} rules; {MAX_RULES} are enough", key="rules")]
            )
        self._checks = [_Check(rule) for rule in self.rules]

    def rules_for(self, tool: Tool) -> tuple[ArgumentRule, ...]:
        """Give the rules that look at the calls of a tool."""
        return tuple(rule for rule in self.rules if _fits(rule.tool, tool.name))

    def risk_of(self, tool: Tool) -> Risk:
        """Give the risk that counts: what the operator said, else the tool's own."""
        said = self._risks.get(tool.name)
        if said is None:
            fitting = [one for one in self._risks if is_pattern(one) and _fits(one, tool.name)]
            longest = max(fitting, key=lambda one: (len(one), one), default=None)
            said = None if longest is None else self._risks[longest]
        if said is None:
            return tool.effective_risk
        return max(said, Risk.MEDIUM) if tool.annotations.sensitive else said

    def for_tool(self, tool: Tool) -> Decision | None:
        """Decide for all calls of a tool; None if its arguments count."""
        if any(_fits(rule.tool, tool.name) for rule in self.rules):
            return None
        return self._below(tool)

    def decide(self, prepared: Prepared) -> Decision:
        """Decide by the rules, and where they say nothing by what is below them."""
        tool = prepared.tool
        below = self._below(tool)
        if below.action is Action.DENY:
            return below
        said = [
            decision
            for check in self._checks
            if _fits(check.rule.tool, tool.name)
            and (decision := check(prepared.arguments, below)) is not None
        ]
        return max(said, key=_strictness, default=below)

    def _below(self, tool: Tool) -> Decision:
        return self.base.for_tool(tool, self.risk_of(tool))


_UNSURE = "whether that is so cannot be told for sure"


class _Check:
    """One rule, made ready."""

    def __init__(self, rule: ArgumentRule) -> None:
        self.rule = rule
        self._steps = rule.steps
        # Where it loosens something, all that it looks at must be so; else one is enough.
        self._loosens = rule.decide is Action.ALLOW or (
            rule.otherwise is not None and _ORDER.index(rule.decide) < _ORDER.index(rule.otherwise)
        )
        self._holds = _condition(rule, loosens=self._loosens)

    def __call__(self, arguments: Any, below: Decision) -> Decision | None:
        rule = self.rule
        holds = self._found(arguments)
        if holds is None:
            answers = (rule.decide, below.action if rule.otherwise is None else rule.otherwise)
            strictest = max(answers, key=_ORDER.index)
            return Decision(strictest, joined((self._why, _UNSURE)))
        if holds:
            return Decision(rule.decide, self._why)
        return None if rule.otherwise is None else Decision(rule.otherwise, f"not so: {self._why}")

    @property
    def _why(self) -> str:
        rule = self.rule
        said = rule.reason or rule.said
        return f"{said} ({rule.place})" if rule.place else said

    def _found(self, arguments: Any) -> bool | None:
        """Whether the condition holds; None if that cannot be told."""
        values = list(_values(arguments, self._steps))
        if not values or len(values) > MAX_VALUES:
            return None
        unclear = False
        for value in values:
            holds = value is not Unclear and self._holds(value)
            if value is Unclear or holds is Unclear:
                unclear = True
            elif holds is not self._loosens:
                return not self._loosens
        return None if unclear else self._loosens


def _values(value: Any, steps: list[str]) -> Iterator[Any]:
    """Give what a pointer leads to; `Unclear` for each way that ends before."""
    if not steps:
        yield value
        return
    step, rest = steps[0], steps[1:]
    if step == "*" and isinstance(value, (dict, list)):
        for item in list(value.values() if isinstance(value, dict) else value)[: MAX_VALUES + 1]:
            yield from _values(item, rest)
    elif isinstance(value, dict) and step in value:
        if _has_other_case(value, step):
            yield Unclear  # a server that does not mind the case of keys takes either
        yield from _values(value[step], rest)
    elif isinstance(value, list) and step.isdecimal() and int(step) < len(value):
        yield from _values(value[int(step)], rest)
    else:
        yield Unclear


def _has_other_case(value: dict[str, Any], key: str) -> bool:
    folded = key.casefold()
    return any(other.casefold() == folded and other != key for other in value)


def _condition(rule: ArgumentRule, *, loosens: bool) -> Callable[[Any], Any]:
    """Make the test of one value: true, false, or `Unclear`."""
    if rule.under:
        folders = [PathPattern(folder) for folder in rule.under]
        return lambda value: _in_any(path_of(value), folders, strictly=loosens)
    if rule.host:
        hosts = [HostPattern(host) for host in rule.host]
        return lambda value: _in_any(host_of(value), hosts, strictly=loosens)
    if rule.equals:
        return lambda value: any(_same(value, one) for one in rule.equals)
    if rule.matches:
        patterns = rule.matches
        return lambda value: (
            any(fnmatchcase(value, one) for one in patterns) if isinstance(value, str) else Unclear
        )
    return _between(rule)


def _in_any(found: Any, patterns: Iterable[Any], *, strictly: bool) -> Any:
    if found is Unclear:
        return Unclear
    return any(pattern.has(found, strictly=strictly) for pattern in patterns)


def _between(rule: ArgumentRule) -> Callable[[Any], Any]:
    above, at_least, below, at_most = (
        None if getattr(rule, name) is None else exact_number(getattr(rule, name))
        for name in _BOUNDS
    )

    def holds(value: Any) -> Any:
        number = exact_number(value)
        if number is Unclear:
            return Unclear
        return (
            (above is None or number > above)
            and (at_least is None or number >= at_least)
            and (below is None or number < below)
            and (at_most is None or number <= at_most)
        )

    return holds


def _same(value: Any, one: Any) -> bool:
    if isinstance(value, bool) or isinstance(one, bool):
        return value is one
    if isinstance(value, (int, float)) and isinstance(one, (int, float)):
        return bool(exact_number(value) == exact_number(one))
    return bool(value == one)


def _fits(pattern: str, name: str) -> bool:
    return fnmatchcase(name, pattern) if is_pattern(pattern) else pattern == name


def _strictness(decision: Decision) -> int:
    return _ORDER.index(decision.action)
