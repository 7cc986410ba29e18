"""Which policy a tool runs under.

Rules compose from the least specific to the most; a later one says its changes over what the tool
would get without it, and one that names a `preset`, or is a whole `RunPolicy`, starts anew:

    1. by annotations: open world -> `network`, retry-safe -> `quick_read`, else -> `mutating`
       or, if there is one, the default: it replaces this and starts from a policy without limits
    2. families that choose the tool, in the order they are written
    3. the family that the tool itself names
    4. name patterns, the longest (most plain characters) last
    5. the exact name

Open world means the hint that was given. Where nobody gave it, MCP's default (open world) holds
for an imported tool; a tool of this program's own code is taken to reach nothing outside.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from seawall.contract.approval import WaitingRoom
from seawall.contract.errors import ConfigurationError, Fault
from seawall.contract.sentences import joined
from seawall.policy.changes import Changes, Family, gives_timeout
from seawall.policy.checks import sound_sections
from seawall.policy.explain import Given, Rule, explained, policy_from, settle
from seawall.policy.members import Members
from seawall.policy.notes import (
    circuit_note,
    default_note,
    duration_note,
    fallback_note,
    idle_note,
    readers_notes,
    rule_note,
    server_note,
)
from seawall.policy.origins import Origins
from seawall.policy.patterns import Pattern, is_pattern
from seawall.policy.rules import Rules
from seawall.policy.settings import (
    AuditSettings,
    ConsoleSettings,
    HttpCheckSettings,
    LoopSettings,
    RiskSettings,
    SharedSettings,
    TraceSettings,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping
    from pathlib import Path

    from seawall.contract.policy import RunPolicy
    from seawall.contract.tool import Tool
    from seawall.policy.origins import KeyPath

_NOTHING: Mapping[str, Any] = MappingProxyType({})

_LOOP = LoopSettings()

_BY_ANNOTATIONS = {
    "open world": "network",
    "open world was not denied": "network",
    "retry-safe": "quick_read",
    "neither open world nor retry-safe": "mutating",
    "none given": "mutating",
}

_QUESTIONS = ("ask_user", "ask_user_choice")
"""Tools that wait for a person: a timeout would cut the person short."""

_MOST_REMEMBERED = 4_096
"""Resolved policies; most tools share a few."""


class Policies:
    """Finds the policy of each tool, and says which rule gave each value.

    Keys of `tools` are names; those with `*`, `?` or `[…]` are patterns. A family that is given
    without a `Family` is for the tools that name it. All faults are told in one error.
    """

    def __init__(
        self,
        default: RunPolicy | Changes | None = None,
        tools: Mapping[str, RunPolicy | Changes] = _NOTHING,
        families: Mapping[str, Family | RunPolicy | Changes] = _NOTHING,
        *,
        presets: Mapping[str, RunPolicy | Changes] = _NOTHING,
        risk: RiskSettings | None = None,
        trace: TraceSettings | None = None,
        loop: LoopSettings | None = _LOOP,
        console: ConsoleSettings | None = None,
        audit: AuditSettings | None = None,
        approvals: WaitingRoom | None = None,
        http_check: HttpCheckSettings | None = None,
        shared: SharedSettings | None = None,
        origins: Origins | None = None,
    ) -> None:
        self.risk = risk or RiskSettings()
        self.trace = trace or TraceSettings()
        self.loop = loop
        """When a model is taken to go in circles; None: nobody looks."""
        self.console = console or ConsoleSettings()
        self.audit = audit or AuditSettings()
        self.approvals = approvals or WaitingRoom()
        self.http_check = http_check or HttpCheckSettings()
        self.shared = shared or SharedSettings()
        origins = origins or Origins()
        grouped = {
            name: family if isinstance(family, Family) else Family(policy=family)
            for name, family in families.items()
        }
        sections = sound_sections(default, tools, grouped, presets, origins)
        rules = Rules(sections, origins)
        self._default = rules.default() if default is not None else None
        self._by_annotations = {
            reason: rules.by_annotations(reason, preset)
            for reason, preset in _BY_ANNOTATIONS.items()
        }
        self._chosen_by = {name: Members(name, family) for name, family in grouped.items()}
        self._families = [
            (members, rules.rule(("families", name))) for name, members in self._chosen_by.items()
        ]
        named = {name: rules.rule(("tools", name)) for name in tools}
        self._exact = {name: rule for name, rule in named.items() if not is_pattern(name)}
        self._patterns = sorted(
            ((Pattern(name), rule) for name, rule in named.items() if is_pattern(name)),
            key=lambda pair: pair[0].rank,
        )
        self._timed = {name for name in self._exact if gives_timeout(sections["tools", name])}
        self._default_note = default_note(default, origins.said(("default",)))
        self._origins = origins
        self._composed: dict[tuple[Rule, ...], RunPolicy] = {}
        origins.check()

    @classmethod
    def load(cls, path: str | Path, *, environment: Mapping[str, str] | None = None) -> Policies:
        """Read a policy file and those that it extends; see `seawall.policy.load`.

        `environment`, such as `os.environ`, may change single values; see
        `seawall.policy.overrides`.
        """
        from seawall.policy.load import read_policy_file  # noqa: PLC0415 - only files need it

        return cls(**read_policy_file(path, environment))

    @classmethod
    def default(cls) -> Policies:
        """What holds where no policies are given: the same as `policies/default.toml`."""
        return cls(tools=dict.fromkeys(_QUESTIONS, Changes(preset="legacy")))

    def for_tool(self, tool: Tool) -> RunPolicy:
        """Find the policy that calls of this tool run under."""
        rules = self._rules(tool)
        found = self._composed.get(rules)
        if found is None:
            found = _composed(tool, settle(rules))
            if len(self._composed) >= _MOST_REMEMBERED:
                self._composed.clear()
            self._composed[rules] = found
        return found

    def explain(self, tool: Tool) -> dict[str, Given]:
        """Give every value of the tool's policy, `breaker.*` dotted, and the rule it is from."""
        return explained(settle(self._rules(tool)))

    def families_of(self, tool: Tool) -> tuple[str, ...]:
        """Name the families whose rules count for a tool, in the order that they count."""
        chosen = [name for name, one in self._chosen_by.items() if one.chosen(tool)]
        named = [name for name in self._chosen_by if name == tool.family]
        return (*(name for name in chosen if name not in named), *named)

    def names_timeout(self, tool: Tool) -> bool:
        """Whether a rule by this tool's exact name sets `timeout_s`: then nothing widens it."""
        return tool.name in self._timed

    def duration_note(self, tool: Tool) -> str | None:
        """Say that a timeout given by exact name is kept, although the tool may take longer."""
        if not self.names_timeout(tool):
            return None
        return duration_note(tool, settle(self._rules(tool))["timeout_s"])

    def notes(self, tools: Iterable[Tool] = ()) -> tuple[str, ...]:
        """Say what is allowed but was probably not meant, for the tools that there are."""
        by_name = {tool.name: tool for tool in tools}
        found = (
            self._default_note,
            *map(self.duration_note, by_name.values()),
            *(note for tool in by_name.values() for note in self._optional_notes(tool, by_name)),
            *(self._idle_note(by_name, path, name) for path, name in self._idle(by_name)),
            *(rule_note(rule, by_name) for rule in self.risk.rules if by_name),
        )
        return tuple(filter(None, found))

    def server_notes(self, servers: Iterable[str]) -> tuple[str, ...]:
        """Say which families are for a server that is not among these."""
        present = tuple(servers)
        return tuple(
            server_note(self._origins.said(("families", name)), server, present)
            for name, members in self._chosen_by.items()
            for server in members.servers
            if server not in present
        )

    def _idle(self, tools: Mapping[str, Tool]) -> Iterator[tuple[KeyPath, str | None]]:
        """Find what fits none of the tools: its path, and the name or pattern that it is about."""
        if not tools:
            return
        yield from ((("tools", name), name) for name in self._exact if name not in tools)
        for pattern, _ in self._patterns:
            if not any(map(pattern.fits, tools)):
                yield ("tools", pattern.text), pattern.text
        for name, members in self._chosen_by.items():
            if not any(members.chosen(tool) or members.named_by(tool) for tool in tools.values()):
                yield ("families", name), None
        listed: dict[KeyPath, Iterable[str]] = {
            ("risk", "allow"): self.risk.allow or (),
            ("risk", "ask"): self.risk.ask,
            ("risk", "deny"): self.risk.deny,
            ("loop", "exempt"): () if self.loop is None else self.loop.exempt,
        }
        listed |= {("risk", "tools", name): (name,) for name in self.risk.tools}
        for path, names in listed.items():
            yield from ((path, name) for name in names if not any(map(Pattern(name).fits, tools)))

    def _idle_note(self, tools: Mapping[str, Tool], path: KeyPath, name: str | None) -> str | None:
        return idle_note(
            self._origins.said(path),
            name,
            sorted(tools.keys() - self._exact.keys() if path[0] == "tools" else tools),
            is_own=self._origins.is_own(path),
        )

    def _optional_notes(self, tool: Tool, names: Collection[str]) -> Iterable[str | None]:
        found = settle(self._rules(tool))
        yield from readers_notes(tool, found)
        yield fallback_note(tool, found, names)
        yield circuit_note(tool, found)

    def _rules(self, tool: Tool) -> tuple[Rule, ...]:
        """Collect the rules for a tool, the least specific first."""
        exact = self._exact.get(tool.name)
        return (
            self._default or self._by_annotations[_reason(tool)],
            *(
                rule
                for members, rule in self._families
                if members.chosen(tool) and not members.named_by(tool)
            ),
            *(rule for members, rule in self._families if members.named_by(tool)),
            *(rule for pattern, rule in self._patterns if pattern.fits(tool.name)),
            *(() if exact is None else (exact,)),
        )


def _reason(tool: Tool) -> str:
    """Find what the hints say that counts for the policy."""
    hints = tool.annotations
    if hints.open_world:
        return "open world"
    if hints.open_world is None and tool.imported:
        return "open world was not denied"
    if hints.retry_safe:
        return "retry-safe"
    return "neither open world nor retry-safe" if hints.declared else "none given"


def _composed(tool: Tool, found: Mapping[str, Given]) -> RunPolicy:
    """Make the policy; rules that are sound alone may still not go together."""
    try:
        return policy_from(found)
    except ConfigurationError as error:
        raise ConfigurationError(
            [
                Fault(
                    joined((fault.message, _rules_of(fault.key, found))),
                    key=f"the policy of {tool.name}: {fault.key}",
                )
                for fault in error.faults
            ]
        ) from None


def _rules_of(key: str, found: Mapping[str, Given]) -> str:
    """Name the rules whose values do not go together: all that speak of one table."""
    section = key.partition(".")[0]
    names = (name for name in found if name.partition(".")[0] == section)
    rules = dict.fromkeys(found[name].rule for name in names if found[name].value is not None)
    return f"they are from {' and '.join(rules)}"
