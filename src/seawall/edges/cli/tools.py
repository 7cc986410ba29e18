"""`seawall tools`: which tools there are, and everything about one of them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import msgspec

from seawall.contract.annotations import Risk
from seawall.edges.cli.brief import plain, write_brief
from seawall.edges.cli.exits import Exit
from seawall.edges.cli.mcp_sources import McpChoice, with_tools
from seawall.edges.cli.sources import policies_from, told_of_bundled
from seawall.layers.risk_rules import RuledPolicy
from seawall.orchestration.unknown import no_such_tool
from seawall.policy.model import Policies

if TYPE_CHECKING:
    from seawall.contract.annotations import Annotations
    from seawall.contract.policy import RunPolicy
    from seawall.contract.tool import Tool
    from seawall.edges.cli.paper import Paper
    from seawall.layers.risk_rules import ArgumentRule
    from seawall.registry.registry import Registry

COLUMNS = ("name", "risk", "annotations", "timeout", "retries", "rate", "breaker", "category")

_HINTS = ("read_only", "destructive", "idempotent", "open_world", "sensitive")


class ToolsOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What the command line said."""

    registry: str | None = None
    mcp: McpChoice = McpChoice()
    policy: str | None = None
    describe: str | None = None
    as_json: bool = False


def tools(options: ToolsOptions, paper: Paper, errors: Paper) -> Exit:
    """List the tools of a registry, or describe one of them."""
    policies = policies_from(options.policy) or Policies.default()

    async def run(registry: Registry) -> Exit:
        return _shown(registry, policies, options, paper, errors)

    return with_tools(options.registry, options.mcp, errors, run)


def _shown(
    registry: Registry, policies: Policies, options: ToolsOptions, paper: Paper, errors: Paper
) -> Exit:
    for note in policies.notes(registry):
        errors.line(note, lead="note: ")
    if options.describe is not None:
        return _describe(registry, policies, options, paper, errors)
    if options.as_json:
        paper.text(_json([summary(tool, registry, policies) for tool in registry]))
        return Exit.OK
    if not len(registry):
        errors.text(f"The registry has no tools.{_how_functions_are_named(options.registry)}")
        return Exit.OK
    paper.table(COLUMNS, [_row(tool, registry, policies) for tool in registry])
    if paper.is_terminal:
        paper.line(("timeout: of an attempt; breaker: failures in a row, first cooldown", "dim"))
    for name, reason in registry.quarantined().items():
        errors.text(f"{name} is set aside: {reason}")
    return Exit.OK


def _how_functions_are_named(registry: str | None) -> str:
    """Say what a module of plain functions lacks: they are no tools until somebody says so."""
    if registry is None or ":" in registry:
        return ""
    return f" Functions of a module need @tool, or are named: {registry}:FUNCTION."


def summary(tool: Tool, registry: Registry, policies: Policies) -> dict[str, Any]:
    """Give one tool in short, for programs."""
    policy = policies.for_tool(tool)
    return {
        "name": tool.name,
        "description": tool.description,
        "category": tool.category,
        "family": tool.family,
        "risk": risk_name(tool),
        "annotations": given_hints(tool.annotations),
        "retry_safe": tool.retry_safe,
        "quarantined": registry.quarantine_reason(tool.name),
        "retries": _retries(tool, policy),
        "policy": msgspec.to_builtins(policy),
    }


def details(tool: Tool, registry: Registry, policies: Policies) -> dict[str, Any]:
    """Give everything that is known about one tool, for programs."""
    return {
        **summary(tool, registry, policies),
        "title": tool.title,
        "tags": list(tool.tags),
        # Of a tool that is set aside they may be anything.
        "input_schema": tool.input_schema,
        "output_schema": tool.output_schema,
        "examples": [{"arguments": given, "result": result} for given, result in tool.examples],
        "execution": tool.execution,
        "exclusive": tool.exclusive,
        "replay": tool.replay,
        "needs": list(tool.needs),
        "self_gated": tool.self_gated,
        "duration": tool.duration,
        "imported": tool.imported,
        "approval": approval_of(tool, policies),
        "explained": {
            key: {"value": given.value, "rule": given.rule}
            for key, given in policies.explain(tool).items()
        },
    }


def approval_of(tool: Tool, policies: Policies) -> dict[str, Any]:
    """Say whether a person is asked about a tool, for programs; rules may say otherwise."""
    policy = policies.risk.policy()
    rules: tuple[ArgumentRule, ...] = ()
    if isinstance(policy, RuledPolicy):
        rules = policy.rules_for(tool)
        base = policy.base.for_tool(tool, policy.risk_of(tool))
    else:
        base = policy.for_tool(tool)
    return {
        "decision": base.action.value,
        "reason": base.reason,
        "rules": [
            {"rule": rule.said, "reason": rule.reason, "place": rule.place} for rule in rules
        ],
    }


def risk_name(tool: Tool) -> str:
    """Say the risk in one word."""
    return Risk(tool.effective_risk).name.lower()


def given_hints(annotations: Annotations) -> dict[str, bool]:
    """Give the hints that somebody gave, explicit refusals included."""
    found = {hint: getattr(annotations, hint) for hint in _HINTS}
    return {hint: value for hint, value in found.items() if value is not None}


