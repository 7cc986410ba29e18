"""Alerts and recording rules, held against made-up data by `promtool test rules`.

Each alert fires where what it speaks of happens, not before its time, and not on healthy data.
"""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
from tests.found import program

ROOT = Path(__file__).parents[2]
RULES = [ROOT / "grafana" / "rules.yml", ROOT / "grafana" / "alerts.yml"]
ALERTS = re.findall(r"^ +- alert: (\w+)$", RULES[1].read_text("utf-8"), re.MULTILINE)
RECORDED = re.findall(r"^ +- record: (\S+)$", RULES[0].read_text("utf-8"), re.MULTILINE)

HOURS = 7
AT = 'instance="a:1"'
TOOL = f'{AT}, tool="search"'

Series = dict[str, str]


def rising(by: float) -> str:
    """A counter, for seven hours, a value a minute."""
    return f"0+{by}x{60 * HOURS}"


def level(value: float) -> str:
    """A gauge, for as long."""
    return f"{value}+0x{60 * HOURS}"


def buckets(tool: str, seconds: str, by: float = 6) -> Series:
    """A histogram whose values are all at most so many seconds, and more than half of that."""
    bounds = ("1.0", "30.0", "60.0", "+Inf")
    name = "seawall_call_duration_seconds_bucket"
    reached = bounds.index(seconds)
    return {
        f'{name}{{{AT}, tool="{tool}", le="{bound}"}}': rising(by if place >= reached else 0)
        for place, bound in enumerate(bounds)
    }


HEALTHY: Series = {
    f'up{{{AT}, job="seawall"}}': level(1),
    f'seawall_build_info{{{AT}, version="1"}}': level(1),
    f'seawall_calls_total{{{TOOL}, outcome="success"}}': rising(600),
    f'seawall_calls_total{{{TOOL}, outcome="failed"}}': rising(1),
    f'seawall_calls_total{{{TOOL}, outcome="denied"}}': rising(20),
    f'seawall_calls_total{{{TOOL}, outcome="skipped"}}': rising(0),
    f'seawall_calls_total{{{AT}, tool="idle", outcome="success"}}': level(0),
    f'seawall_calls_total{{{AT}, tool="idle", outcome="failed"}}': level(0),
    f"seawall_attempts_total{{{TOOL}}}": rising(620),
    f"seawall_retries_total{{{TOOL}}}": rising(20),
    f'seawall_refusals_total{{{TOOL}, layer="registry", reason="tool_not_found"}}': rising(2),
    f'seawall_breaker_state{{{TOOL}, state="open"}}': level(0),
    f'seawall_breaker_transitions_total{{{TOOL}, state="closed"}}': level(1),
    f"seawall_limiter_tokens_ratio{{{TOOL}}}": level(0.7),
    f"seawall_abandoned_threads{{{AT}}}": level(1),
    f"seawall_approvals_oldest_age_seconds{{{AT}}}": level(120),
    f"seawall_approvals_waiting{{{AT}}}": level(2),
    f'seawall_loop_stops_total{{{AT}, detector="repeat"}}': level(3),
    f'seawall_store_fallbacks_total{{{AT}, store="rate_limit", mode="local"}}': level(4),
    f"seawall_audit_failures_total{{{AT}}}": level(0),
    f"seawall_hook_failures_total{{{TOOL}}}": level(0),
    f"seawall_output_failures_total{{{TOOL}}}": level(2),
    **buckets("search", "1.0"),
}

FAILING: Series = {f'seawall_calls_total{{{TOOL}, outcome="failed"}}': rising(900)}
BITTER: Series = {f'seawall_calls_total{{{TOOL}, outcome="failed"}}': rising(60)}
"""One of eleven fails: too few for the fast alert, too many for the objective."""

