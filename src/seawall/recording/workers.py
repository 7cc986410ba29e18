"""Counts of several workers, kept in files, so that any of them can be asked for all.

`prometheus_client` keeps its values in files of `PROMETHEUS_MULTIPROC_DIR`, which outlive a worker:
what it has counted stays, however it ended. What is read and not counted, such as circuits and
calls in flight, each worker writes down once a second; of a worker that is gone it is dropped at
the next scrape. Exemplars do not fit into these files, so there are none.
"""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prometheus_client import Counter, Histogram, values
from prometheus_client import Gauge as GaugeMeter
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead

from seawall.contract.errors import ConfigurationError
from seawall.contract.span import Outcome
from seawall.pipeline.recorder import ToolRecorder
from seawall.recording import families
from seawall.recording.counts import (
    BOUNDS_S,
    CIRCUIT_STATES,
    DETECTORS,
    OUTCOMES,
    STORE_EVENT,
    Pairs,
    PipelineCounts,
    add,
    failure_of,
    kept,
    label,
    refusal_of,
)
from seawall.recording.families import COUNTED, OTHER, OTHER_TOOL, WATCHED, Family
from seawall.recording.gauges import GaugeSource, read
from seawall.recording.shown import current_version

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from prometheus_client import CollectorRegistry
    from prometheus_client.metrics_core import Metric

    from seawall.contract.span import Span
    from seawall.pipeline.recorder import Finished

PUBLISHED_EVERY_S = 1.0

_TYPES: dict[str, Any] = {"counter": Counter, "gauge": GaugeMeter, "histogram": Histogram}
_BY_NAME = {family.name: family for family in (*COUNTED, *WATCHED)}
_TAKEN = frozenset(family.name for family in COUNTED if family.kind != "gauge")

# One of each in a process, for two objects of one series would overwrite each other's file.
_meters: dict[str, Any] = {}
_lock = threading.Lock()


def meter(family: Family, *labels: str) -> Any:
    """Give what counts one series."""
    found = _meters.get(family.name) or _made(family)
    return found.labels(*labels) if labels else found


def _made(family: Family) -> Any:
    options: dict[str, Any] = {"registry": None}
    if family.kind == "gauge":
        options["multiprocess_mode"] = family.across
    elif family.kind == "histogram":
        options["buckets"] = BOUNDS_S
    with _lock:
        if family.name not in _meters:
            make = _TYPES[family.kind]
            _meters[family.name] = make(family.name, family.help, family.labels, **options)
        return _meters[family.name]


def name_worker(name: str) -> None:
    """Have this process go on with the files of the one that had this name before.

    To be called before anything is counted. Else each process has files by its number, of which
    there are more with each worker that is replaced. The name holds no blank and no `_`, and is no
    number; whoever gives it buries it.
    """
    values.ValueClass = values.MultiProcessValue(lambda: name)  # type: ignore[no-untyped-call]  # it has no types


def bury_worker(name: str, folder: str) -> None:
    """Drop the gauges of a worker that has ended."""
    mark_process_dead(name, folder)  # type: ignore[no-untyped-call]  # it has no types


