"""The exposition: its names, types and samples, in both formats, as a parser reads them."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

import pytest
from prometheus_client import CollectorRegistry, Counter
from prometheus_client.openmetrics import parser as openmetrics_parser
from prometheus_client.parser import text_string_to_metric_families as read_plain

from seawall.contract.errors import ConfigurationError
from seawall.contract.span import Outcome, Span
from seawall.pipeline.recorder import Finished
from seawall.recording import shown as module
from seawall.recording.counts import BOUNDS_S, PipelineCounts, ToolCounts
from seawall.recording.families import COUNTED
from seawall.recording.gauges import Gauge, GaugeSource
from seawall.recording.scrape import Scrape, attached, exposition

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from prometheus_client.metrics_core import Metric

read_openmetrics: Callable[[str], Iterable[Metric]] = (
    openmetrics_parser.text_string_to_metric_families
)

OPENMETRICS = "application/openmetrics-text; version=1.0.0"


class Counted:
    """Counts that a test has made."""

    def __init__(self, *tools: str, unknown_calls: int = 0) -> None:
        self.counts = {tool: ToolCounts() for tool in tools}
        self.shared = PipelineCounts()
        self.shared.unknown = unknown_calls
        self.sources: tuple[GaugeSource, ...] = ()

    def tools(self) -> list[tuple[str, ToolCounts]]:
        return list(self.counts.items())

    def approvals(self) -> list[Gauge]:
        return [
            Gauge("seawall_approvals_waiting", "Waiting.", {}, 0),
            Gauge("seawall_approvals_oldest_age_seconds", "Oldest.", {}, 0),
        ]


def busy(tool: str = "search") -> Counted:
    counted = Counted(tool, unknown_calls=2)
    counts = counted.counts[tool]
    counts.on_attempt(Span("1", tool, 1, 0.0, 700.0, Outcome.FAILED))
    counts.on_attempt(Span("1", tool, 2, 0.0, 15.0, Outcome.SUCCESS))
    counts.on_attempt(Span("2", tool, 1, 0.0, 1.0, Outcome.DENIED))
    counts.on_call(Finished("1", tool, Outcome.SUCCESS, "", "", 1.25, 0.715, 2, "", "", None))
    counts.on_call(
        Finished("2", tool, Outcome.DENIED, "rate_limited", "rate_limit", 0, None, 0, "", "", None)
    )
    counts.on_call(Finished("3", tool, Outcome.FAILED, "transport", "", 0, 0, 1, "", "", None))
    counts.on_event("breaker", "opened")
    return counted


def exposed(counted: Counted, accept: str = "") -> str:
    registry = CollectorRegistry()
    attached(counted, registry)
    return exposition(registry, accept)[0].decode()


def samples(families: Iterable[Metric]) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    found = [
        ((sample.name, frozenset(sample.labels.items())), float(sample.value))
        for family in families
        for sample in family.samples
    ]
    assert len(dict(found)) == len(found), "a series stands there twice"
    return dict(found)


def value(text: str, name: str, **labels: str) -> float | None:
    return samples(read_plain(text)).get((name, frozenset(labels.items())))


def test_both_formats_hold_the_same_samples() -> None:
    counted = busy()
    counted.sources = (lambda: [Gauge("seawall_in_flight", "In flight.", {"tool": "search"}, 2)],)

    plain = samples(read_plain(exposed(counted)))
    openmetrics = samples(read_openmetrics(exposed(counted, OPENMETRICS)))

    assert plain == openmetrics
    assert len(plain) > 40


def test_the_families_have_these_names_and_types() -> None:
    found = {family.name: family.type for family in read_openmetrics(exposed(busy(), OPENMETRICS))}

    assert found == {family.name: family.kind for family in COUNTED}


@pytest.mark.parametrize(
    ("name", "labels", "expected"),
    [
        ("seawall_calls_total", {"tool": "search", "outcome": "success"}, 1),
        ("seawall_calls_total", {"tool": "search", "outcome": "failed"}, 1),
        ("seawall_calls_total", {"tool": "search", "outcome": "denied"}, 1),
        ("seawall_calls_total", {"tool": "search", "outcome": "skipped"}, 0),
        ("seawall_calls_total", {"tool": "_OTHER", "outcome": "denied"}, 2),
        ("seawall_attempts_total", {"tool": "search", "outcome": "success"}, 1),
        ("seawall_attempts_total", {"tool": "search", "outcome": "failed"}, 1),
        ("seawall_attempts_total", {"tool": "search", "outcome": "denied"}, 1),
        ("seawall_attempts_total", {"tool": "search", "outcome": "skipped"}, None),
        (
            "seawall_refusals_total",
            {"tool": "search", "layer": "rate_limit", "reason": "rate_limited"},
            1,
        ),
        (
            "seawall_failures_total",
            {"tool": "search", "code": "execution_failed", "reason": "transport"},
            1,
        ),
        ("seawall_retries_total", {"tool": "search"}, 1),
        ("seawall_events_total", {"tool": "search", "layer": "breaker", "event": "opened"}, 1),
        ("seawall_build_info", {"version": version("seawall")}, 1),
        ("seawall_call_duration_seconds_sum", {"tool": "search"}, 1.25),
        ("seawall_call_duration_seconds_count", {"tool": "search"}, 3),
        ("seawall_call_duration_seconds_bucket", {"tool": "search", "le": "1.0"}, 2),
        ("seawall_call_duration_seconds_bucket", {"tool": "search", "le": "2.0"}, 3),
        ("seawall_attempt_duration_seconds_bucket", {"tool": "search", "le": "0.001"}, 1),
        ("seawall_attempt_duration_seconds_bucket", {"tool": "search", "le": "0.02"}, 2),
        ("seawall_attempt_duration_seconds_bucket", {"tool": "search", "le": "+Inf"}, 3),
    ],
)
def test_a_scrape_gives_what_was_counted(
    name: str, labels: dict[str, str], expected: float | None
) -> None:
    assert value(exposed(busy()), name, **labels) == expected


def test_a_tool_that_was_never_called_has_its_counters_at_zero_and_no_histogram() -> None:
    found = samples(read_plain(exposed(Counted("new"))))

    of_the_tool = {key: value for key, value in found.items() if ("tool", "new") in key[1]}
    assert len(of_the_tool) == 12
    assert set(of_the_tool.values()) == {0.0}


def test_each_histogram_has_every_bound_and_infinity() -> None:
    [family] = [
        family
        for family in read_plain(exposed(busy()))
        if family.name == "seawall_call_duration_seconds"
    ]

    bounds = [float(s.labels["le"]) for s in family.samples if s.name.endswith("_bucket")]
    assert bounds == [*BOUNDS_S, float("inf")]


@pytest.mark.parametrize("name", ['qu"ote', "back\\slash", "line\nend", "ünder", "a" * 500])
def test_any_name_of_a_tool_is_read_back_as_it_is(name: str) -> None:
    text = exposed(busy(name))

    assert value(text, "seawall_retries_total", tool=name) == 1


def test_what_is_counted_during_a_scrape_does_not_disturb_it() -> None:
    counted = Counted("search")
    events = counted.counts["search"].events

    class Meanwhile(tuple[str, str]):
        """A pair at whose reading another thread counts something."""

        __slots__ = ()

        def __iter__(self) -> Iterator[str]:
            events["cache", f"event {len(events)}"] = 1
            return super().__iter__()

    events[Meanwhile(("breaker", "opened"))] = 1
    events[Meanwhile(("breaker", "closed"))] = 1

    text = exposed(counted)

    assert value(text, "seawall_events_total", tool="search", layer="breaker", event="closed") == 1


# Registries.


def test_a_registry_takes_the_metrics_once() -> None:
    registry = CollectorRegistry()
    attached(Counted(), registry)

    with pytest.raises(ConfigurationError, match="share one Metrics between pipelines"):
        attached(Counted(), registry)


@pytest.mark.parametrize("name", ["seawall_calls", "seawall_call_duration_seconds"])
def test_a_registry_where_a_name_is_taken_is_refused(name: str) -> None:
    registry = CollectorRegistry()
    Counter(name, "Somebody else's.", registry=registry)

    with pytest.raises(ConfigurationError, match="already"):
        attached(Counted(), registry)


def test_a_scrape_of_some_names_gives_those_alone() -> None:
    registry = CollectorRegistry()
    attached(busy(), registry)

    text = exposition(registry.restricted_registry(["seawall_retries_total"]), "")[0].decode()  # type: ignore[arg-type]  # a registry as far as an encoder sees

    assert {key[0] for key in samples(read_plain(text))} == {"seawall_retries_total"}


def test_without_an_installed_package_the_version_is_unknown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def missing(_: str) -> str:
        raise PackageNotFoundError

    monkeypatch.setattr(module, "version", missing)

    assert value(exposed(Counted()), "seawall_build_info", version="unknown") == 1


# Gauges.


def test_a_gauge_may_not_have_one_of_our_own_names() -> None:
    counted = Counted("search")
    for suffix in ("", "_total", "_bucket"):
        name = f"seawall_calls{suffix}"
        counted.sources += (lambda name=name: [Gauge(name, "Not ours.", {"tool": "search"}, 9)],)  # type: ignore[misc]  # the loop's name is bound as a default

    assert "Not ours" not in exposed(counted)


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -1.5, 0])
def test_any_number_can_be_the_value_of_a_gauge(number: float) -> None:
    counted = Counted()
    counted.sources = (lambda: [Gauge("seawall_x", "Odd \n help.", {}, number)],)

    found = value(exposed(counted, ""), "seawall_x")

    assert str(found) == str(float(number))


# Which format.


@pytest.mark.parametrize(
    ("accept", "content_type", "reader"),
    [
        ("", "text/plain; version=0.0.4", read_plain),
        ("*/*", "text/plain; version=0.0.4", read_plain),
        ("text/plain;version=1.0.0", "text/plain; version=1.0.0", read_plain),
        (OPENMETRICS, "application/openmetrics-text; version=1.0.0", read_openmetrics),
        ("application/openmetrics-text", "application/openmetrics-text", read_openmetrics),
        ("application/openmetrics-text; version=latest", "text/plain", read_plain),
        ("text/plain; version=x", "text/plain; version=0.0.4", read_plain),
        ("application/openmetrics-text; version=0.0.1, */*", "text/plain", read_plain),
        (";;,=;version", "text/plain; version=0.0.4", read_plain),
    ],
)
def test_the_accept_header_chooses_the_format_and_cannot_break_it(
    accept: str, content_type: str, reader: Callable[[str], Any]
) -> None:
    registry = CollectorRegistry()
    attached(busy(), registry)

    body, found_type = exposition(registry, accept)

    assert found_type.startswith(content_type)
    assert samples(reader(body.decode()))


def test_describing_needs_no_counts() -> None:
    assert {family.name for family in Scrape(busy()).describe()} == {
        family.name for family in Scrape(Counted()).collect()
    }


# Exemplars.


def exemplars(counted: Counted) -> dict[tuple[str, str], tuple[dict[str, str], float]]:
    return {
        (sample.name, sample.labels["le"]): (sample.exemplar.labels, float(sample.exemplar.value))
        for family in read_openmetrics(exposed(counted, OPENMETRICS))
        for sample in family.samples
        if sample.exemplar is not None
    }


def test_each_bucket_names_the_newest_call_that_fell_into_it() -> None:
    found = exemplars(busy())

    call, attempt = (
        "seawall_call_duration_seconds_bucket",
        "seawall_attempt_duration_seconds_bucket",
    )
    assert found[call, "2.0"] == ({"call_id": "1"}, 1.25)
    assert found[attempt, "0.02"] == ({"call_id": "1"}, 0.015)
    assert {bound for _, bound in found} == {"2.0", "0.02", "1.0"}, "none of the fastest"
    assert "call_id" not in exposed(busy())


@pytest.mark.parametrize(
    ("call_id", "named"),
    [
        ("x" * 121, True),
        ("x" * 122, False),
        ("", False),
        ('say "hi"\n', True),
        ("half \ud800", True),
    ],
)
def test_an_id_that_cannot_be_said_whole_is_not_said(call_id: str, named: bool) -> None:
    counted = Counted("t")
    counted.counts["t"].on_call(
        Finished(call_id, "t", Outcome.SUCCESS, "", "", 0.5, 0.5, 1, "", "", None)
    )

    found = exemplars(counted)

    assert len(found) == named
    if named:
        [(labels, _)] = found.values()
        assert labels["call_id"].startswith(call_id[:4])
