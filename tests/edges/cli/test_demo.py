import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from seawall.edges.cli.app import app
from seawall.edges.cli.demo_witness import DEEDS

Event = Mapping[str, Any]

LIMIT_S = 20
LAYERS = list(DEEDS)


@pytest.fixture(name="events", scope="module")
def events_fixture() -> list[Event]:
    """One real run of the demo, as a program sees it."""
    ran = subprocess.run(
        [sys.executable, "-m", "seawall", "demo", "--json", "--seed", "1"],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout[-2000:] + ran.stderr
    assert ran.stderr == ""
    return [json.loads(line) for line in ran.stdout.splitlines()]


def _of(events: list[Event], event: str, **fields: Any) -> list[Event]:
    return [
        one
        for one in events
        if one["event"] == event and all(one[name] == value for name, value in fields.items())
    ]


def test_all_seven_layers_acted(events: list[Event]) -> None:
    (end,) = _of(events, "end")

    assert events[-1] is end
    assert end["ok"] is True
    assert end["acted"] == LAYERS


def test_every_call_comes_to_a_result(events: list[Event]) -> None:
    called = [one["call"] for one in _of(events, "call")]

    assert sorted(one["call"] for one in _of(events, "result")) == sorted(called)


def test_an_unknown_name_runs_nothing_and_gets_a_hint(events: list[Event]) -> None:
    (result,) = _of(events, "result", reason="tool_not_found")

    assert result["hints"] == ["weather"]
    assert not _of(events, "attempt", call=result["call"])


def test_the_environment_gate_refuses_until_the_printer_is_on(events: list[Event]) -> None:
    refused, printed = _of(events, "result", tool="print_label")

    assert (refused["layer"], refused["reason"]) == ("environment_gate", "environment_unmet")
    assert not _of(events, "attempt", call=refused["call"])
    assert printed["ok"] is True


def test_the_risk_gate_runs_what_the_person_allows_and_nothing_else(events: list[Event]) -> None:
    answers = {one["call"]: one["answer"] for one in _of(events, "answered")}
    tools = {one["tool"]: one["call"] for one in _of(events, "asked")}

    assert answers[tools["ship_order"]] == "allow_once"
    assert _of(events, "attempt", call=tools["ship_order"], outcome="success")
    assert answers[tools["delete_records"]] == "deny"
    assert _of(events, "result", call=tools["delete_records"], reason="approval_denied")
    assert not _of(events, "attempt", call=tools["delete_records"])


def test_the_argument_check_refuses_all_faults_at_once_and_mends_what_is_plain(
    events: list[Event],
) -> None:
    refused, shipped = _of(events, "result", tool="ship_order")

    assert refused["layer"] == "argument_check"
    assert all(name in refused["text"] for name in ("order_id", "quantity", "express"))
    assert not _of(events, "attempt", call=refused["call"])
    (mended,) = _of(events, "mended")
    assert mended["call"] == shipped["call"]
    assert "/quantity text to integer" in mended["mended"]


def test_the_rate_limiter_refuses_and_says_when_there_is_room_again(events: list[Event]) -> None:
    refused = _of(events, "result", tool="http_check", reason="rate_limited")
    granted = _of(events, "result", tool="http_check", ok=True)

    assert len(refused) == 1
    assert 0 < refused[0]["retry_after_s"] <= 0.5
    assert events.index(granted[-1]) > events.index(refused[0])


def test_a_retry_waits_within_its_ceiling_and_recovers(events: list[Event]) -> None:
    results = _of(events, "result", tool="weather")
    again = [one for one in _of(events, "attempt", tool="weather") if one["attempt"] > 1]

    assert all(one["ok"] and one["attempts"] > 1 for one in results)
    for one in again:
        # Full jitter: anything up to the ceiling, and what the machine takes to wake up.
        assert 0 <= one["waited_ms"] <= 150 * 2 ** (one["attempt"] - 2) + 500


def test_the_timeout_cancels_a_slow_call(events: list[Event]) -> None:
    (result,) = _of(events, "result", tool="sales_report")
    (report,) = _of(events, "report")

    assert (result["code"], result["layer"]) == ("timeout", "timeout")
    assert _of(events, "layer", tool="sales_report", layer="timeout", did="expired")
    assert report["service"]["hung_up"] == 1


def test_the_breaker_opens_lets_one_probe_through_widens_and_closes(events: list[Event]) -> None:
    changes = [one["did"] for one in _of(events, "layer", layer="breaker")]

    assert changes == ["open", "half_open", "open", "half_open", "closed"]
    assert _of(events, "result", tool="inventory_lookup", reason="circuit_open")
    assert _of(events, "result", tool="inventory_lookup")[-1]["ok"] is True


def test_one_call_of_three_is_the_probe(events: list[Event]) -> None:
    changes = [place for place, one in enumerate(events) if one.get("layer") == "breaker"]
    probing, reopened = [place for place in changes if events[place]["event"] == "layer"][1:3]
    meanwhile = events[probing:reopened]

    assert len(_of(meanwhile, "result", reason="circuit_open")) == 2


def test_what_was_refused_never_reached_the_service(events: list[Event]) -> None:
    (report,) = _of(events, "report")

    assert report["service"]["records_left"] == 1200
    assert report["service"]["requests"]["orders"] == 1
    assert report["service"]["requests"]["labels"] == 1
    assert "records" not in report["service"]["requests"]


def test_the_report_counts_what_was_seen(events: list[Event]) -> None:
    (report,) = _of(events, "report")
    calls = {one["tool"]: one["calls"] for one in report["usage"]}

    for tool in ("weather", "inventory_lookup", "http_check", "wait"):
        assert calls[tool] == len(_of(events, "call", tool=tool))
    spans = _of(events, "attempt")
    assert report["spans"]["success"] == len([one for one in spans if one["outcome"] == "success"])
    assert report["breakers"] == {"inventory_lookup": {"state": "closed", "opened": 2}}
    assert any("seawall_refusals_total" in line for line in report["metrics"])


@pytest.fixture(name="hurried")
def hurried_fixture(monkeypatch: pytest.MonkeyPatch) -> None:
    """A service that is not slow and a person who does not think."""
    monkeypatch.setattr("seawall.edges.cli.demo_service.SLOW_S", 0.01)
    monkeypatch.setattr("seawall.edges.cli.demo.THINKING_S", 0.0)
    monkeypatch.setattr("seawall.edges.cli.demo.LONGEST_WAIT_MS", 10)


@pytest.mark.usefixtures("hurried")
def test_layers_that_a_policy_switches_off_are_missed(tmp_path: Path) -> None:
    path = tmp_path / "off.toml"
    path.write_text('[default]\npreset = "legacy"\n')

    ran = CliRunner().invoke(app, ["demo", "--json", "--policy", str(path)])

    end = json.loads(ran.stdout.splitlines()[-1])
    assert ran.exit_code == 1
    assert end["ok"] is False
    assert end["acted"] == ["environment_gate", "risk_gate", "argument_check"]


@pytest.mark.usefixtures("hurried")
def test_a_reader_is_told_which_layers_were_missed(tmp_path: Path) -> None:
    path = tmp_path / "off.toml"
    path.write_text('[default]\npreset = "legacy"\n')

    ran = CliRunner().invoke(app, ["demo", "--fast", "--policy", str(path)])

    assert ran.exit_code == 1
    assert ran.stdout.splitlines()[-1] == (
        "not seen: rate_limit (refused); retry (tried again, recovered);"
        " breaker (opened, refused, probed, closed); timeout (cancelled)"
    )


def test_a_policy_that_cannot_be_read_ends_it_before_it_begins() -> None:
    ran = CliRunner().invoke(app, ["demo", "--policy", "no-such.toml"])

    assert (ran.exit_code, ran.stdout) == (2, "")


def test_a_port_that_cannot_be_had_is_said_without_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuse(*_: Any, **__: Any) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr("asyncio.start_server", refuse)

    ran = CliRunner().invoke(app, ["demo"])

    assert ran.exit_code == 2
    assert "cannot listen on 127.0.0.1: Operation not permitted" in ran.stderr


def test_with_chaos_every_call_still_comes_to_a_result() -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "seawall", "demo", "--json", "--seed", "2", "--chaos"],
        capture_output=True,
        text=True,
        timeout=2 * LIMIT_S,
        check=False,
    )
    events = [json.loads(line) for line in ran.stdout.splitlines()]

    assert ran.returncode == 0
    assert len(_of(events, "result")) == len(_of(events, "call"))
    (found,) = _of(events, "report")
    assert sum(found["chaos"].values()) > 0
