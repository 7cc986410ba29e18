"""Every expression of the dashboard and of the rules, asked of a real Prometheus.

It scrapes a process whose calls fail in every way there is; what has no data there never will.
"""

from __future__ import annotations

import json
import re
import subprocess
import time
from typing import TYPE_CHECKING, Any

import pytest
from tests.found import program
from tests.grafana import server

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


PANELS = {
    f"{p['id']} {p['title']} {t['refId']}": t["expr"] for p in server.panels() for t in p["targets"]
}
RULES = [server.GRAFANA / "rules.yml", server.GRAFANA / "alerts.yml"]
NAMED = re.compile(r"^ +- (?:record|alert): (\S+)$", re.MULTILINE)
PATIENCE_S = 90


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    program("prometheus")
    with server.Watched(tmp_path_factory.mktemp("prometheus")) as found:
        yield found


def waited_for(ask: Callable[[], list[Any]]) -> list[Any]:
    """What comes in time; some failures take a while until they happen."""
    until = time.monotonic() + PATIENCE_S
    while True:
        found = ask()
        if found or time.monotonic() > until:
            return found
        time.sleep(0.5)


@pytest.mark.parametrize("panel", PANELS)
def test_every_panel_shows_something(panel: str, watched: Any) -> None:
    expr = server.plain(PANELS[panel])

    found = waited_for(lambda: [one for one in watched.now(expr) if one["value"][1] != "NaN"])

    assert found, expr


def test_every_panel_can_be_parsed_with_its_variables_replaced(tmp_path: Path) -> None:
    rules = [
        {"record": f"panel:{number}", "expr": server.plain(expr)}
        for number, expr in enumerate(PANELS.values())
    ]
    file = tmp_path / "panels.json"
    file.write_text(json.dumps({"groups": [{"name": "panels", "rules": rules}]}))

    told = subprocess.run(
        [program("promtool"), "check", "rules", str(file)], capture_output=True, check=False
    )

    assert told.returncode == 0, told.stdout


def sides(expr: str) -> list[str]:
    """What an alert compares: the expressions left of its thresholds."""
    parts = re.split(r"\s+and (?!on\b)", expr)
    return [re.sub(r"\s*(>|<|==)\s*[\d.]+\s*$", "", part) for part in parts]


def rules_of(watched: Any) -> dict[str, Any]:
    groups = watched.ask("rules")["groups"]
    return {rule["name"]: rule for group in groups for rule in group["rules"]}


@pytest.mark.parametrize(
    "name", [name for path in RULES for name in NAMED.findall(path.read_text("utf-8"))]
)
def test_every_rule_is_well_and_has_data(name: str, watched: Any) -> None:
    rule = rules_of(watched)[name]

    for expr in sides(rule["query"]) if rule["type"] == "alerting" else [name]:
        assert waited_for(lambda expr=expr: watched.now(expr)), expr  # type: ignore[misc]  # bound as a default
    assert rules_of(watched)[name]["health"] == "ok"


@pytest.mark.parametrize(
    ("metric", "label"),
    [
        ("seawall_build_info", "instance"),
        ("seawall_tool_info", "family"),
        ("seawall_tool_info", "tool"),
    ],
)
def test_the_variables_have_values(metric: str, label: str, watched: Any) -> None:
    found = waited_for(lambda: watched.now(metric))

    assert all(one["metric"][label] for one in found)


def test_a_point_of_a_histogram_leads_to_a_call(watched: Any) -> None:
    def exemplars() -> list[Any]:
        found = watched.ask(
            "query_exemplars",
            query="seawall_call_duration_seconds_bucket",
            start=f"{time.time() - 60}",
            end=f"{time.time()}",
        )
        return [exemplar for one in found for exemplar in one["exemplars"]]

    assert all(one["labels"]["call_id"] for one in waited_for(exemplars))
    assert exemplars()


def test_a_scrape_of_that_process_stays_within_its_bound(watched: Any) -> None:
    [found] = waited_for(lambda: watched.now('scrape_samples_scraped{job="seawall"}'))

    assert 0 < float(found["value"][1]) < 2_000
