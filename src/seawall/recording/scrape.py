"""What a scrape of Prometheus gets: samples made of the counts at that moment.

Which families there are, `families` lists; histograms carry the newest call's id of each bucket as
an exemplar, which the OpenMetrics format shows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Protocol

from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, choose_encoder, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.samples import Exemplar
from prometheus_client.utils import floatToGoString

from seawall.contract.errors import ConfigurationError
from seawall.recording import families
from seawall.recording.counts import (
    BOUNDS_S,
    CIRCUIT_STATES,
    OUTCOMES,
    Durations,
    Pairs,
    PipelineCounts,
    ToolCounts,
)
from seawall.recording.families import COUNTED, OTHER_TOOL, Family
from seawall.recording.gauges import Gauge, GaugeSource, encodable, read
from seawall.recording.shown import current_version

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

Tools = Sequence[tuple[str, ToolCounts]]

_LE = (*map(floatToGoString, BOUNDS_S), "+Inf")
_SUFFIXES = ("", "_total", "_bucket", "_count", "_sum", "_created", "_info")
_EXPECTED_OF_ATTEMPTS = 2
"""The first of `OUTCOMES`, success and failed; an attempt is hardly ever anything else."""
_LONGEST_EXEMPLAR = 128 - len("call_id")
"""Characters that OpenMetrics leaves for the value of an exemplar's only label."""


class Counting(Protocol):
    """Who holds the counts."""

    @property
    def shared(self) -> PipelineCounts:
        """What is counted of no tool in particular."""
        ...

    def tools(self) -> Tools:
        """List the counts by label."""
        ...

    @property
    def sources(self) -> tuple[GaugeSource, ...]:
        """Who is asked for gauges."""
        ...

    def approvals(self) -> list[Gauge]:
        """Say how many calls wait for a person's answer, and how long the oldest has."""
        ...


class Scrape:
    """The collector that a registry asks."""

    def __init__(self, counting: Counting) -> None:
        self._counting = counting
        self._version = current_version()
        self._taken = frozenset(family.name + suffix for family in COUNTED for suffix in _SUFFIXES)

    def describe(self) -> Iterable[Metric]:
        """Say which names are counted here, for the registry to see that they are free."""
        return [_empty(family) for family in COUNTED]

    def collect(self) -> Iterator[Metric]:
        """All samples of this moment."""
        counting = self._counting
        yield from _of_tools(counting.tools(), counting.shared.unknown)
        yield from _of_pipeline(counting.shared)
        for gauge in counting.approvals():
            yield as_metric(gauge.name, [gauge])
        yield _filled(families.BUILD_INFO, [((self._version,), 1)])
        gauges = read(counting.sources, self._taken)
        yield from (as_metric(name, found) for name, found in gauges.items())


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


def _of_tools(tools: Tools, unknown_calls: int) -> Iterator[Metric]:
    yield _calls(tools, unknown_calls)
    yield _attempts(tools)
    for family, found in (
        (families.CALL_DURATION, [(tool, counts.call_durations) for tool, counts in tools]),
        (families.ATTEMPT_DURATION, [(tool, counts.attempt_durations) for tool, counts in tools]),
        (families.QUEUE_DURATION, [(tool, counts.queue_durations) for tool, counts in tools]),
    ):
        yield _durations(family, found)
    unknown: Pairs = {("registry", "tool_not_found"): unknown_calls}
    refusals = [(tool, counts.refusals) for tool, counts in tools]
    yield _pairs(families.REFUSALS, [*refusals, (OTHER_TOOL, unknown)])
    yield _pairs(families.FAILURES, [(tool, counts.failures) for tool, counts in tools])
    yield _filled(families.RETRIES, [((tool,), counts.retries) for tool, counts in tools])
    events = [(tool, counts.events) for tool, counts in tools]
    yield _pairs(families.EVENTS, events)
    yield _transitions(events)
    yield _event(families.OUTPUT_FAILURES, events, ("output_check", "invalid"))
    yield _event(families.HOOK_FAILURES, events, ("hooks", "failed"))


