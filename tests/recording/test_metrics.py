"""Metrics: cases, which tools have labels, and that counters only ever grow."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import prometheus_client
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

from seawall.contract.errors import ConfigurationError
from seawall.contract.failure import REASONS
from seawall.contract.span import Outcome, Span
from seawall.orchestration.status import Read
from seawall.pipeline.recorder import Finished
from seawall.recording.counts import CIRCUIT_STATES
from seawall.recording.families import WATCHED
from seawall.recording.metrics import MAX_RETIRED, Gauge, Metrics

if TYPE_CHECKING:
    from prometheus_client.samples import Sample

TESTS = Path(__file__).parents[1]
CASES = {one["id"]: one for one in json.loads((TESTS / "cases" / "metrics.json").read_text())}

Series = dict[tuple[str, frozenset[tuple[str, str]]], float]


def finished(tool: str = "search", outcome: Outcome = Outcome.SUCCESS, **fields: Any) -> Finished:
    values: dict[str, Any] = {
        "reason": "",
        "layer": "",
        "elapsed_s": 0.25,
        "executed_s": 0.2,
        "attempts": 1,
        "session_id": "s",
        "caller": "c",
        "result": None,
    }
    return Finished(call_id="1", tool=tool, outcome=outcome, **(values | fields))


def call(metrics: Metrics, tool: str = "search", times: int = 1) -> None:
    recorder = metrics.for_tool(tool)
    assert recorder.on_call is not None
    for _ in range(times):
        recorder.on_call(finished(tool))


def scraped(metrics: Metrics) -> list[Sample]:
    families = text_string_to_metric_families(metrics.text().decode())
    return [sample for family in families for sample in family.samples]


def series(metrics: Metrics) -> Series:
    return {
        (sample.name, frozenset(sample.labels.items())): float(sample.value)
        for sample in scraped(metrics)
    }


def calls(metrics: Metrics, tool: str, outcome: str = "success") -> float | None:
    labels = frozenset({("tool", tool), ("outcome", outcome)})
    return series(metrics).get(("seawall_calls_total", labels))


# Cases.


def test_names_that_a_model_invents_make_no_series_as_the_case_says() -> None:
    case = CASES["metrics-01"]
    metrics = Metrics()
    for tool in case["given"]["registry"]:
        call(metrics, tool)

    for _ in range(case["call"]["timeline"][0]["distinct"]):
        metrics.unknown()

    found = scraped(metrics)
    assert len(found) <= case["expect"]["series_max"]
    tools = {sample.labels["tool"] for sample in found if "tool" in sample.labels}
    assert tools == {"search", "_OTHER"}
    assert len(tools) <= case["expect"]["label_values_max"]["tool"]
    assert calls(metrics, "_OTHER", "denied") == 1000


def test_tenants_are_no_label_as_the_case_says() -> None:
    case = CASES["metrics-06"]
    metrics = Metrics()
    count = metrics.for_tool("search").on_call
    assert count is not None
    call(metrics)
    before = len(scraped(metrics))

    for number in range(case["call"]["timeline"][0]["distinct"]):
        count(finished(caller=f"tenant-{number}", session_id=f"session-{number}"))

    names = {name for sample in scraped(metrics) for name in sample.labels}
    assert len(scraped(metrics)) == before
    assert not names & set(case["expect"]["label_names_never"])
    assert "tenant-" not in metrics.text().decode()
    assert "session-" not in metrics.text().decode()


# Which tools have labels.


def test_a_tool_whose_chain_is_composed_anew_goes_on_with_its_counts() -> None:
    metrics = Metrics()

    call(metrics)
    call(metrics)

    assert calls(metrics, "search") == 2


def test_the_functions_of_an_old_chain_still_count() -> None:
    metrics = Metrics()
    old = metrics.for_tool("search").on_call
    assert old is not None

    call(metrics)
    old(finished())

    assert calls(metrics, "search") == 2


def test_a_forgotten_tool_keeps_its_counts_also_for_calls_still_in_flight() -> None:
    metrics = Metrics()
    count = metrics.for_tool("search").on_call
    assert count is not None
    count(finished())

    metrics.forget("search")
    count(finished())

    assert calls(metrics, "search") == 2


def test_a_tool_that_comes_back_goes_on_with_its_counts() -> None:
    metrics = Metrics()
    call(metrics)

    metrics.forget("search")
    call(metrics)
    metrics.forget("search")
    metrics.forget("search")

    assert calls(metrics, "search") == 2


def test_the_oldest_of_many_retired_tools_are_added_up() -> None:
    metrics = Metrics(max_retired=2)

    for tool in "abcd":
        call(metrics, tool, times=3)
        metrics.forget(tool)

    assert {tool: calls(metrics, tool) for tool in ("a", "b", "c", "d", "_RETIRED")} == {
        "a": None,
        "b": None,
        "c": 3,
        "d": 3,
        "_RETIRED": 6,
    }


def test_a_server_that_changes_its_tools_for_ever_does_not_fill_the_memory() -> None:
    metrics = Metrics()

    for number in range(3 * MAX_RETIRED):
        call(metrics, f"tool{number}")
        metrics.forget(f"tool{number}")

    assert len(metrics.tools()) == MAX_RETIRED + 1
    assert calls(metrics, "_RETIRED") == 2 * MAX_RETIRED


def test_forgetting_a_name_that_is_not_registered_does_nothing() -> None:
    metrics = Metrics(max_retired=0)
    metrics.unknown()

    for name in ("never", "_OTHER", "_RETIRED"):
        metrics.forget(name)

    assert metrics.tools() == []
    assert calls(metrics, "_OTHER", "denied") == 1


@pytest.mark.parametrize("name", ["_OTHER", "_RETIRED"])
def test_a_tool_cannot_take_one_of_our_labels(name: str) -> None:
    metrics = Metrics(max_retired=0)
    call(metrics, "gone")
    metrics.forget("gone")
    metrics.unknown()

    call(metrics, name)

    assert calls(metrics, f"{name}_") == 1
    assert calls(metrics, "_RETIRED") == 1
    assert calls(metrics, "_OTHER", "denied") == 1
    assert calls(metrics, "_OTHER") is None


def test_a_name_that_utf8_cannot_say_does_not_spoil_the_scrape() -> None:
    metrics = Metrics()

    call(metrics, "bad\ud800name")

    assert "bad\\\\ud800name" in metrics.text().decode()


def test_what_a_scrape_reads_does_not_change_while_tools_come_and_go() -> None:
    metrics = Metrics()
    call(metrics, "stays")
    call(metrics, "leaves")

    listed = metrics.tools()
    metrics.forget("leaves")
    call(metrics, "comes")

    assert [tool for tool, _ in listed] == ["stays", "leaves"]


def test_a_negative_bound_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="max_retired must be 0 or more"):
        Metrics(max_retired=-1)


# Registries.


def test_each_metrics_has_a_registry_of_its_own() -> None:
    one, other = Metrics(), Metrics()

    assert one.registry is not other.registry
    assert one.registry is one.registry


def test_a_registry_that_is_given_is_used() -> None:
    registry = CollectorRegistry()
    metrics = Metrics(registry)

    call(metrics)

    assert metrics.registry is registry
    labels = {"tool": "search", "outcome": "success"}
    assert registry.get_sample_value("seawall_calls_total", labels) == 1


def test_the_default_registry_works_and_is_free_again_after_closing() -> None:
    for _ in range(2):
        metrics = Metrics(prometheus_client.REGISTRY)
        call(metrics)
        try:
            assert calls(metrics, "search") == 1
            assert b"python_info" in metrics.text()
        finally:
            metrics.close()

    metrics.close()
    assert b"seawall" not in prometheus_client.generate_latest()


def test_closing_what_nobody_scraped_does_nothing() -> None:
    metrics = Metrics()

    metrics.close()

    call(metrics)
    assert calls(metrics, "search") == 1


def test_the_format_follows_the_accept_header() -> None:
    metrics = Metrics()

    body, content_type = metrics.exposition("application/openmetrics-text; version=1.0.0")

    assert body.endswith(b"# EOF\n")
    assert content_type.startswith("application/openmetrics-text; version=1.0.0")
    assert metrics.text("application/openmetrics-text; version=1.0.0") == body
    assert b"# EOF" not in metrics.text()


def test_counting_does_not_import_the_prometheus_client() -> None:
    code = (
        "import sys; from seawall.recording.metrics import Metrics; m = Metrics();"
        "m.for_tool('t'); m.unknown(); assert 'prometheus_client' not in sys.modules;"
        "m.text(); assert 'prometheus_client' in sys.modules"
    )

    subprocess.run([sys.executable, "-c", code], check=True)


# Gauges.


def test_a_source_is_asked_at_each_scrape_and_once() -> None:
    metrics = Metrics()
    asked: list[int] = []

    def source() -> list[Gauge]:
        asked.append(1)
        return [Gauge("seawall_in_flight", "Calls in flight.", {"tool": "search"}, len(asked))]

    metrics.watch(source)
    metrics.watch(source)
    key = ("seawall_in_flight", frozenset({("tool", "search")}))

    assert [series(metrics)[key], series(metrics)[key]] == [1, 2]
    metrics.unwatch(source)
    metrics.unwatch(source)
    assert key not in series(metrics)


def test_a_source_that_raises_does_not_spoil_the_scrape() -> None:
    metrics = Metrics()

    def broken() -> list[Gauge]:
        raise RuntimeError("no")

    metrics.watch(broken)
    call(metrics)

    assert calls(metrics, "search") == 1


# Counters only grow.

OUTCOMES = st.sampled_from(Outcome)
TOOLS = st.sampled_from(["a", "b", "c", "d", "_RETIRED"])
TEXTS = st.sampled_from(["breaker", "rate_limit", "opened", "", "\ud800"]) | st.text(max_size=3)


class Counting(RuleBasedStateMachine):
    """Tools come, are called and go; between any two scrapes no sum of a counter goes back."""

    def __init__(self) -> None:
        super().__init__()
        self.metrics = Metrics(max_retired=2)
        self.before: Series = {}
        self.ever: Counter[str] = Counter()

    @rule(
        tool=TOOLS,
        number=st.integers(0, 3),
        outcome=OUTCOMES,
        seconds=st.floats(-1, 400) | st.just(float("nan")),
    )
    def attempt(self, tool: str, number: int, outcome: Outcome, seconds: float) -> None:
        count = self.metrics.for_tool(tool).on_attempt
        assert count is not None
        count(Span("1", tool, number, 0.0, seconds * 1000, outcome))
        self.ever["attempt"] += number > 0
        self.ever["retry"] += number > 1

    @rule(
        tool=TOOLS,
        outcome=OUTCOMES,
        seconds=st.floats(0, 400),
        reason=st.sampled_from([*REASONS, "own_slug", ""]),
        layer=TEXTS,
    )
    def end(self, tool: str, outcome: Outcome, seconds: float, reason: str, layer: str) -> None:
        count = self.metrics.for_tool(tool).on_call
        assert count is not None
        count(finished(tool, outcome, reason=reason, layer=layer, elapsed_s=seconds))
        self.ever["call"] += 1
        self.ever[outcome] += 1

    @rule(tool=TOOLS, layer=TEXTS, event=TEXTS)
    def happen(self, tool: str, layer: str, event: str) -> None:
        count = self.metrics.for_tool(tool).on_event
        assert count is not None
        count(layer, event)
        self.ever["event"] += 1

    @rule()
    def guess(self) -> None:
        self.metrics.unknown()
        self.ever["unknown"] += 1

    @rule(tool=TOOLS)
    def leave(self, tool: str) -> None:
        self.metrics.forget(tool)

    @invariant()
    def nothing_goes_back(self) -> None:
        now = series(self.metrics)
        for key, value in self.before.items():
            # A tool that was folded and came back begins anew; its counts are in `_RETIRED`.
            if ("tool", "_RETIRED") in key[1] or ("tool", "_OTHER") in key[1]:
                assert now[key] >= value
        assert all(total >= sums(self.before)[name] - 1e-6 for name, total in sums(now).items())
        self.before = now

    @invariant()
    def nothing_is_lost(self) -> None:
        found = sums(series(self.metrics))
        assert found["seawall_calls_total"] == self.ever["call"] + self.ever["unknown"]
        assert found["seawall_call_duration_seconds_count"] == self.ever["call"]
        assert found["seawall_attempts_total"] == self.ever["attempt"]
        assert found["seawall_attempt_duration_seconds_count"] == self.ever["attempt"]
        assert found["seawall_retries_total"] == self.ever["retry"]
        assert found["seawall_refusals_total"] == self.ever[Outcome.DENIED] + self.ever["unknown"]
        assert found["seawall_failures_total"] == self.ever[Outcome.FAILED]
        assert found["seawall_events_total"] == self.ever["event"]


def sums(found: Series) -> dict[str, float]:
    """Each counter over all its series; buckets apart by their bound."""
    added: dict[str, float] = defaultdict(float)
    for (name, labels), value in found.items():
        bound = dict(labels).get("le", "")
        added[f"{name}{bound}"] += value
    return added


TestCounting = Counting.TestCase
TestCounting.settings = settings(max_examples=20, stateful_step_count=20, deadline=None)


# The bound on series.


def everything(metrics: Metrics, tool: str, rounds: int = 40) -> None:
    """Count for a tool whatever can be counted, with invented reasons, layers and errors."""
    recorder = metrics.for_tool(tool)
    assert recorder.on_attempt is not None
    assert recorder.on_call is not None
    assert recorder.on_event is not None
    reasons = itertools.cycle([*REASONS, "made_up"])
    for number, reason in zip(range(rounds), reasons, strict=False):
        for outcome in Outcome:
            recorder.on_attempt(Span("1", tool, 1, 0.0, 5.0, outcome, reason))
            recorder.on_call(finished(tool, outcome, reason=reason, layer=f"layer {number}"))
        recorder.on_event(f"layer {number}", f"event {number}")
    for state in ("closed", "open", "half_open"):
        recorder.on_event("breaker", state)
    recorder.on_event("hooks", "failed")
    recorder.on_event("output_check", "invalid")


def gauges_of(tools: list[str], metrics: Metrics) -> list[Gauge]:
    """All that is read of a pipeline, of every tool."""
    read = Read()
    for tool in tools:
        shown = metrics.label(tool)
        for family in WATCHED:
            states = CIRCUIT_STATES if "state" in family.labels else ("",)
            for state in states:
                values = {"tool": shown, "state": state, "family": "none"}
                read.add(family, 1, *(values[label] for label in family.labels))
    return list(read.gauges())


def test_no_more_series_than_stated_whatever_is_invented() -> None:
    metrics = Metrics(max_tools=5, max_retired=3)
    tools = [f"tool {number}" for number in range(40)]
    for tool in tools[:20]:
        everything(metrics, tool)
        metrics.forget(tool)
    for tool in tools[20:]:
        everything(metrics, tool)
    for number in range(1_000):
        metrics.unknown()
        metrics.suggested(near=bool(number % 2))
        metrics.loop_stopped(f"detector {number}")
        everything_shared = metrics.for_tool(tools[-1]).on_event
        assert everything_shared is not None
        everything_shared(f"store {number}", f"store_mode {number}")
    metrics.watch(lambda: gauges_of(tools, metrics))

    found = scraped(metrics)

    assert len(found) <= metrics.max_series
    assert len(found) > metrics.max_series * 0.9, "the bound says something"
    labels = {sample.labels["tool"] for sample in found if "tool" in sample.labels}
    assert len(labels) == 5 + 3 + 2


def test_ten_thousand_inventions_of_each_kind_add_no_series() -> None:
    metrics = Metrics(max_tools=10)
    for number in range(11):
        everything(metrics, f"tool {number}")
    metrics.unknown()
    before = set(series(metrics))
    shared = metrics.for_tool("tool 3")
    assert shared.on_call is not None
    assert shared.on_attempt is not None

    for number in range(10_000):
        everything(metrics, f"invented {number}", 1)
        metrics.unknown()
        shared.on_call(
            finished(
                "tool 3",
                Outcome.FAILED,
                reason=f"error text {number}",
                session_id=f"session {number}",
                caller=f"tenant {number}",
            )
        )
        shared.on_attempt(
            Span(f"call {number}", "tool 3", 1, 0.0, 1.0, Outcome.FAILED, f"reason {number}")
        )

    assert set(series(metrics)) == before
    assert metrics.label("invented 9999") == "_OTHER"
    assert metrics.label("tool 3") == "tool 3"


def test_tools_beyond_the_bound_count_together_with_unknown_names() -> None:
    metrics = Metrics(max_tools=1)
    call(metrics, "first")
    call(metrics, "second", 2)
    call(metrics, "third", 3)
    metrics.unknown()

    assert calls(metrics, "first") == 1
    assert calls(metrics, "_OTHER") == 5
    assert calls(metrics, "_OTHER", "denied") == 1
    assert calls(metrics, "second") is None


def test_a_tool_that_went_makes_room_for_another() -> None:
    metrics = Metrics(max_tools=1)
    call(metrics, "first")
    metrics.forget("first")

    call(metrics, "second")

    assert calls(metrics, "second") == 1
    assert calls(metrics, "first") == 1


def test_tools_without_labels_of_their_own_share_the_functions_that_count() -> None:
    metrics = Metrics(max_tools=1)

    own, first, second = (metrics.for_tool(name) for name in ("a", "b", "c"))

    assert first is second
    assert first is not own


@pytest.mark.parametrize("bound", ["max_tools", "max_retired"])
def test_a_bound_below_nothing_is_refused(bound: str) -> None:
    options: dict[str, Any] = {bound: -1}

    with pytest.raises(ConfigurationError, match=bound):
        Metrics(**options)


# What belongs to no tool.


def test_suggestions_stops_and_lost_entries_are_counted() -> None:
    metrics = Metrics()
    metrics.suggested(near=True)
    metrics.loop_stopped("cycle_2")
    metrics.loop_stopped("by a moon phase")
    metrics.audit_failed()
    event = metrics.for_tool("search").on_event
    assert event is not None
    event("rate_limit", "store_local")
    event("rate_limit", "store_local")

    found = series(metrics)

    def at(name: str, **labels: str) -> float | None:
        return found.get((name, frozenset(labels.items())))

    assert at("seawall_suggestions_total", near="true") == 1
    assert at("seawall_suggestions_total", near="false") == 0
    assert at("seawall_loop_stops_total", detector="cycle_2") == 1
    assert at("seawall_loop_stops_total", detector="other") == 1
    assert at("seawall_loop_stops_total", detector="judge") == 0
    assert at("seawall_audit_failures_total") == 1
    assert at("seawall_store_fallbacks_total", store="rate_limit", mode="local") == 2


def waiting(metrics: Metrics) -> tuple[float, float]:
    found = series(metrics)
    names = ("seawall_approvals_waiting", "seawall_approvals_oldest_age_seconds")
    count, age_s = (found[name, frozenset()] for name in names)
    return count, age_s


def test_nobody_waits_where_nobody_says_so() -> None:
    assert waiting(Metrics()) == (0, 0)


def test_backlogs_add_up_and_the_oldest_is_the_oldest_of_all() -> None:
    metrics = Metrics()

    def one() -> tuple[int, float]:
        return 2, 30.0

    metrics.watch_approvals(one)
    metrics.watch_approvals(one)
    metrics.watch_approvals(lambda: (1, 90.0))
    assert waiting(metrics) == (3, 90)

    metrics.unwatch_approvals(one)
    metrics.unwatch_approvals(one)
    assert waiting(metrics) == (1, 90)


@pytest.mark.parametrize("odd", [None, "many", (1,), (float("nan"), "x")])
def test_a_backlog_that_fails_is_left_out(odd: Any) -> None:
    def fails() -> tuple[int, float]:
        if odd is None:
            raise OSError("no database")
        found: tuple[int, float] = odd
        return found

    metrics = Metrics()
    metrics.watch_approvals(fails)
    metrics.watch_approvals(lambda: (1, 5.0))

    assert waiting(metrics) == (1, 5)
