"""Writes `seawall.json`, the dashboard: `python grafana/dashboard.py`.

Rows of panels, each a title, a query or several, and a unit. Expressions use the variables
`$instance`, `$family` (which narrows `$tool`) and `$tool`; rules of `rules.yml` where they are
dear to compute.
"""

from __future__ import annotations

import json
from itertools import count
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
SOURCE = {"type": "prometheus", "uid": "${datasource}"}
WIDTH = 24
AT = 'instance=~"$instance"'
OF = 'instance=~"$instance", tool=~"$tool"'
RATE = "[$__rate_interval]"

Panel = dict[str, Any]
_ids = count(1)


def query(expr: str, legend: str = "", *, instant: bool = False, table: bool = False) -> Panel:
    """One expression of a panel; its letter is given by the panel."""
    found: Panel = {
        "datasource": SOURCE,
        "expr": expr,
        "legendFormat": legend or "__auto",
        "range": not instant,
        "instant": instant,
        "editorMode": "code",
    }
    if table:
        found["format"] = "table"
    return found


def panel(
    kind: str, title: str, queries: list[Panel], *, width: int, height: int = 8, **fields: Any
) -> Panel:
    """A panel without its place."""
    defaults: Panel = {"unit": fields.pop("unit", "short")}
    for key in ("min", "max", "decimals", "mappings", "thresholds", "color", "custom", "noValue"):
        if key in fields:
            defaults[key] = fields.pop(key)
    return {
        "id": next(_ids),
        "type": kind,
        "title": title,
        "description": fields.pop("text", ""),
        "datasource": SOURCE,
        "gridPos": {"x": 0, "y": 0, "w": width, "h": height},
        "targets": [
            {"refId": letter, **one} for letter, one in zip("ABCDEF", queries, strict=False)
        ],
        "fieldConfig": {"defaults": defaults, "overrides": fields.pop("overrides", [])},
        "options": fields.pop("options", {}),
        **fields,
    }


def graph(title: str, *queries: Panel, width: int = 8, stack: bool = False, **fields: Any) -> Panel:
    """Lines over time."""
    custom: Panel = {"drawStyle": "line", "lineWidth": 1, "fillOpacity": 30 if stack else 8}
    custom |= {"showPoints": "never", "spanNulls": False}
    if stack:
        custom["stacking"] = {"mode": "normal", "group": "A"}
    legend = {"displayMode": "list", "placement": "bottom", "showLegend": True, "calcs": []}
    return panel(
        "timeseries",
        title,
        list(queries),
        width=width,
        custom=custom,
        options={"legend": legend, "tooltip": {"mode": "multi", "sort": "desc"}},
        **{"min": 0, **fields},
    )


def number(
    title: str, expr: str, *, width: int = 3, steps: list[Panel] | None = None, **fields: Any
) -> Panel:
    """The newest value, large."""
    return panel(
        "stat",
        title,
        [query(expr, title)],
        width=width,
        height=4,
        thresholds={"mode": "absolute", "steps": steps or [{"color": "blue", "value": None}]},
        color={"mode": "thresholds"},
        options={
            "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
            "colorMode": "value",
            "graphMode": "area",
            "justifyMode": "auto",
            "orientation": "auto",
            "textMode": "auto",
            "wideLayout": True,
            "showPercentChange": False,
            "percentChangeColorMode": "standard",
        },
        **fields,
    )


def table(title: str, expr: str, *, width: int = 8, **fields: Any) -> Panel:
    """Labels and the value of this moment, one series a line."""
    return panel(
        "table",
        title,
        [query(expr, instant=True, table=True)],
        width=width,
        options={"showHeader": True, "cellHeight": "sm"},
        transformations=[
            {"id": "organize", "options": {"excludeByName": {"Time": True}}},
            {"id": "sortBy", "options": {"sort": [{"field": "Value", "desc": True}]}},
        ],
        **fields,
    )


