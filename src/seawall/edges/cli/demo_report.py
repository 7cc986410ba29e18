"""What is left of the demo when it is over: numbers, states, and which layers acted."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from seawall.edges.cli.demo_service import ShopService
    from seawall.edges.cli.demo_witness import Witness
    from seawall.edges.cli.paper import Paper
    from seawall.orchestration.pipeline import Pipeline

BAR = 40
MAX_METRICS = 14

_METRICS = ("seawall_refusals_total", "seawall_retries_total", "seawall_breaker_state")


def report(
    pipeline: Pipeline,
    witness: Witness,
    service: ShopService,
    injected: Mapping[str, int] = MappingProxyType({}),
) -> dict[str, Any]:
    """Gather what the pipeline's own recorders say, and what the service saw."""
    missing = witness.missing()
    return {
        "usage": [
            {
                "tool": name,
                "calls": usage.invocations,
                "success": usage.successes,
                "failed": usage.failures,
                "denied": usage.refusals,
                "mean_ms": None if usage.mean_s is None else round(usage.mean_s * 1000, 1),
            }
            for name, usage in pipeline.usage.snapshot().items()
            if usage.invocations
        ],
        "spans": pipeline.trace.outcomes(),
        "breakers": _breakers(pipeline),
        "metrics": _metrics(pipeline),
        "service": {
            "requests": dict(service.seen),
            "hung_up": service.hung_up,
            "records_left": service.records,
        },
        "layers": {
            layer: {"acted": layer not in missing, "did": dict(deeds)}
            for layer, deeds in witness.deeds.items()
        },
        "missing": missing,
        "chaos": dict(injected),
    }


def _breakers(pipeline: Pipeline) -> dict[str, Any]:
    """Give the circuits that ever opened, with their state now."""
    found: dict[str, Any] = {}
    for name, state in pipeline.breakers.snapshot().items():
        opened = pipeline.breakers.circuit(name).counts.opened
        if opened:
            found[name] = {"state": state, "opened": opened}
    return found


def _metrics(pipeline: Pipeline) -> list[str]:
    """Choose the samples that tell a story: refusals, retries, and circuits that are not closed."""
    lines = pipeline.metrics.text().decode().splitlines()
    chosen = (line for line in lines if line.startswith(_METRICS) and not line.endswith(" 0.0"))
    told = (line for line in chosen if 'state="closed"' not in line or "inventory" in line)
    return list(told)[:MAX_METRICS]


def write_report(found: dict[str, Any], paper: Paper) -> None:
    """Write the report for a reader; the last line says whether the seven main layers acted."""
    _title(paper, "Usage")
    columns = ("tool", "calls", "success", "failed", "denied", "mean ms")
    rows = [[_cell(value) for value in row.values()] for row in found["usage"]]
    paper.table(columns, rows)
    _title(paper, "Spans, one for each attempt or refusal")
    most = max(found["spans"].values(), default=0) or 1
    for word, count in found["spans"].items():
        if count:
            bar = "#" * max(round(count / most * BAR), 1)
            paper.line((bar, "cyan"), f" {count}", lead=f"  {word:<8} ")
    _title(paper, "Circuits that opened")
    for name, circuit in found["breakers"].items():
        times = "once" if circuit["opened"] == 1 else f"{circuit['opened']} times"
        paper.line(f"opened {times}, now {circuit['state']}", lead=f"  {name:<18} ")
    _title(paper, "Metrics, as Prometheus reads them")
    for line in found["metrics"]:
        paper.line(line, lead="  ")
    _service(found["service"], paper)
    if found["chaos"]:
        _title(paper, "Chaos that was injected")
        paper.line(", ".join(f"{kind} {count}" for kind, count in sorted(found["chaos"].items())))
    _layers(found, paper)


def _service(seen: dict[str, Any], paper: Paper) -> None:
    _title(paper, "What the service saw")
    requests = ", ".join(f"{what} {count}" for what, count in sorted(seen["requests"].items()))
    paper.line(f"{requests}", lead="  requests  ")
    paper.line(f"{seen['hung_up']} cancelled before it was answered", lead="  reports   ")
    paper.line(f"{seen['records_left']} left of 1200", lead="  records   ")


def _layers(found: dict[str, Any], paper: Paper) -> None:
    _title(paper, "Layers")
    for layer, entry in found["layers"].items():
        did = ", ".join(f"{deed} {count}" for deed, count in entry["did"].items() if count)
        style = "green" if entry["acted"] else "bold red"
        paper.line((did or "nothing", style), lead=f"  {layer:<18} ")
    paper.line("")
    missing = found["missing"]
    if not missing:
        paper.line((f"all seven main layers acted: {', '.join(found['layers'])}", "bold green"))
        return
    said = "; ".join(f"{layer} ({', '.join(deeds)})" for layer, deeds in missing.items())
    paper.line((f"not seen: {said}", "bold red"))


def _title(paper: Paper, title: str) -> None:
    paper.line("")
    paper.line((title, "bold"))


def _cell(value: Any) -> str:
    return "" if value is None else str(value)