ILL: dict[str, tuple[Series, int, int]] = {
    # What happens; the minute at which nothing has fired yet; that at which it has.
    "SeawallDown": ({f'up{{{AT}, job="seawall"}}': level(0)}, 1, 4),
    "SeawallFailuresBurnFast": (FAILING, 1, 60),
    "SeawallFailuresBurnSlowly": (BITTER, 10, 380),
    "SeawallToolFails": (FAILING, 8, 20),
    "SeawallCircuitOpen": ({f'seawall_breaker_state{{{TOOL}, state="open"}}': level(1)}, 4, 8),
    "SeawallCircuitFlaps": (
        {f'seawall_breaker_transitions_total{{{TOOL}, state="closed"}}': rising(0.2)},
        10,
        60,
    ),
    "SeawallRetriesMany": ({f"seawall_retries_total{{{TOOL}}}": rising(400)}, 10, 30),
    "SeawallRefusalsMany": (
        {f'seawall_calls_total{{{TOOL}, outcome="denied"}}': rising(900)},
        10,
        30,
    ),
    "SeawallUnknownNames": (
        {
            f'seawall_refusals_total{{{AT}, tool="_OTHER", layer="registry",'
            ' reason="tool_not_found"}': rising(400)
        },
        10,
        30,
    ),
    "SeawallLimitUsedUp": ({f"seawall_limiter_tokens_ratio{{{TOOL}}}": level(0.01)}, 3, 20),
    "SeawallSlow": (buckets("search", "60.0"), 8, 20),
    "SeawallThreadsLeftBehind": ({f"seawall_abandoned_threads{{{AT}}}": level(7)}, 8, 12),
    "SeawallApprovalsOld": (
        {f"seawall_approvals_oldest_age_seconds{{{AT}}}": level(1_800)},
        4,
        8,
    ),
    "SeawallApprovalsMany": ({f"seawall_approvals_waiting{{{AT}}}": level(40)}, 4, 8),
    "SeawallLoops": ({f'seawall_loop_stops_total{{{AT}, detector="repeat"}}': rising(2)}, 1, 20),
    "SeawallStoreDown": (
        {f'seawall_store_fallbacks_total{{{AT}, store="cache", mode="fail_open"}}': "_x9 1+0x60"},
        8,
        11,
    ),
    "SeawallAuditLost": ({f"seawall_audit_failures_total{{{AT}}}": "0+0x10 1+0x60"}, 9, 13),
    "SeawallHooksFail": ({f"seawall_hook_failures_total{{{TOOL}}}": rising(1)}, 3, 12),
    "SeawallOutputBroken": ({f"seawall_output_failures_total{{{TOOL}}}": rising(2)}, 2, 15),
}


def held(series: Series, expected: list[tuple[str, int, int | None]], work: Path) -> None:
    """Hold expressions at minutes against one value each; None means that nothing is there."""
    tests = [
        {
            "expr": expr,
            "eval_time": f"{minute}m",
            "exp_samples": [] if value is None else [{"labels": "{}", "value": value}],
        }
        for expr, minute, value in expected
    ]
    given = [{"series": name, "values": values} for name, values in series.items()]
    file = work / "test.json"  # JSON is YAML
    file.write_text(
        json.dumps(
            {
                "rule_files": [str(path) for path in RULES],
                "evaluation_interval": "1m",
                "tests": [{"interval": "1m", "input_series": given, "promql_expr_test": tests}],
            }
        )
    )
    told = subprocess.run(
        [program("promtool"), "test", "rules", str(file)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert told.returncode == 0, told.stdout + told.stderr


def firing(alert: str) -> str:
    return f'count(ALERTS{{alertname="{alert}", alertstate="firing"}})'


def test_every_alert_is_tried() -> None:
    assert sorted(ILL) == sorted(ALERTS)


@pytest.mark.parametrize("alert", ALERTS)
def test_an_alert_fires_when_it_should_and_not_before(alert: str, tmp_path: Path) -> None:
    series, before, after = ILL[alert]

    held(HEALTHY | series, [(firing(alert), before, None), (firing(alert), after, 1)], tmp_path)


def test_nothing_fires_on_healthy_data(tmp_path: Path) -> None:
    minutes = (1, 10, 30, 60, 180, 60 * HOURS)

    held(HEALTHY, [('count(ALERTS{alertname=~".+"})', at, None) for at in minutes], tmp_path)


def test_nothing_fires_where_nothing_is_called(tmp_path: Path) -> None:
    idle = {name: level(0) for name in HEALTHY}
    idle[f'up{{{AT}, job="seawall"}}'] = level(1)
    idle[f"seawall_limiter_tokens_ratio{{{TOOL}}}"] = level(1)

    held(idle, [('count(ALERTS{alertname=~".+"})', 60, None)], tmp_path)


@pytest.mark.parametrize("rule", RECORDED)
def test_every_rule_records_something(rule: str, tmp_path: Path) -> None:
    held(HEALTHY, [(f"count({rule}) > bool 0", 60 * HOURS, 1)], tmp_path)


def test_the_rules_parse() -> None:
    told = subprocess.run(
        [program("promtool"), "check", "rules", *map(str, RULES)], capture_output=True, check=False
    )

    assert told.returncode == 0, told.stderr


def test_every_alert_has_its_entry_among_the_operations() -> None:
    page = (ROOT / "docs" / "operations.md").read_text("utf-8")

    assert re.findall(r"^### (\w+)$", page, re.MULTILINE) == ALERTS


@pytest.mark.parametrize("alert", ALERTS)
def test_an_alert_says_where_its_entry_is(alert: str) -> None:
    text = RULES[1].read_text("utf-8")

    assert f"runbook: docs/operations.md#{alert.lower()}\n" in text