def steps(*found: tuple[str, float | None]) -> list[Panel]:
    """Colours from values on."""
    return [{"color": color, "value": value} for color, value in found]


GOOD_LOW = steps(("green", None), ("orange", 0.01), ("red", 0.05))


def health() -> list[Panel]:
    """What one looks at first."""
    calls = f"sum(rate(seawall_calls_total{{{AT}}}{RATE}))"
    return [
        number("Calls", calls, unit="reqps", text="Calls a second, whatever became of them."),
        number(
            "Failed",
            f'sum(rate(seawall_calls_total{{{AT}, outcome="failed"}}{RATE}))'
            f' / sum(rate(seawall_calls_total{{{AT}, outcome=~"success|failed"}}{RATE}))',
            unit="percentunit",
            steps=GOOD_LOW,
            text="Share of the calls that were run.",
        ),
        number(
            "Refused",
            f'sum(rate(seawall_calls_total{{{AT}, outcome="denied"}}{RATE})) / {calls}',
            unit="percentunit",
            steps=steps(("green", None), ("orange", 0.2), ("red", 0.5)),
        ),
        number(
            "Slowest 5 %",
            "histogram_quantile(0.95, sum by (le)"
            f" (rate(seawall_call_duration_seconds_bucket{{{AT}}}{RATE})))",
            unit="s",
            text="95 of 100 calls are faster.",
        ),
        number(
            "Open circuits",
            f'sum(seawall_breaker_state{{{AT}, state="open"}})',
            steps=steps(("green", None), ("red", 1)),
        ),
        number("In flight", f"sum(seawall_in_flight{{{AT}}})"),
        number(
            "Waiting for a person",
            f"max(seawall_approvals_waiting{{{AT}}})",
            steps=steps(("green", None), ("orange", 1), ("red", 20)),
        ),
        number(
            "Alerts",
            'count(ALERTS{alertname=~"Seawall.+", alertstate="firing"}) or vector(0)',
            steps=steps(("green", None), ("red", 1)),
        ),
    ]


def traffic() -> list[Panel]:
    """How much, and what became of it."""
    return [
        graph(
            "Calls by outcome",
            query(f"sum by (outcome) (rate(seawall_calls_total{{{OF}}}{RATE}))", "{{outcome}}"),
            unit="reqps",
            stack=True,
        ),
        graph(
            "Calls by tool",
            query(f"topk(10, sum by (tool) (rate(seawall_calls_total{{{OF}}}{RATE})))", "{{tool}}"),
            unit="reqps",
        ),
        graph(
            "Failed by tool",
            query(
                f"topk(10, instance_tool:seawall_failed:ratio_rate5m{{{OF}}})",
                "{{instance}} {{tool}}",
            ),
            unit="percentunit",
            text="Share of the calls that were run, over 5 minutes.",
        ),
        graph(
            "Failures by reason",
            query(
                f"sum by (code, reason) (rate(seawall_failures_total{{{OF}}}{RATE}))",
                "{{code}} / {{reason}}",
            ),
            unit="reqps",
            stack=True,
        ),
        graph(
            "Attempts and retries",
            query(f"sum(rate(seawall_attempts_total{{{OF}}}{RATE}))", "attempts"),
            query(f"sum(rate(seawall_retries_total{{{OF}}}{RATE}))", "retries"),
            unit="reqps",
        ),
        graph(
            "A model that is lost",
            query(
                f"sum by (near) (rate(seawall_suggestions_total{{{AT}}}{RATE}))",
                "unknown name, near one told: {{near}}",
            ),
            query(
                f"sum by (detector) (rate(seawall_loop_stops_total{{{AT}}}{RATE}))",
                "loop stopped: {{detector}}",
            ),
            unit="reqps",
        ),
    ]


