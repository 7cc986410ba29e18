"""Draws `dashboard.png`: the panels of the dashboard with what Prometheus recorded of a run.

python tests/grafana/server.py 240 data.json
python docs/pictures/draw.py data.json          needs matplotlib
"""

from __future__ import annotations

import json
import re
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.dates import DateFormatter
from PIL import Image

mpl.use("Agg")

HERE = Path(__file__).parent
GRAFANA = HERE.parents[1] / "grafana"
GROUND, PANEL, TEXT, FAINT = "#111217", "#181b1f", "#ccccdc", "#2c3235"
COLORS = (
    *("#73bf69", "#f2cc0c", "#5794f2", "#ff9830", "#f2495c", "#b877d9", "#8ab8ff", "#fade2a"),
    *("#96d98d", "#ffb357", "#ff7383", "#ca95e5", "#c0d8ff"),
)
NAMED = {"success": "#73bf69", "failed": "#f2495c", "denied": "#ff9830", "skipped": "#8ab8ff"}
STATES = {0: ("closed", "#37872d"), 1: ("half open", "#e0b400"), 2: ("open", "#c4162a")}
UNITS = {"reqps": "/s", "ops": "/s", "s": " s", "percentunit": " %", "short": ""}
ROW, WIDTH = 0.27, 17.0
"""Inches of a line of the grid, and of all of it."""


def legend_of(template: str, labels: dict[str, str]) -> str:
    """Fill in the labels that a legend names."""
    return re.sub(r"{{(\w+)}}", lambda found: labels.get(found[1], ""), template)


def shown(value: float, unit: str) -> str:
    """A number as a person reads it."""
    if unit == "percentunit":
        return f"{100 * value:.3g} %"
    if unit == "s" and value < 1:
        return f"{1000 * value:.3g} ms"
    return f"{value:.3g}{UNITS.get(unit, '')}"


def lines_of(panel: dict[str, Any]) -> list[tuple[str, Any, Any]]:
    """Every series of a panel: its legend, times and values."""
    found = []
    for target in panel["targets"]:
        for series in target["series"]:
            points = [(float(at), float(value)) for at, value in series.get("values", ())]
            values = np.array([value for _, value in points])
            if len(values) and not np.all(np.isnan(values)):
                times = [datetime.fromtimestamp(at, UTC) for at, _ in points]
                found.append((legend_of(target["legend"], series["metric"]), times, values))
    return found


def draw_stat(axes: Any, panel: dict[str, Any]) -> None:
    """The newest value, large, over its history."""
    axes.axis("off")
    [(_, times, values)] = lines_of(panel)
    unit = panel["fieldConfig"]["defaults"]["unit"]
    inset = axes.inset_axes((0, 0, 1, 0.4))
    inset.axis("off")
    color = step_color(panel, float(values[-1]))
    inset.fill_between(times, values, color=color, alpha=0.25, linewidth=0)
    inset.plot(times, values, color=color, linewidth=1)
    inset.set_ylim(0, max(np.nanmax(values) * 1.05, 1e-9))
    axes.text(0.5, 0.62, shown(float(values[-1]), unit), color=color, fontsize=19, ha="center")


def step_color(panel: dict[str, Any], value: float) -> str:
    """The colour that the thresholds give a value."""
    named = {"green": "#73bf69", "orange": "#ff9830", "red": "#f2495c", "blue": "#5794f2"}
    steps = panel["fieldConfig"]["defaults"]["thresholds"]["steps"]
    reached = [step for step in steps if step["value"] is None or value >= step["value"]]
    return named[reached[-1]["color"]]


def draw_lines(axes: Any, panel: dict[str, Any]) -> None:
    """Lines over time, or areas on each other."""
    defaults = panel["fieldConfig"]["defaults"]
    stacked = "stacking" in defaults.get("custom", {})
    found = sorted(lines_of(panel), key=lambda one: -float(np.nanmean(one[2])))
    found = [one for one in found if float(np.nanmax(one[2])) > 0][:9] or found[:3]
    colors = [NAMED.get(name, COLORS[at % len(COLORS)]) for at, (name, *_) in enumerate(found)]
    if stacked:
        every = sorted({at for _, times, _ in found for at in times})
        rows = [dict(zip(times, np.nan_to_num(values), strict=True)) for _, times, values in found]
        values = [[row.get(at, 0.0) for at in every] for row in rows]
        axes.stackplot(every, values, colors=colors, alpha=0.55, linewidth=0)
    for (name, times, values), color in zip(found, colors, strict=True):
        width = 0 if stacked else 1.1
        axes.plot(times, values, color=color, linewidth=width)
        axes.plot([], [], color=color, linewidth=2.5, label=name)
    unit = defaults["unit"]
    axes.yaxis.set_major_formatter(lambda value, _: shown(value, unit))
    axes.set_ylim(bottom=0)
    axes.xaxis.set_major_formatter(DateFormatter("%H:%M"))
    axes.xaxis.set_major_locator(mpl.dates.MinuteLocator())
    axes.legend(
        loc="upper center",
        bbox_to_anchor=(0.5, -0.14),
        ncols=3,
        fontsize=6,
        frameon=False,
        labelcolor=TEXT,
        handlelength=1,
        columnspacing=1,
    )


