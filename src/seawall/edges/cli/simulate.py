"""`seawall policy simulate`: what another policy would have done, in a table."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import msgspec

from seawall.contract.errors import ConfigurationError, Fault
from seawall.contract.sentences import counted
from seawall.edges.cli.exits import Exit
from seawall.edges.cli.sources import policy_path, registry_from
from seawall.orchestration.replay.report import Bound, simulate
from seawall.policy.model import Policies
from seawall.recording.shown import one_line
from seawall.recording.trace_file import read_trace

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from seawall.contract.tool import Tool
    from seawall.edges.cli.paper import Paper
    from seawall.orchestration.replay.explain import Difference
    from seawall.orchestration.replay.report import Effect, Report
    from seawall.recording.trace_file import Trace

COLUMNS = (
    *("", "calls", "answered", "refused", "timed out", "retries"),
    *("saved", "lost", "seconds added"),
)
REFUSED = ("refused", "by the layer", "calls")

DIFFERENCES = ("call", "tool", "arrived", "was", "simulated", "boundary", "ms from it", "follows")


class SimulateOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What the command line said."""

    traces: tuple[str, ...]
    policy: str
    baseline: str | None = None
    registry: str | None = None
    seed: int = 0
    bounds: dict[str, str | None] = {}
    explain: bool = False
    as_json: bool = False


def run_simulation(options: SimulateOptions, paper: Paper, errors: Paper) -> Exit:
    """Simulate, write what changes, and end with 1 if a bound is exceeded."""
    bounds = list(_bounds(options.bounds))
    if options.explain and options.baseline is None:
        why = "explains how the simulated baseline differs from what happened: give --baseline too"
        raise ConfigurationError([Fault(why, "--explain-differences")])
    candidate = loaded(options.policy)
    baseline = None if options.baseline is None else loaded(options.baseline)
    trace, tools = recorded_calls(options.traces, options.registry, errors)
    report = simulate(
        trace,
        candidate,
        baseline=baseline,
        tools=tools,
        seed=options.seed,
        explain=options.explain,
    )
    if options.as_json:
        paper.text(json.dumps(report.export(), ensure_ascii=False))
    else:
        write(report, paper)
    exceeded = [said for bound in bounds if (said := bound.exceeded(report))]
    for said in exceeded:
        errors.line(said, lead="exceeded: ")
    return Exit.TOOL_FAILED if exceeded else Exit.OK


def loaded(where: str) -> Policies:
    """Load a policy as it stands, whatever the environment says."""
    return Policies.load(policy_path(where))


def recorded_calls(
    files: tuple[str, ...], registry: str | None, errors: Paper
) -> tuple[Trace, Iterable[Tool]]:
    """Read a trace, of one file or several; say what is not as it should be."""
    trace = read_trace(*files)
    if not trace.calls:
        errors.line(f"no call is recorded in {', '.join(files)}", lead="note: ")
    tools: tuple[Tool, ...] = () if registry is None else tuple(registry_from(registry))
    known = {tool.name for tool in tools} | set(trace.tools)
    unknown = sorted({call.tool for call in trace.calls} - known)
    if unknown:
        names = ", ".join(map(one_line, unknown[:5]))
        errors.line(
            f"note: the trace does not say what {names} is like, so that policies choose by name"
            f" alone; give the tools with {'--registry' if registry is None else 'the registry'}"
        )
    return trace, tools


def _bounds(given: Mapping[str, str | None]) -> Iterable[Bound]:
    for name, text in given.items():
        if text is None:
            continue
        try:
            yield Bound.parse(name, text)
        except ValueError:
            said = f"is {text!r}; it takes a number of calls, or a share such as 1%"
            raise ConfigurationError([Fault(said, f"--max-{name.replace('_', '-')}")]) from None


def write(report: Report, paper: Paper) -> None:
    """Write a report for a reader: before, an arrow, after."""
    total = report.total
    simulated = report.against == "the baseline"
    than = f"under {report.against}" if simulated else report.against
    paper.line(
        f"{counted(total.after.calls, 'call')} played, {report.not_played} refused by gates and"
        f" left out; {total.changed} would end otherwise than {than}."
    )
    if simulated:
        unlike = counted(report.unlike, "call")
        paper.line(f"The simulated baseline differs from what happened in {unlike}.")
        _explain(report.differences, paper)
    rows = [_row(name, effect) for name, effect in sorted(report.tools.items())]
    rows += [
        _row(f"family {name}", effect)
        for name, effect in sorted(report.families.items())
        if effect.after.calls < total.after.calls  # else it is what is said of all
    ]
    paper.table(COLUMNS, [*rows, _row("all", total)])
    _refusals(report, paper)
    if total.after.shadow_refused or total.before.shadow_refused:
        paper.line(
            f"In shadow mode {total.after.shadow_refused} refusals would be noted"
            f" (before: {total.before.shadow_refused})."
        )
    for name, said in sorted(report.unplayed.items()):
        paper.line(f"Not simulated of {one_line(name)}: {'; '.join(map(one_line, said))}.")


def _refusals(report: Report, paper: Paper) -> None:
    """Write which layers refuse how many calls, if any does."""
    of_tools = [
        (one_line(name), *row)
        for name, effect in sorted(report.tools.items())
        for row in _by_layer(effect)
    ]
    if not of_tools:
        return
    paper.line("")
    several = len({row[0] for row in of_tools}) > 1
    of_all = [("all", *row) for row in _by_layer(report.total)] if several else []
    paper.table(REFUSED, [*of_tools, *of_all])


def _by_layer(effect: Effect) -> Iterator[tuple[str, str]]:
    before, after = effect.before.refused_by, effect.after.refused_by
    for layer in sorted({*before, *after}):
        yield one_line(layer) or "?", _change(before.get(layer, 0), after.get(layer, 0))


def _explain(found: Iterable[Difference], paper: Paper) -> None:
    rows = [
        (
            one_line(one.call_id),
            one_line(one.tool),
            f"{one.arrival_s:.3f}",
            one.was,
            one.would_be,
            one.boundary,
            "?" if one.distance_ms is None else f"{one.distance_ms:.3f}",
            one_line(one.follows),
        )
        for one in found
    ]
    if rows:
        paper.table(DIFFERENCES, rows)


def _row(name: str, effect: Effect) -> tuple[str, ...]:
    before, after = effect.before, effect.after
    both = effect.before.good - effect.lost
    return (
        one_line(name),
        str(after.calls),
        _change(before.good, after.good),
        _change(before.refused, after.refused),
        _change(before.timed_out, after.timed_out),
        _change(before.retries, after.retries),
        str(effect.saved),
        str(effect.lost),
        f"{effect.added_s / both if both else 0:+.3f}",
    )


def _change(before: int, after: int) -> str:
    return str(after) if before == after else f"{before}→{after}"