def quantile(share: float, family: str, by: str = "", of: str = OF) -> str:
    """A quantile of a histogram."""
    labels = f"le, {by}" if by else "le"
    return (
        f"histogram_quantile({share}, sum by ({labels})"
        f" (rate(seawall_{family}_duration_seconds_bucket{{{of}}}{RATE})))"
    )


def latency() -> list[Panel]:
    """How long."""
    heat = panel(
        "heatmap",
        "Where calls fall",
        [
            {
                **query(
                    f"sum by (le) (increase(seawall_call_duration_seconds_bucket{{{OF}}}{RATE}))",
                    "{{le}}",
                ),
                "format": "heatmap",
            }
        ],
        width=8,
        options={
            "calculate": False,
            "color": {
                "mode": "scheme",
                "scheme": "Oranges",
                "steps": 64,
                "exponent": 0.5,
                "fill": "dark-orange",
                "reverse": False,
            },
            "cellGap": 1,
            "yAxis": {"unit": "s", "axisPlacement": "left"},
            "rowsFrame": {"layout": "auto"},
            "exemplars": {"color": "rgba(255,0,255,0.7)"},
            "legend": {"show": True},
            "tooltip": {"mode": "single", "showColorScale": False, "yHistogram": False},
            "filterValues": {"le": 1e-9},
            "showValue": "never",
        },
    )
    whole = [
        {**query(quantile(share, "call"), said), "exemplar": True}
        for share, said in ((0.5, "half"), (0.95, "95 %"), (0.99, "99 %"))
    ]
    return [
        graph("Duration of calls", *whole, unit="s", text="Gates, waits and attempts together."),
        graph(
            "Calls by tool, 95 %",
            query(f"topk(10, {quantile(0.95, 'call', 'tool')})", "{{tool}}"),
            unit="s",
        ),
        heat,
        graph(
            "Attempts by tool, 95 %",
            query(f"topk(10, {quantile(0.95, 'attempt', 'tool')})", "{{tool}}"),
            unit="s",
            width=12,
        ),
        graph(
            "Before the first attempt, 95 %",
            query(f"topk(10, {quantile(0.95, 'queue', 'tool')})", "{{tool}}"),
            unit="s",
            width=12,
            text="Gates, questions to people and queues.",
        ),
    ]


def refusals() -> list[Panel]:
    """Who said no, and why."""
    refused = f"(rate(seawall_refusals_total{{{OF}}}{RATE}))"
    return [
        graph(
            "By layer", query(f"sum by (layer) {refused}", "{{layer}}"), unit="reqps", stack=True
        ),
        graph(
            "By reason", query(f"sum by (reason) {refused}", "{{reason}}"), unit="reqps", stack=True
        ),
        table(
            "In the time shown",
            "sum by (tool, layer, reason)"
            f" (increase(seawall_refusals_total{{{OF}}}[$__range])) > 0",
            decimals=0,
        ),
        graph(
            "What layers did",
            query(
                f"sum by (layer, event) (rate(seawall_events_total{{{OF}}}{RATE}))",
                "{{layer}} / {{event}}",
            ),
            unit="ops",
            width=12,
        ),
        graph(
            "Broken promises",
            query(
                f"sum by (tool) (rate(seawall_hook_failures_total{{{OF}}}{RATE}))",
                "hook at {{tool}}",
            ),
            query(
                f"sum by (tool) (rate(seawall_output_failures_total{{{OF}}}{RATE}))",
                "output of {{tool}}",
            ),
            unit="ops",
            width=12,
            text="Hooks that failed, and results that broke the tool's own schema.",
        ),
    ]


