"""What a scrape of Prometheus gets: samples made of the counts at that moment.

seawall_calls_total{tool,outcome}           seawall_call_duration_seconds{tool}
seawall_attempts_total{tool,outcome}        seawall_attempt_duration_seconds{tool}
seawall_refusals_total{tool,layer,reason}   seawall_retries_total{tool}
seawall_failures_total{tool,code,reason}    seawall_events_total{tool,layer,event}
seawall_build_info{version}                 and the gauges that are watched
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from importlib.metadata import PackageNotFoundError, version
from itertools import accumulate
from typing import TYPE_CHECKING, Protocol

from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, choose_encoder, generate_latest
from prometheus_client.metrics_core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.utils import floatToGoString

from seawall.contract.errors import ConfigurationError
from seawall.recording.counts import (
    BOUNDS_S,
    OTHER_TOOL,
    OUTCOMES,
    Durations,
    Pairs,
    ToolCounts,
)
from seawall.recording.gauges import Gauge, GaugeSource, read

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

Tools = Sequence[tuple[str, ToolCounts]]

_LE = (*map(floatToGoString, BOUNDS_S), "+Inf")
_SUFFIXES = ("", "_total", "_bucket", "_count", "_sum", "_created", "_info")
_EXPECTED_OF_ATTEMPTS = 2
"""The first of `OUTCOMES`, success and failed; an attempt is hardly ever anything else."""


class Counting(Protocol):
    """Who holds the counts."""

    def tools(self) -> Tools:
        """List the counts by label."""
        ...

    @property
    def unknown_calls(self) -> int:
        """Calls of names that are not registered."""
        ...

    @property
    def sources(self) -> tuple[GaugeSource, ...]:
        """Who is asked for gauges."""
        ...


class Scrape:
    """The collector that a registry asks."""

    def __init__(self, counting: Counting) -> None:
        self._counting = counting
        self._version = _version()
        self._taken = frozenset(
            family.name + suffix for family in self.describe() for suffix in _SUFFIXES
        )

    def describe(self) -> Iterable[Metric]:
        """Say which names are counted here, for the registry to see that they are free."""
        return _families([], 0, self._version)

    def collect(self) -> Iterator[Metric]:
        """All samples of this moment."""
        yield from _families(self._counting.tools(), self._counting.unknown_calls, self._version)
        gauges = read(self._counting.sources, self._taken)
        yield from (_gauge(name, found) for name, found in gauges.items())


def attached(counting: Counting, registry: CollectorRegistry) -> Scrape:
    """Put a collector into a registry."""
    scrape = Scrape(counting)
    try:
        registry.register(scrape)
    except ValueError as error:
        raise ConfigurationError(
            "this Prometheus registry has Seawall's metrics already: "
            "share one Metrics between pipelines, or close the former one"
        ) from error
    return scrape


def exposition(registry: CollectorRegistry, accept: str) -> tuple[bytes, str]:
    """All samples of a registry as text, and its content type."""
    try:
        encode, content_type = choose_encoder(accept)
    except TypeError:  # a version that is no number, as in `version=latest`
        encode, content_type = generate_latest, CONTENT_TYPE_PLAIN_0_0_4
    return encode(registry), content_type


def _version() -> str:
    try:
        return version("seawall")
    except PackageNotFoundError:
        return "unknown"


def _families(tools: Tools, unknown_calls: int, version: str) -> list[Metric]:
    return [
        _calls(tools, unknown_calls),
        _attempts(tools),
        _durations(
            "seawall_call_duration_seconds",
            "From a call's arrival to its answer: gates, waits and attempts together.",
            [(tool, counts.call_durations) for tool, counts in tools],
        ),
        _durations(
            "seawall_attempt_duration_seconds",
            "Duration of one attempt.",
            [(tool, counts.attempt_durations) for tool, counts in tools],
        ),
        _pairs(
            "seawall_refusals",
            "Calls that a layer refused.",
            ("layer", "reason"),
            [(tool, counts.refusals) for tool, counts in tools],
        ),
        _pairs(
            "seawall_failures",
            "Calls that failed.",
            ("code", "reason"),
            [(tool, counts.failures) for tool, counts in tools],
        ),
        _retries(tools),
        _pairs(
            "seawall_events",
            "What layers did, such as a breaker that opened.",
            ("layer", "event"),
            [(tool, counts.events) for tool, counts in tools],
        ),
        _build_info(version),
    ]


def _calls(tools: Tools, unknown_calls: int) -> Metric:
    family = CounterMetricFamily(
        "seawall_calls",
        "Calls by outcome; names that nobody registered count under _OTHER.",
        labels=("tool", "outcome"),
    )
    for tool, counts in tools:
        for outcome, count in zip(OUTCOMES, counts.calls, strict=True):
            family.add_metric((tool, outcome.value), count)
    family.add_metric((OTHER_TOOL, "denied"), unknown_calls)
    return family


def _attempts(tools: Tools) -> Metric:
    family = CounterMetricFamily(
        "seawall_attempts",
        "Attempts by outcome; a call that was tried twice has two.",
        labels=("tool", "outcome"),
    )
    for tool, counts in tools:
        for place, outcome in enumerate(OUTCOMES):
            count = counts.attempts[place]
            if count or place < _EXPECTED_OF_ATTEMPTS:
                family.add_metric((tool, outcome.value), count)
    return family


def _retries(tools: Tools) -> Metric:
    family = CounterMetricFamily(
        "seawall_retries", "Attempts after the first of their call.", labels=("tool",)
    )
    for tool, counts in tools:
        family.add_metric((tool,), counts.retries)
    return family


def _pairs(
    name: str, text: str, labels: tuple[str, str], found: Iterable[tuple[str, Pairs]]
) -> Metric:
    family = CounterMetricFamily(name, text, labels=("tool", *labels))
    for tool, pairs in found:
        for pair, count in pairs.copy().items():
            family.add_metric((tool, *pair), count)
    return family


def _durations(name: str, text: str, found: Iterable[tuple[str, Durations]]) -> Metric:
    family = HistogramMetricFamily(name, text, labels=("tool",), unit="seconds")
    for tool, durations in found:
        if durations.buckets is not None:
            reached = accumulate(durations.buckets.copy())
            family.add_metric((tool,), list(zip(_LE, reached, strict=True)), durations.total_s)
    return family


def _build_info(version: str) -> Metric:
    family = GaugeMetricFamily(
        "seawall_build_info", "The version that runs; always 1.", labels=("version",)
    )
    family.add_metric((version,), 1)
    return family


def _gauge(name: str, gauges: list[Gauge]) -> Metric:
    family = GaugeMetricFamily(name, gauges[0].help)
    for gauge in gauges:
        family.add_sample(name, dict(gauge.labels), gauge.value)
    return family