def draw_states(axes: Any, panel: dict[str, Any]) -> None:
    """A band for each circuit, coloured by its state."""
    found = lines_of(panel)
    for at, (_, times, values) in enumerate(found):
        for start, end, value in zip(times, times[1:], values, strict=False):
            axes.fill_between(
                [start, end], at - 0.4, at + 0.4, color=STATES[int(value)][1], linewidth=0
            )
    for text, color in STATES.values():
        axes.plot([], [], color=color, linewidth=5, label=text)
    axes.set_yticks(range(len(found)), [name for name, *_ in found])
    axes.xaxis.set_major_formatter(DateFormatter("%H:%M"))
    axes.xaxis.set_major_locator(mpl.dates.MinuteLocator())
    axes.legend(
        loc="upper center",
        bbox_to_anchor=(0.5, -0.14),
        ncols=3,
        fontsize=6,
        frameon=False,
        labelcolor=TEXT,
    )


def draw_heat(axes: Any, panel: dict[str, Any]) -> None:
    """How many calls fell into each bucket, over time."""
    series = panel["targets"][0]["series"]
    series = sorted(series, key=lambda one: float(one["metric"]["le"]))
    reached = {
        float(one["metric"]["le"]): {float(at): float(value) for at, value in one["values"]}
        for one in series
    }
    times = sorted({at for found in reached.values() for at in found})
    whole = np.array([[found.get(at, 0.0) for at in times] for found in reached.values()])
    within = np.diff(np.vstack([np.zeros(len(times)), whole]), axis=0)
    axes.imshow(
        np.sqrt(np.maximum(within, 0)),
        aspect="auto",
        origin="lower",
        cmap="Oranges_r",
        interpolation="nearest",
    )
    bounds = [f"{bound:g} s" for bound in reached]
    axes.set_yticks(range(0, len(bounds), 2), bounds[::2])
    marks = range(0, len(times), max(len(times) // 4, 1))
    said = [f"{datetime.fromtimestamp(times[at], UTC):%H:%M}" for at in marks]
    axes.set_xticks(list(marks), said)


def draw_table(axes: Any, panel: dict[str, Any]) -> None:
    """The largest series, a line each."""
    axes.axis("off")
    series = sorted(panel["targets"][0]["series"], key=lambda one: -float(one["value"][1]))
    hidden = {"__name__", "instance", "job"}
    if not series:
        axes.text(0.5, 0.5, "No data", color=TEXT, fontsize=9, ha="center")
    for at, one in enumerate(series[:10]):
        labels = "   ".join(value for key, value in one["metric"].items() if key not in hidden)
        y = 0.93 - at * 0.1
        axes.text(0.02, y, labels, color=TEXT, fontsize=6.5, va="center")
        value = f"{float(one['value'][1]):.0f}"
        axes.text(0.98, y, value, color="#73bf69", fontsize=6.5, va="center", ha="right")


DRAW = {
    "stat": draw_stat,
    "timeseries": draw_lines,
    "state-timeline": draw_states,
    "heatmap": draw_heat,
    "table": draw_table,
}


def main(data: list[dict[str, Any]]) -> None:
    """Draw all panels at the places they have in Grafana."""
    layout = json.loads((GRAFANA / "seawall.json").read_text("utf-8"))["panels"]
    by_id = {panel["id"]: panel for panel in data}
    height = max(p["gridPos"]["y"] + p["gridPos"]["h"] for p in data)
    figure = plt.figure(figsize=(WIDTH, height * ROW), facecolor=GROUND)
    for one in layout:
        if one["type"] == "row":
            y = 1 - (one["gridPos"]["y"] + 0.75) / height
            title = one["title"].replace("$tool", "all of them")
            figure.text(0.008, y, f"v  {title}", color=TEXT, fontsize=9, weight="bold")
        for panel in one["panels"] if one["type"] == "row" else [one]:
            place(figure, by_id[panel["id"]], height)
    file = HERE / "dashboard.png"
    figure.savefig(file, dpi=80, facecolor=GROUND)
    Image.open(file).convert("RGB").quantize(128).save(file, optimize=True)


def place(figure: Any, panel: dict[str, Any], height: int) -> None:
    """Draw one panel."""
    at = panel["gridPos"]
    left, width = at["x"] / 24, at["w"] / 24
    bottom, tall = 1 - (at["y"] + at["h"]) / height, at["h"] / height
    ground = figure.add_axes((left + 0.002, bottom + 0.0006, width - 0.004, tall - 0.0012))
    ground.set_facecolor(PANEL)
    ground.set_xticks([])
    ground.set_yticks([])
    for spine in ground.spines.values():
        spine.set_color(FAINT)
    inches = tall * height * ROW
    ground.text(
        0.01,
        1 - 0.12 / inches,
        panel["title"],
        color=TEXT,
        fontsize=8,
        transform=ground.transAxes,
        va="center",
    )
    if panel["type"] in ("stat", "table"):
        inner = (0.02, 0.04, 0.96, 0.76)
    else:
        inner = (0.045 * 24 / at["w"] * 0.33 + 0.03, 0.3, 0.86, 0.57)
    axes = ground.inset_axes(inner)
    axes.set_facecolor(PANEL)
    axes.tick_params(colors=TEXT, labelsize=6, length=0)
    axes.grid(color=FAINT, linewidth=0.5)
    for spine in axes.spines.values():
        spine.set_visible(False)
    DRAW[panel["type"]](axes, panel)


if __name__ == "__main__":
    main(json.loads(Path(sys.argv[1]).read_text("utf-8")))