def breakers() -> list[Panel]:
    """Which circuits are open."""
    state = f'max by (tool) (seawall_breaker_state{{{OF}, state="%s"}})'
    told = {
        "0": {"text": "closed", "color": "green", "index": 0},
        "1": {"text": "half open", "color": "orange", "index": 1},
        "2": {"text": "open", "color": "red", "index": 2},
        "3": {"text": "open at some", "color": "red", "index": 3},
    }
    line = panel(
        "state-timeline",
        "Circuits",
        [query(f"2 * {state % 'open'} + {state % 'half_open'}", "{{tool}}")],
        width=12,
        mappings=[{"type": "value", "options": told}],
        color={"mode": "thresholds"},
        thresholds={"mode": "absolute", "steps": steps(("green", None))},
        custom={"fillOpacity": 80, "lineWidth": 0},
        options={
            "mergeValues": True,
            "showValue": "auto",
            "rowHeight": 0.9,
            "alignValue": "left",
            "legend": {
                "displayMode": "list",
                "placement": "bottom",
                "showLegend": True,
                "calcs": [],
            },
            "tooltip": {"mode": "single", "sort": "none"},
        },
    )
    return [
        line,
        graph(
            "Changes",
            query(
                f"sum by (tool, state) (increase(seawall_breaker_transitions_total{{{OF}}}{RATE}))"
                " > 0",
                "{{tool}} to {{state}}",
            ),
            width=6,
        ),
        table("Open now", f'seawall_breaker_state{{{OF}, state="open"}} == 1', width=6),
    ]


def limits() -> list[Panel]:
    """What runs out."""
    return [
        graph(
            "Tokens left",
            query(f"min by (tool) (seawall_limiter_tokens_ratio{{{OF}}})", "{{tool}}"),
            unit="percentunit",
            max=1,
        ),
        graph(
            "Refused by limits",
            query(
                "sum by (tool, reason) (rate(seawall_refusals_total"
                f'{{{OF}, reason=~"rate_limited|overloaded|limiter_unavailable"}}{RATE}))',
                "{{tool}} / {{reason}}",
            ),
            unit="reqps",
        ),
        graph(
            "In flight", query(f"sum by (tool) (seawall_in_flight{{{OF}}})", "{{tool}}"), stack=True
        ),
        graph(
            "Left behind",
            query(f"sum(seawall_abandoned_threads{{{AT}}})", "threads"),
            query(
                "sum by (tool) (rate(seawall_events_total"
                f'{{{OF}, layer="timeout", event="let_go"}}{RATE}))',
                "{{tool}} ignored its cancellation",
            ),
            width=12,
            text="Work that goes on for calls that were answered long ago.",
        ),
        graph(
            "Without a store",
            query(
                f"sum by (store, mode) (rate(seawall_store_fallbacks_total{{{AT}}}{RATE}))",
                "{{store}}: {{mode}}",
            ),
            unit="ops",
            width=12,
        ),
    ]


def approvals() -> list[Panel]:
    """Who waits for a person."""
    return [
        graph(
            "Waiting",
            query(f"max by (instance) (seawall_approvals_waiting{{{AT}}})", "{{instance}}"),
        ),
        graph(
            "The oldest",
            query(
                f"max by (instance) (seawall_approvals_oldest_age_seconds{{{AT}}})", "{{instance}}"
            ),
            unit="s",
        ),
        graph(
            "Answers",
            query(
                "sum by (reason) (rate(seawall_refusals_total"
                f'{{{OF}, reason=~"approval_.*|denied_by_policy"}}{RATE}))',
                "{{reason}}",
            ),
            query(f"sum(rate(seawall_audit_failures_total{{{AT}}}{RATE}))", "audit entries lost"),
            unit="ops",
        ),
    ]


