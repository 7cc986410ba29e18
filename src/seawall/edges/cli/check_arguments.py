"""`seawall check-arguments`: what would be mended in the arguments of a call, and what refused."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Any

import msgspec

from seawall.contract.failure import Failure, dotted
from seawall.contract.policy import RunPolicy
from seawall.contract.result import ToolResult
from seawall.contract.tool import Tool
from seawall.edges.cli.call import read
from seawall.edges.cli.exits import Exit, exit_of
from seawall.edges.cli.mcp_sources import McpChoice, with_tools
from seawall.edges.cli.paper import Paper
from seawall.edges.cli.sources import policies_from, told_of_bundled
from seawall.orchestration.unknown import no_such_tool, quarantined
from seawall.pipeline.arguments.faults.explain import show
from seawall.pipeline.arguments.likeness import nearest
from seawall.pipeline.arguments.prepare import Preparing
from seawall.pipeline.invocation import Invocation
from seawall.pipeline.session import Session
from seawall.policy.model import Policies

if TYPE_CHECKING:
    from seawall.registry.registry import Registry

_MENDED = re.compile(
    r"(?P<path>/.*?)? ?(?P<rule>(?:null )?dropped|matched to a listed value|wrapped in a list"
    r"|\w+ to \w+)",
    re.DOTALL,
)


class CheckOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What the command line said."""

    registry: str | None = None
    mcp: McpChoice = McpChoice()
    policy: str | None = None
    as_json: bool = False


class Checked(msgspec.Struct, frozen=True, kw_only=True):
    """What became of the arguments of one call that is not made."""

    tool: Tool
    policy: RunPolicy
    mended: tuple[tuple[str, str], ...]
    """JSON Pointers, blank for the whole, and what was done there."""
    ignored: tuple[tuple[str, str | None], ...]
    """Names that the tool does not take, each with the one that was probably meant."""
    arguments: Any
    """What the tool would get; None if they are refused."""
    refusal: ToolResult | None

    @property
    def failure(self) -> Failure | None:
        """Why they are refused."""
        return None if self.refusal is None else self.refusal.failure


def check(tool: str, arguments: str | None, options: CheckOptions) -> Exit:
    """Check the arguments, write what came of it, and say with which code to end."""
    text = read(sys.stdin) if arguments == "-" else arguments
    policies = policies_from(options.policy) or Policies.default()

    async def run(registry: Registry) -> Exit:
        return _checked(registry, policies, tool, text, options)

    return with_tools(options.registry, options.mcp, Paper(sys.stderr), run)


def _checked(
    registry: Registry, policies: Policies, tool: str, text: str | None, options: CheckOptions
) -> Exit:
    found = registry.get(tool)
    if found is None or registry.quarantine_reason(tool) is not None:
        return _not_callable(registry, tool, options)
    checked = checked_arguments(found, policies.for_tool(found), text)
    if options.as_json:
        Paper().text(msgspec.json.encode(as_data(checked)).decode())
    else:
        _write(checked)
    return exit_of(checked.failure)


def checked_arguments(tool: Tool, policy: RunPolicy, text: str | None) -> Checked:
    """Prepare arguments as the pipeline would, under a policy that checks in any case."""
    prepare = Preparing(tool, msgspec.structs.replace(policy, check_mode="on"))
    call = Invocation(tool, policy, prepare, text, "", Session(), 0.0)
    refusal = call.prepared()
    known = tool.input_schema.get("properties", {})
    return Checked(
        tool=tool,
        policy=policy,
        mended=tuple(map(_place_and_rule, call.mended)),
        ignored=tuple((name, nearest(name, known)) for name in call.ignored),
        arguments=_taken(call) if refusal is None else None,
        refusal=refusal,
    )


def _taken(call: Invocation) -> dict[str, Any]:
    """What the tool gets: not what its own check leaves out."""
    bound = call.bound if isinstance(call.bound, dict) else call.arguments
    return {name: value for name, value in call.arguments.items() if name in bound}


def as_data(checked: Checked) -> dict[str, Any]:
    """Give what a program may want to know."""
    failure = checked.failure
    return {
        "tool": checked.tool.name,
        "valid": failure is None,
        "exit_code": int(exit_of(failure)),
        "coercion": checked.policy.coercion,
        "mended": [{"path": path, "rule": rule} for path, rule in checked.mended],
        "ignored": [{"name": name, "meant": meant} for name, meant in checked.ignored],
        "arguments": checked.arguments,
        "failure": None if failure is None else msgspec.to_builtins(failure),
    }


def _place_and_rule(said: str) -> tuple[str, str]:
    found = _MENDED.fullmatch(said)
    return (found["path"] or "", found["rule"]) if found else ("", said)


def _not_callable(registry: Registry, name: str, options: CheckOptions) -> Exit:
    reason = registry.quarantine_reason(name)
    result = no_such_tool(registry, name, "") if reason is None else quarantined(name, reason, "")
    errors = Paper(sys.stderr)
    errors.line(result.render())
    if reason is None:
        told_of_bundled(errors, options.registry, options.mcp)
    return exit_of(result.failure)


def _write(checked: Checked) -> None:
    paper = Paper()
    if checked.policy.check_mode != "on":
        paper.line(
            f"Under this policy nothing is refused (check_mode {checked.policy.check_mode})."
        )
    for path, rule in checked.mended:
        paper.line((path or "the whole", "bold"), f": {rule}", lead="mended   ")
    for name, meant in checked.ignored:
        hint = f"; did you mean {meant}?" if meant else ""
        paper.line((name, "bold"), f": the tool does not take it{hint}", lead="ignored  ")
    if checked.refusal is None:
        paper.line(lead="gives    ")
        paper.text(show(checked.arguments, checked.tool.input_schema))
        return
    failure = checked.failure
    for issue in failure.issues if failure else ():
        place = dotted(issue.path) or "the whole"
        paper.line((place, "bold"), f": {issue.message}", lead="refused  ")
    Paper(sys.stderr).line(checked.refusal.render())