class WorkerBooks:
    """What a `Metrics` keeps its counts in when there are several workers."""

    def __init__(self, max_labels: int) -> None:
        if not getattr(values.ValueClass, "_multiprocess", False):
            raise ConfigurationError(
                "PROMETHEUS_MULTIPROC_DIR was set after prometheus_client was imported, so nothing"
                " would be shared: set it before the program starts"
            )
        if not Path(os.environ["PROMETHEUS_MULTIPROC_DIR"]).is_dir():
            raise ConfigurationError(
                f"PROMETHEUS_MULTIPROC_DIR is {os.environ['PROMETHEUS_MULTIPROC_DIR']!r}, which is"
                " no folder: make an empty one before the workers start"
            )
        self._max_labels = max_labels
        self._tools: dict[str, WorkerCounts] = {}
        self._others: WorkerCounts | None = None
        self._publisher: _Publisher | None = None
        self.shared: PipelineCounts = _SharedByWorkers()
        meter(families.BUILD_INFO, current_version()).set(1)

    @property
    def labels(self) -> Iterable[str]:
        """The tools that have labels of their own."""
        return self._tools

    def for_tool(self, name: str) -> ToolRecorder:
        """Give the functions that count for a tool. A label once given stays in the file."""
        counts = self._tools.get(name)
        if counts is None and len(self._tools) < self._max_labels:
            counts = self._tools[name] = WorkerCounts(name, self.shared)
        if counts is None:
            counts = self._others = self._others or WorkerCounts(OTHER_TOOL, self.shared)
        return ToolRecorder(counts.on_attempt, self._with_gauges(counts), counts.on_event)

    def publish(self, sources: Callable[[], Iterable[GaugeSource]]) -> None:
        """Write down what these sources read, from now on, once a second."""
        if self._publisher is None:
            self._publisher = _Publisher(sources)
        self._publisher.ensure()

    def attached(
        self, registry: CollectorRegistry, sources: Callable[[], Iterable[GaugeSource]]
    ) -> Files:
        """Put a collector of all workers' files into a registry."""
        self.publish(sources)
        files = Files(self._published)
        registry.register(files)
        return files

    def close(self) -> None:
        """Write nothing more."""
        publisher, self._publisher = self._publisher, None
        if publisher is not None:
            publisher.close()

    def _published(self) -> None:
        if self._publisher is not None:
            self._publisher.publish()

    def _with_gauges(self, counts: WorkerCounts) -> Callable[[Finished], None]:
        def on_call(finished: Finished) -> None:
            counts.on_call(finished)
            if self._publisher is not None:
                self._publisher.ensure()

        return on_call


class WorkerCounts:
    """Counts for one tool, in this worker's files."""

    def __init__(self, tool: str, shared: PipelineCounts) -> None:
        self._tool = tool
        self._shared = shared
        self._calls = self._by_outcome(families.CALLS)
        self._attempts = self._by_outcome(families.ATTEMPTS)
        self._retries = meter(families.RETRIES, tool)
        self._call_durations = meter(families.CALL_DURATION, tool)
        self._attempt_durations = meter(families.ATTEMPT_DURATION, tool)
        self._queue_durations = meter(families.QUEUE_DURATION, tool)
        self._transitions = {
            ("breaker", state): meter(families.TRANSITIONS, tool, state) for state in CIRCUIT_STATES
        }
        self._named = {
            **self._transitions,
            ("output_check", "invalid"): meter(families.OUTPUT_FAILURES, tool),
            ("hooks", "failed"): meter(families.HOOK_FAILURES, tool),
        }
        self._pairs: dict[str, Pairs] = {}

    def on_attempt(self, span: Span) -> None:
        """Count an attempt; the span of a call refused before its first is none."""
        if span.attempt == 0:
            return
        self._attempts[span.outcome].inc()
        self._attempt_durations.observe(max(span.duration_ms / 1000, 0.0))
        if span.attempt > 1:
            self._retries.inc()
        else:
            self._queue_durations.observe(max(span.queue_ms / 1000, 0.0))

    def on_call(self, finished: Finished) -> None:
        """Count a call that ended."""
        self._calls[finished.outcome].inc()
        self._call_durations.observe(max(finished.elapsed_s, 0.0))
        if finished.outcome is Outcome.DENIED:
            self._add(families.REFUSALS, refusal_of(finished))
        elif finished.outcome is Outcome.FAILED:
            self._add(families.FAILURES, failure_of(finished))

    def on_event(self, layer: str, event: str) -> None:
        """Count what a layer did."""
        self._add(families.EVENTS, (label(layer), label(event)))
        own = self._named.get((layer, event))
        if own is not None:
            own.inc()
        if event.startswith(STORE_EVENT):
            self._shared.fell_back(layer, event.removeprefix(STORE_EVENT))

    def _by_outcome(self, family: Family) -> dict[Outcome, Any]:
        return {outcome: meter(family, self._tool, outcome.value) for outcome in OUTCOMES}

    def _add(self, family: Family, pair: tuple[str, str]) -> None:
        seen = self._pairs.setdefault(family.name, {})
        meter(family, self._tool, *kept(seen, pair)).inc()
        add(seen, pair, 1)