def _of_pipeline(shared: PipelineCounts) -> Iterator[Metric]:
    near = [((str(near).lower(),), count) for near, count in shared.suggested.items()]
    yield _filled(families.STORE_FALLBACKS, list(shared.fallbacks.copy().items()))
    yield _filled(families.SUGGESTIONS, near)
    stops = shared.loop_stops.copy().items()
    yield _filled(families.LOOP_STOPS, [((detector,), count) for detector, count in stops])
    yield _filled(families.AUDIT_FAILURES, [((), shared.audit_failures)])


def _calls(tools: Tools, unknown_calls: int) -> Metric:
    found: dict[tuple[str, ...], float] = {
        (tool, outcome.value): count
        for tool, counts in tools
        for outcome, count in zip(OUTCOMES, counts.calls, strict=True)
    }
    unknown = (OTHER_TOOL, "denied")
    found[unknown] = found.get(unknown, 0) + unknown_calls
    return _filled(families.CALLS, found.items())


def _attempts(tools: Tools) -> Metric:
    return _filled(
        families.ATTEMPTS,
        [
            ((tool, outcome.value), counts.attempts[place])
            for tool, counts in tools
            for place, outcome in enumerate(OUTCOMES)
            if counts.attempts[place] or place < _EXPECTED_OF_ATTEMPTS
        ],
    )


def _pairs(family: Family, found: Iterable[tuple[str, Pairs]]) -> Metric:
    return _filled(
        family,
        [((tool, *pair), count) for tool, pairs in found for pair, count in pairs.copy().items()],
    )


def _transitions(events: Iterable[tuple[str, Pairs]]) -> Metric:
    # From 0 on, for a rate cannot see the first opening of a series that begins with it.
    return _filled(
        families.TRANSITIONS,
        [
            ((tool, state), pairs.get(("breaker", state), 0))
            for tool, pairs in events
            for state in CIRCUIT_STATES
        ],
    )


def _event(family: Family, events: Iterable[tuple[str, Pairs]], event: tuple[str, str]) -> Metric:
    return _filled(family, [((tool,), pairs.get(event, 0)) for tool, pairs in events])


def _durations(family: Family, found: Iterable[tuple[str, Durations]]) -> Metric:
    metric = _empty(family)
    for tool, durations in found:
        if any(durations.buckets):
            _add_histogram(metric, tool, durations)
    return metric


def _add_histogram(metric: Metric, tool: str, durations: Durations) -> None:
    reached = list(accumulate(durations.buckets.copy()))
    name = metric.name
    for bound, count, newest in zip(_LE, reached, durations.newest.copy(), strict=True):
        labels = {"tool": tool, "le": bound}
        metric.add_sample(f"{name}_bucket", labels, count, exemplar=_exemplar(newest))
    metric.add_sample(f"{name}_count", {"tool": tool}, reached[-1])
    metric.add_sample(f"{name}_sum", {"tool": tool}, durations.total_s)


def _exemplar(newest: tuple[str, float] | None) -> Exemplar | None:
    """Name the newest call; none whose id is too long to be said whole."""
    if newest is None:
        return None
    call_id = encodable(newest[0])
    if not 0 < len(call_id) <= _LONGEST_EXEMPLAR:
        return None
    return Exemplar({"call_id": call_id}, newest[1])


def _empty(family: Family) -> Metric:
    unit = "seconds" if family.kind == "histogram" else ""
    return Metric(family.name, family.help, family.kind, unit)


def _filled(family: Family, samples: Iterable[tuple[tuple[str, ...], float]]) -> Metric:
    metric = _empty(family)
    name = family.shown_as
    for values, value in samples:
        metric.add_sample(name, dict(zip(family.labels, values, strict=True)), value)
    return metric


def as_metric(name: str, gauges: list[Gauge]) -> Metric:
    """Make a family of gauges of one name."""
    metric = Metric(name, gauges[0].help, "gauge")
    for gauge in gauges:
        metric.add_sample(name, dict(gauge.labels), gauge.value)
    return metric