def _row(tool: Tool, registry: Registry, policies: Policies) -> tuple[str, ...]:
    if registry.quarantine_reason(tool.name) is not None:
        return (tool.name, risk_name(tool), "set aside", "", "", "", "", tool.category)
    policy = policies.for_tool(tool)
    return (
        tool.name,
        risk_name(tool),
        _words(tool.annotations),
        _seconds(policy.timeout_s),
        str(_retries(tool, policy)),
        policy.rate or "no limit",
        _breaker(policy),
        tool.category,
    )


def _words(annotations: Annotations) -> str:
    hints = given_hints(annotations)
    if hints.get("read_only"):
        hints.pop("idempotent", None)  # what changes nothing is that anyway
    said = [hint.replace("_", "-") for hint, value in hints.items() if value]
    return ", ".join(said) or ("changing" if annotations.declared else "not declared")


def _retries(tool: Tool, policy: RunPolicy) -> int:
    """Say how often it is really tried again: never, if that might repeat an effect."""
    return policy.attempts - 1 if tool.retry_safe else 0


def _seconds(seconds: float | None) -> str:
    return "no limit" if seconds is None else f"{seconds:g} s"


def _breaker(policy: RunPolicy) -> str:
    breaker = policy.breaker
    if breaker is None or breaker.mode == "off":
        return "none"
    shadow = " (shadow)" if breaker.mode == "shadow" else ""
    return f"{breaker.threshold}, {breaker.cooldown_s:g} s{shadow}"


def _describe(
    registry: Registry, policies: Policies, options: ToolsOptions, paper: Paper, errors: Paper
) -> Exit:
    name = options.describe or ""
    tool = registry.get(name)
    if tool is None:
        errors.line(no_such_tool(registry, name, "").render())
        told_of_bundled(errors, options.registry, options.mcp)
        return Exit.NOT_FOUND
    if options.as_json:
        paper.text(_json(details(tool, registry, policies)))
    else:
        _Page(paper).write(tool, registry, policies)
    return Exit.OK


class _Page:
    """One tool for a reader."""

    def __init__(self, paper: Paper) -> None:
        self._paper = paper

    def write(self, tool: Tool, registry: Registry, policies: Policies) -> None:
        self._paper.line((tool.name, "bold"), f"  {tool.title}" if tool.title else "")
        self._paper.text(tool.description)
        reason = registry.quarantine_reason(tool.name)
        if reason is not None:
            self._paper.line((f"Set aside: {reason}", "red"))
        self._facts(tool)
        self._block("arguments", tool.input_schema)
        if tool.output_schema is not None:
            self._block("result", tool.output_schema)
        self._examples(tool)
        if reason is None:
            self._approval(tool, policies)
            self._policy(tool, policies)

    def _facts(self, tool: Tool) -> None:
        self._title("about")
        retried = "yes" if tool.retry_safe else "no, a second call may have a second effect"
        facts = {
            "risk": risk_name(tool),
            "annotations": _words(tool.annotations),
            "retry-safe": retried,
            "category": tool.category,
            "family": tool.family or "",
            "tags": ", ".join(tool.tags),
            "needs": ", ".join(tool.needs),
            "execution": tool.execution,
            "exclusive": tool.exclusive or "",
            "duration": "" if tool.duration is None else str(tool.duration),
            "asks itself": "yes" if tool.self_gated else "",
            "imported": "yes" if tool.imported else "",
        }
        for name, value in facts.items():
            if value:
                self._paper.line(value, lead=f"  {name:<12} ")

    def _block(self, title: str, data: Any) -> None:
        self._title(title)
        text = json.dumps(data, indent=2, ensure_ascii=False, default=str)
        self._paper.text("\n".join(f"  {line}" for line in text.splitlines()))

    def _examples(self, tool: Tool) -> None:
        if tool.examples:
            self._title("examples")
        for given, result in tool.examples:
            self._paper.line(_json(given), lead="  with ")
            self._paper.line(result if isinstance(result, str) else _json(result), lead="  gives ")

    def _approval(self, tool: Tool, policies: Policies) -> None:
        self._title("approval")
        found = approval_of(tool, policies)
        self._paper.line(f"{found['decision']} ({found['reason']})", lead="  ")
        for rule in found["rules"]:
            said = ": ".join(part for part in (rule["rule"], rule["reason"]) if part)
            place = f" ({rule['place']})" if rule["place"] else ""
            self._paper.line(f"{said}{place}", lead="  ")

    def _policy(self, tool: Tool, policies: Policies) -> None:
        self._title("policy")

        def say(key: str, value: Any) -> str:
            return _in_use(key, value, tool)

        found = policies.explain(tool)
        write_brief(found, say, self._paper, ": see seawall policy explain --full, or --json")

    def _title(self, title: str) -> None:
        self._paper.line("")
        self._paper.line((title, "bold"))


def _in_use(key: str, value: Any, tool: Tool) -> str:
    """Write a value of the policy; of retries that are never made, say so."""
    unused = key in ("max_retries", "delays_s") and value and not tool.retry_safe
    return f"{plain(value)} (unused: not retry-safe)" if unused else plain(value)


def _json(data: Any) -> str:
    return json.dumps(data, ensure_ascii=False, default=str)