def one_tool() -> list[Panel]:
    """Everything about one tool; the row is repeated for each that is chosen."""
    return [
        graph(
            "Calls",
            query(f"sum by (outcome) (rate(seawall_calls_total{{{OF}}}{RATE}))", "{{outcome}}"),
            unit="reqps",
            stack=True,
            width=6,
        ),
        graph(
            "Duration",
            query(quantile(0.5, "attempt"), "attempt, half"),
            query(quantile(0.95, "attempt"), "attempt, 95 %"),
            query(quantile(0.95, "call"), "call, 95 %"),
            unit="s",
            width=6,
        ),
        graph(
            "Why not",
            query(
                f"sum by (layer, reason) (rate(seawall_refusals_total{{{OF}}}{RATE}))",
                "refused: {{layer}} / {{reason}}",
            ),
            query(
                f"sum by (reason) (rate(seawall_failures_total{{{OF}}}{RATE}))",
                "failed: {{reason}}",
            ),
            unit="reqps",
            width=6,
        ),
        graph(
            "Events",
            query(
                f"sum by (layer, event) (rate(seawall_events_total{{{OF}}}{RATE}))",
                "{{layer}} / {{event}}",
            ),
            unit="ops",
            width=6,
        ),
    ]


ROWS = (
    ("Health at a glance", health, None),
    ("Traffic", traffic, None),
    ("Latency", latency, None),
    ("Refusals by layer", refusals, None),
    ("Breakers", breakers, None),
    ("Limits", limits, None),
    ("Approvals", approvals, None),
    ("One tool in depth: $tool", one_tool, "tool"),
)


def placed(panels: list[Panel], top: int) -> int:
    """Give panels their places, from left to right; the first free line below them."""
    x, y, height = 0, top, 0
    for one in panels:
        place = one["gridPos"]
        if x + place["w"] > WIDTH:
            x, y, height = 0, y + height, 0
        place["x"], place["y"] = x, y
        x, height = x + place["w"], max(height, place["h"])
    return y + height


def laid_out() -> list[Panel]:
    """All rows with their panels, in order; a repeated row is closed and holds its own."""
    found: list[Panel] = []
    y = 0
    for title, make, repeat in ROWS:
        row: Panel = {
            "id": next(_ids),
            "type": "row",
            "title": title,
            "collapsed": repeat is not None,
            "gridPos": {"x": 0, "y": y, "w": WIDTH, "h": 1},
            "panels": [],
        }
        panels = make()
        y = placed(panels, y + 1)
        found.append(row)
        if repeat is None:
            found += panels
        else:
            row["repeat"], row["panels"] = repeat, panels
    return found


def variable(name: str, label: str, expr: str, **fields: Any) -> Panel:
    """A variable whose values are those of a label."""
    return {
        "name": name,
        "label": label,
        "type": "query",
        "datasource": SOURCE,
        "query": {"query": expr, "refId": name},
        "refresh": 2,
        "sort": 1,
        "multi": True,
        "includeAll": True,
        "current": {"text": ["All"], "value": ["$__all"]},
        **fields,
    }


def dashboard() -> Panel:
    """The whole of it."""
    return {
        "title": "Seawall",
        "uid": "seawall-tools",
        "description": "Calls of tools by language models, and what Seawall does around them.",
        "tags": ["seawall", "agents", "tools"],
        "schemaVersion": 42,
        "version": 1,
        "editable": True,
        "graphTooltip": 1,
        "refresh": "30s",
        "time": {"from": "now-1h", "to": "now"},
        "timezone": "browser",
        "links": [],
        "templating": {
            "list": [
                {
                    "name": "datasource",
                    "label": "Source",
                    "type": "datasource",
                    "query": "prometheus",
                    "refresh": 1,
                },
                variable(
                    "instance",
                    "Instance",
                    "label_values(seawall_build_info, instance)",
                    allValue=".*",
                ),
                variable(
                    "family",
                    "Family",
                    'label_values(seawall_tool_info{instance=~"$instance"}, family)',
                    allValue=".*",
                ),
                variable(
                    "tool",
                    "Tool",
                    'label_values(seawall_tool_info{instance=~"$instance",'
                    ' family=~"$family"}, tool)',
                ),
            ]
        },
        "panels": laid_out(),
    }


if __name__ == "__main__":
    (HERE / "seawall.json").write_text(json.dumps(dashboard(), indent=2) + "\n", encoding="utf-8")
