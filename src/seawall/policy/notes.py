"""What is allowed in a policy but was probably not meant; said when it is loaded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rapidfuzz import fuzz, process

from seawall.layers.timeout import DURATION_MARGIN_S, shown_seconds
from seawall.policy.changes import Changes
from seawall.policy.origins import READY_MADE, dotted
from seawall.policy.patterns import Pattern

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from seawall.contract.policy import RunPolicy
    from seawall.contract.tool import Tool
    from seawall.layers.risk_rules import ArgumentRule
    from seawall.policy.explain import Given


def named_rule(name: str) -> str:
    """Give how a rule by a tool's exact name is said."""
    return dotted(("tools", name))


_CLOSE = 80
"""Of 100: a rule for a tool that is simply not there is no mistake, a misspelt one is."""


def duration_note(tool: Tool, timeout: Given) -> str | None:
    """Say that a tool's known duration does not widen the timeout that was given to it by name."""
    if timeout.value is None or tool.duration is None:
        return None
    limit = f"{timeout.rule} gives {tool.name} {shown_seconds(timeout.value)}"
    if isinstance(tool.duration, str):
        return f"{limit}; its argument {tool.duration!r}, which holds its duration, widens nothing"
    if tool.duration + DURATION_MARGIN_S <= timeout.value:
        return None
    return f"{limit}, although it takes {shown_seconds(tool.duration)} by its own word"


def default_note(default: RunPolicy | Changes | None, where: str) -> str | None:
    """Say that a default of single values leaves most tools without a timeout."""
    if not isinstance(default, Changes) or default.preset or "timeout_s" in default.values:
        return None
    return (
        f"{where} gives neither preset nor timeout_s: tools of which nothing else is said have no"
        " timeout (write timeout_s = false if that is meant)"
    )


READERS_ONLY = ("cache", "hedge")
"""Tables of a policy that do nothing for a tool that does more than read."""


def readers_notes(tool: Tool, found: Mapping[str, Given]) -> Iterable[str]:
    """Say which tables a rule by this tool's name gives in vain."""
    if tool.annotations.is_read_only:
        return
    for name in READERS_ONLY:
        given = found[name]
        if given.value is not None and given.rule.startswith(named_rule(tool.name)):
            yield f"{given.rule} gives {tool.name} a {name}, which is for tools that only read"


def fallback_note(tool: Tool, found: Mapping[str, Given], names: Collection[str]) -> str | None:
    """Say that the tool that is to stand in for this one is not there."""
    given = None if found["fallback"].value is None else found["fallback.tool"]
    if given is None or given.value is None or given.value in names:
        return None
    return f"{given.rule} lets {given.value} stand in for {tool.name}, but there is no such tool"


def circuit_note(tool: Tool, found: Mapping[str, Given]) -> str | None:
    """Say that all attempts of one call are enough to open the tool's circuit.

    Only where somebody wrote one of the two numbers: what comes with Seawall is meant.
    """
    if not tool.retry_safe or found["breaker"].value is None or not _counts_attempts(found):
        return None
    delays = found["delays_s"]
    tries = delays if delays.value else found["max_retries"]
    attempts = 1 + (len(delays.value) if delays.value else tries.value)
    threshold = found["breaker.threshold"]
    own = next((given for given in (threshold, tries) if not _is_ready_made(given.rule)), None)
    if own is None or attempts == 1 or threshold.value > attempts:
        return None
    return (
        f"{own.rule}: {tool.name} has breaker.threshold {threshold.value} and up to {attempts}"
        " attempts for each call: one failed call opens the circuit (raise the threshold, or count"
        " whole calls by breaker.outside_retry = true)"
    )


def _counts_attempts(found: Mapping[str, Given]) -> bool:
    """Whether failed attempts in a row are what opens the circuit."""
    other = ("outside_retry", "failure_rate", "slow_rate")
    is_on = found["breaker.mode"].value != "off"
    return is_on and not any(found[f"breaker.{name}"].value for name in other)


def _is_ready_made(rule: str) -> bool:
    """Whether the section that gave a value came with Seawall, whoever chose it."""
    section = rule.rpartition(" -> ")[2]
    return f"({READY_MADE}" in section or (section.startswith("preset ") and "(" not in section)


def idle_note(where: str, name: str | None, tools: Collection[str], *, is_own: bool) -> str | None:
    """Say that what stands in a policy fits no tool, if that is probably a mistake.

    It is if a name is nearly the same; and in a file of one's own, which is written for the tools
    that there are, always. `name` is None for what chooses tools by something else.
    """
    shown = "" if name is None or name in where else f" {name!r}"
    if name is not None:
        found = process.extractOne(name, tools, scorer=fuzz.ratio, score_cutoff=_CLOSE)
        if found:
            return f"{where}{shown} fits no tool; did you mean {found[0]}?"
    return f"{where}{shown} fits no tool" if is_own else None


def rule_note(rule: ArgumentRule, tools: Mapping[str, Tool]) -> str | None:
    """Say that a rule for arguments looks at no tool, or at an argument that none of its has."""
    where = f"risk.rules ({rule.place})" if rule.place else "risk.rules"
    fits = Pattern(rule.tool).fits
    fitting = [tool for name, tool in tools.items() if fits(name)]
    if not fitting:
        is_own = bool(rule.place) and not rule.place.startswith(READY_MADE)
        return idle_note(where, rule.tool, list(tools), is_own=is_own)
    name = rule.steps[0]
    schemas = [tool.input_schema for tool in fitting]
    known = {one for schema in schemas for one in schema.get("properties", ())}
    if name == "*" or name in known or any(_ELSEWHERE & schema.keys() for schema in schemas):
        return None
    has = f"{where} looks at {rule.argument}, but {rule.tool} has no argument {name!r}"
    near = process.extractOne(name, known, scorer=fuzz.ratio, score_cutoff=_CLOSE)
    if near:
        return f"{has}; did you mean {near[0]}?"
    return has if known else None


_ELSEWHERE = {"$ref", "$dynamicRef", "allOf", "anyOf", "oneOf", "if", "patternProperties"}
"""What a schema may say of arguments beside its `properties`."""


def server_note(where: str, server: str, servers: Collection[str]) -> str:
    """Say that a family is for a server that the configuration does not have."""
    found = process.extractOne(server, servers, scorer=fuzz.ratio, score_cutoff=_CLOSE)
    meant = f"; did you mean {found[0]}?" if found else f"; it has {', '.join(servers) or 'none'}"
    return f"{where} is for the server {server!r}, which the configuration does not have{meant}"
