"""`seawall call`: one call of one tool through all layers."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import msgspec

from seawall.contract.content import TextContent, content_to_json
from seawall.contract.errors import ConfigurationError, Fault
from seawall.edges.cli.exits import Exit, exit_of
from seawall.edges.cli.paper import Paper
from seawall.edges.cli.running import NOBODY, RunOptions, with_pipeline
from seawall.edges.cli.sources import told_of_bundled

if TYPE_CHECKING:
    from typing import TextIO

    from seawall.contract.content import Content
    from seawall.contract.result import ToolResult
    from seawall.orchestration.pipeline import Pipeline

MAX_INPUT = 8 * 1024 * 1024
"""Characters read from standard input; the pipeline has narrower bounds of its own."""


class CallOptions(RunOptions, frozen=True, kw_only=True):
    """What the command line said about the call."""

    once: str | None = None
    timeout_s: float | None = None
    deadline_s: float | None = None


def call(tool: str, arguments: str | None, options: CallOptions) -> Exit:
    """Run the call, write its result, and say with which code to end."""
    text = read(sys.stdin) if arguments == "-" else arguments

    async def run(pipeline: Pipeline) -> ToolResult:
        if options.once is not None and (pipeline.state is None or not pipeline.state.durable):
            Paper(sys.stderr).line("note: without --state the key of --once is forgotten at once")
        return await pipeline.call(
            tool,
            text,
            idempotency_key=options.once,
            timeout_s=options.timeout_s,
            deadline_s=options.deadline_s,
            on_progress=None if options.as_json else _told,
        )

    result = with_pipeline(options, run, reads_input=arguments == "-", wanted=tool)
    _write(result, as_json=options.as_json)
    if not options.as_json and result.failure and result.failure.reason == "tool_not_found":
        told_of_bundled(Paper(sys.stderr), options.registry, options.mcp)
    return exit_of(result.failure)


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
        said = f"standard input holds more than {MAX_INPUT} characters; send less in one call"
        raise ConfigurationError([Fault(said, "arguments")])
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
    paper.line(result.render())
    if result.failure.reason == "approval_required":
        waits = (result.metadata or {}).get("approval_id")
        paper.text(f"It waits for an answer: seawall approvals show {waits}" if waits else NOBODY)


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
