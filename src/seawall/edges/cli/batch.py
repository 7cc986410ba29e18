"""`seawall batch`: the steps of a file, one after the other, through all layers."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from seawall.contract.errors import ConfigurationError, Fault
from seawall.edges.cli.call import MAX_INPUT, as_data
from seawall.edges.cli.exits import Exit, exit_of
from seawall.edges.cli.paper import Paper
from seawall.edges.cli.running import NOBODY, RunOptions, with_pipeline
from seawall.edges.cli.sources import told_of_bundled
from seawall.orchestration.batch import DEFAULT_BUDGET_S, BatchRunner
from seawall.orchestration.template import TemplateFault, document

if TYPE_CHECKING:
    from seawall.orchestration.outcome import BatchOutcome
    from seawall.orchestration.pipeline import Pipeline


class BatchOptions(RunOptions, frozen=True, kw_only=True):
    """What the command line said about the batch."""

    budget_s: float | None = None


def batch(file: str, options: BatchOptions) -> Exit:
    """Run the steps, write what came of them, and say with which code to end."""
    text = _read(file)
    budget_s = _budget_of(text) if options.budget_s is None else options.budget_s

    async def run(pipeline: Pipeline) -> BatchOutcome:
        return await BatchRunner(pipeline).run(text, budget_s=budget_s)

    outcome = with_pipeline(options, run, reads_input=file == "-")
    _write(outcome, as_json=options.as_json)
    refusal = outcome.refusal
    if not options.as_json and refusal is not None and refusal.reason == "tool_not_found":
        told_of_bundled(Paper(sys.stderr), options.registry, options.mcp)
    return exit_code(outcome)


def _budget_of(text: str) -> Any:
    try:
        found = document(text)
    except TemplateFault:
        return DEFAULT_BUDGET_S  # what is wrong is said where the steps are read
    return found.get("budget_s", DEFAULT_BUDGET_S) if isinstance(found, dict) else DEFAULT_BUDGET_S


def _read(file: str) -> str:
    try:
        text = sys.stdin.read(MAX_INPUT + 1) if file == "-" else Path(file).read_text("utf-8")
    except OSError as error:
        said = f"cannot be read: {error.strerror or type(error).__name__}"
        raise ConfigurationError([Fault(said, file=file)]) from None
    except UnicodeDecodeError:
        raise ConfigurationError([Fault("is no UTF-8 text; save it as that", file=file)]) from None
    if len(text) > MAX_INPUT:
        said = f"holds more than {MAX_INPUT} characters; run its steps in parts"
        raise ConfigurationError([Fault(said, file=file)])
    return text


def exit_code(outcome: BatchOutcome) -> Exit:
    """Give the code of the step that failed, or of what kept all of them from running."""
    if outcome.halted_at is not None:
        return exit_of(outcome.results[outcome.halted_at].failure)
    return exit_of(outcome.refusal)


def _write(outcome: BatchOutcome, *, as_json: bool) -> None:
    if as_json:
        Paper().text(msgspec.json.encode(as_json_data(outcome)).decode())
        return
    paper = Paper(sys.stderr) if outcome.refusal is not None else Paper()
    paper.text(outcome.report())
    if outcome.refusal is not None and outcome.refusal.reason == "approval_required":
        paper.text(NOBODY)


def as_json_data(outcome: BatchOutcome) -> dict[str, Any]:
    """Give what a program may want to know."""
    refusal = outcome.refusal
    return {
        "complete": outcome.complete,
        "at_step": outcome.at_step,
        "timed_out": outcome.timed_out,
        "exit_code": int(exit_code(outcome)),
        "refusal": None if refusal is None else msgspec.to_builtins(refusal),
        "steps": [
            {"status": status, **as_data(result)}
            for status, result in zip(outcome.statuses, outcome.results, strict=True)
        ],
    }
