"""`seawall call`: one call of one tool through all layers."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import msgspec

from seawall.contract.content import TextContent, content_to_json
from seawall.contract.errors import ConfigurationError, Fault
from seawall.edges.cli.asking import Terminal, allowed_once
from seawall.edges.cli.exits import Exit, exit_of
from seawall.edges.cli.mcp_sources import McpChoice, with_tools
from seawall.edges.cli.paper import Paper
from seawall.edges.cli.sources import kept, policies_from, recorded, state_from
from seawall.orchestration.pipeline import Pipeline

if TYPE_CHECKING:
    from typing import TextIO

    from seawall.contract.content import Content
    from seawall.contract.result import ToolResult
    from seawall.registry.registry import Registry

MAX_INPUT = 8 * 1024 * 1024
"""Characters read from standard input; the pipeline has narrower bounds of its own."""


class CallOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What the command line said about the call."""

    registry: str | None = None
    mcp: McpChoice = McpChoice()
    policy: str | None = None
    state: str | None = None
    once: str | None = None
    yes: bool = False
    timeout_s: float | None = None
    deadline_s: float | None = None
    record: str | None = None
    as_json: bool = False


def call(tool: str, arguments: str | None, options: CallOptions) -> Exit:
    """Run the call, write its result, and say with which code to end."""
    text = read(sys.stdin) if arguments == "-" else arguments
    terminal = Terminal()
    asks = options.yes or (arguments != "-" and terminal.is_there)
    confirm = (allowed_once if options.yes else terminal.confirm) if asks else None
    policies, state = policies_from(options.policy), state_from(options.state)
    errors = Paper(sys.stderr)
    if options.once is not None and (state is None or not state.durable):
        errors.text("note: without --state the key of --once is forgotten at once")

    async def run(registry: Registry) -> ToolResult:
        for note in policies.notes(registry) if policies else ():
            errors.text(f"note: {note}")
        with recorded(options.record, registry) as recorders:
            pipeline = Pipeline(
                registry, policies=policies, confirm=confirm, state=state, recorders=recorders
            )
            return await _called(pipeline, tool, text, options)

    result = with_tools(options.registry, options.mcp, errors, run, policies, state)
    _write(result, as_json=options.as_json)
    return exit_of(result.failure)


async def _called(
    pipeline: Pipeline, tool: str, arguments: str | None, options: CallOptions
) -> ToolResult:
    async with kept(pipeline.state), pipeline:
        return await pipeline.call(
            tool,
            arguments,
            idempotency_key=options.once,
            timeout_s=options.timeout_s,
            deadline_s=options.deadline_s,
            on_progress=None if options.as_json else _told,
        )


def _told(report: Any, done: float | None, total: float | None) -> None:
    """Show progress to a person; a program that reads the output is not disturbed."""
    paper = Paper(sys.stderr)
    if not paper.is_terminal:
        return
    said = report if isinstance(report, str) else report.text
    share = "" if done is None else f" ({done:g}{'' if total is None else f' of {total:g}'})"
    paper.text(f"… {said}{share}")


def read(stream: TextIO) -> str:
    """Read all of a stream; raises ConfigurationError if that is too much."""
    text = stream.read(MAX_INPUT + 1)
    if len(text) > MAX_INPUT:
        raise ConfigurationError(
            [Fault(f"standard input holds more than {MAX_INPUT} characters", "arguments")]
        )
    return text


def _write(result: ToolResult, *, as_json: bool) -> None:
    if as_json:
        Paper().text(msgspec.json.encode(as_data(result)).decode())
        return
    if result.failure is None:
        paper = Paper()
        for block in result.content:
            paper.text(_shown(block))
        return
    paper = Paper(sys.stderr)
    paper.text(result.render())
    if result.failure.reason == "approval_required":
        waits = (result.metadata or {}).get("approval_id")
        said = "Nobody can be asked here: run it on a terminal, or allow it with --yes."
        paper.text(f"It waits for an answer: seawall approvals show {waits}" if waits else said)


def _shown(block: Content) -> str:
    if isinstance(block, TextContent):
        return block.text
    kind = content_to_json(block)["type"]
    return f"[{kind}; its data is shown by --json]"


def as_data(result: ToolResult) -> dict[str, Any]:
    """Give what a program may want to know of a result."""
    failure = result.failure
    waits = (result.metadata or {}).get("approval_id")
    return {
        **({} if waits is None else {"approval_id": waits}),
        "tool": result.tool,
        "call_id": result.call_id,
        "is_error": result.is_error,
        "exit_code": int(exit_of(failure)),
        "text": result.text,
        "content": [content_to_json(block) for block in result.content],
        "structured_content": result.structured_content,
        "failure": None if failure is None else msgspec.to_builtins(failure),
        "attempts": result.attempts,
        "duration_ms": result.duration_ms,
    }