class _SharedByWorkers(PipelineCounts):
    """What is counted of no tool in particular, in this worker's files."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__()
        meter(families.AUDIT_FAILURES)
        meter(families.CALLS, OTHER_TOOL, "denied")
        meter(families.REFUSALS, OTHER_TOOL, "registry", "tool_not_found")
        for near in ("true", "false"):
            meter(families.SUGGESTIONS, near)
        for detector in DETECTORS:
            meter(families.LOOP_STOPS, detector)

    def called_unknown(self) -> None:
        super().called_unknown()
        meter(families.CALLS, OTHER_TOOL, "denied").inc()
        meter(families.REFUSALS, OTHER_TOOL, "registry", "tool_not_found").inc()

    def answered_unknown(self, *, near: bool) -> None:
        meter(families.SUGGESTIONS, str(near).lower()).inc()

    def stopped(self, detector: str) -> None:
        meter(families.LOOP_STOPS, detector if detector in DETECTORS else OTHER).inc()

    def fell_back(self, store: str, mode: str) -> None:
        pair = kept(self.fallbacks, (label(store), label(mode)))
        super().fell_back(store, mode)
        meter(families.STORE_FALLBACKS, *pair).inc()

    def lost_audit(self) -> None:
        meter(families.AUDIT_FAILURES).inc()


class _Publisher:
    """Writes this worker's gauges into its files, in a thread of its own."""

    def __init__(self, sources: Callable[[], Iterable[GaugeSource]]) -> None:
        self._sources = sources
        self._process = 0
        self._closed = threading.Event()
        self._writing = threading.Lock()
        self._shown: set[tuple[str, tuple[str, ...]]] = set()

    def ensure(self) -> None:
        """Start the thread, or start it anew in a process that was forked."""
        process = os.getpid()
        if process == self._process:
            return
        self._process = process
        self._closed, self._writing, self._shown = threading.Event(), threading.Lock(), set()
        self.publish()
        arguments = (self._closed,)
        threading.Thread(
            target=self._run, args=arguments, name="seawall-gauges", daemon=True
        ).start()

    def publish(self) -> None:
        """Write all gauges once; those that are there no longer are put to rest."""
        with self._writing:
            shown = set()
            for name, gauges in read(self._sources(), _TAKEN).items():
                family = _BY_NAME.get(name) or _of_user(name, gauges[0].help, gauges[0].labels)
                for gauge in gauges:
                    labels = tuple(gauge.labels.get(key, "") for key in family.labels)
                    meter(family, *labels).set(gauge.value)
                    shown.add((name, labels))
            for name, labels in self._shown - shown:
                family = _BY_NAME[name]
                meter(family, *labels).set(family.at_rest)
            self._shown = shown

    def close(self) -> None:
        self._closed.set()

    def _run(self, closed: threading.Event) -> None:
        while not closed.wait(PUBLISHED_EVERY_S):
            self.publish()


def _of_user(name: str, text: str, labels: Iterable[str]) -> Family:
    return _BY_NAME.setdefault(name, Family(name, "gauge", tuple(labels), text))


class Files:
    """The collector that reads the files of all workers."""

    def __init__(self, before: Callable[[], None]) -> None:
        self._before = before
        self._folder = os.environ["PROMETHEUS_MULTIPROC_DIR"]

    def describe(self) -> Iterable[Metric]:
        """Claim no names: which there are, the files say."""
        return []

    def collect(self) -> Iterable[Metric]:
        """Everything that all workers have counted, and what those say that are alive."""
        self._before()
        bury(self._folder)
        # One that another worker is just about to make has nothing in it, and would not be read.
        files = [str(file) for file in Path(self._folder).glob("*.db") if _size(file)]
        merge: Any = MultiProcessCollector.merge
        found: Iterable[Metric] = merge(files, accumulate=True)
        return found


def bury(folder: str) -> None:
    """Drop the gauges of workers that are gone."""
    if os.name == "nt":
        return  # there is no way to ask that harms nobody
    for process in {path.stem.rpartition("_")[2] for path in Path(folder).glob("gauge_live*.db")}:
        if process.isdecimal() and not _is_alive(int(process)):
            mark_process_dead(int(process), folder)  # type: ignore[no-untyped-call]  # it has no types


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except FileNotFoundError:
        return 0  # of a worker that was buried meanwhile


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True  # it is somebody else's
    return True
