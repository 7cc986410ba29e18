"""Prometheus metrics of calls, attempts, refusals, retries and what layers did.

    metrics = Metrics()                       # a registry of its own
    metrics = Metrics(prometheus_client.REGISTRY)
    body, content_type = metrics.exposition(request.headers.get("accept", ""))

Labels are bounded: a tool's name comes from the registry only, names that nobody registered count
under `_OTHER`, reasons, layers and events are closed or limited sets; `max_series` is the number
that is never passed. Calls are counted from one event loop; scraping is safe from any thread.

Where the environment has `PROMETHEUS_MULTIPROC_DIR`, counts are kept in the files of that folder,
so that any of several workers can be asked for all.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from contextlib import suppress
from typing import TYPE_CHECKING

from seawall.contract.errors import ConfigurationError
from seawall.pipeline.foreign import guarded
from seawall.pipeline.recorder import ToolRecorder
from seawall.recording.counts import PER_PIPELINE, PER_TOOL, PipelineCounts, ToolCounts
from seawall.recording.families import (
    APPROVALS_OLDEST,
    APPROVALS_WAITING,
    OTHER_TOOL,
    RETIRED_TOOL,
)
from seawall.recording.gauges import Backlog, Gauge, GaugeSource, encodable

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

    from seawall.recording.scrape import Scrape
    from seawall.recording.workers import Files, WorkerBooks

__all__ = ["Backlog", "Gauge", "GaugeSource", "Metrics"]

MAX_TOOLS = 1_000
"""Registered tools with labels of their own; those beyond count together under `_OTHER`."""

MAX_RETIRED = 250
"""Unregistered tools whose counts still stand under their own names."""


class Metrics:
    """Counts for Prometheus; several pipelines may share one."""

    def __init__(
        self,
        registry: CollectorRegistry | None = None,
        *,
        max_tools: int = MAX_TOOLS,
        max_retired: int = MAX_RETIRED,
    ) -> None:
        for name, bound in (("max_tools", max_tools), ("max_retired", max_retired)):
            if bound < 0:
                raise ConfigurationError(f"{name} must be 0 or more, not {bound}")
        self._tools: dict[str, ToolCounts] = {}
        self._retired: OrderedDict[str, ToolCounts] = OrderedDict()
        self._max_tools = max_tools
        self._max_retired = max_retired
        self._folded: ToolCounts | None = None
        self._others: ToolCounts | None = None
        self._recording_others: ToolRecorder | None = None
        self._sources: list[GaugeSource] = []
        self._backlogs: list[Backlog] = []
        self._registry: CollectorRegistry | None = None
        self._scrape: Scrape | Files | None = None
        self._books = self._books_of_workers()
        self.shared = PipelineCounts() if self._books is None else self._books.shared
        if registry is not None:
            self._attach(registry)

    def for_tool(self, tool: str) -> ToolRecorder:
        """Give the functions that count for a registered tool; its counts go on if it was here."""
        name = _label_of(tool)
        if self._books is not None:
            return self._books.for_tool(name)
        counts = self._tools.get(name)
        if counts is None:
            counts = self._revived(name)
        if counts is not self._others:
            return _recording(counts)
        if self._recording_others is None:
            self._recording_others = _recording(counts)
        return self._recording_others

    def unknown(self) -> None:
        """Count a refused call under `_OTHER`: its name is the model's invention."""
        self.shared.called_unknown()

    def suggested(self, *, near: bool) -> None:
        """Count a call of an unknown name by whether a near one could be told."""
        self.shared.answered_unknown(near=near)

    def loop_stopped(self, detector: str) -> None:
        """Count a call that was refused because the model repeats itself."""
        self.shared.stopped(detector)

    def audit_failed(self) -> None:
        """Count a try to write the audit log that failed, or an entry that was dropped."""
        self.shared.lost_audit()

    def forget(self, tool: str) -> None:
        """Set aside the counts of an unregistered tool.

        They still stand, for a counter must not go back; beyond `max_retired` tools
        the oldest are added up under `_RETIRED`.
        """
        name = _label_of(tool)
        counts = self._tools.pop(name, None)
        if counts is None:
            return
        self._retired[name] = counts
        while len(self._retired) > self._max_retired:
            _, oldest = self._retired.popitem(last=False)
            self._folded = self._folded or ToolCounts(self.shared)
            self._folded.absorb(oldest)

    def label(self, tool: str) -> str:
        """The label under which a registered tool is counted: its name, or `_OTHER`."""
        name = _label_of(tool)
        known = self._tools if self._books is None else self._books.labels
        return name if name in known else OTHER_TOOL

    def watch(self, source: GaugeSource) -> None:
        """Ask `source` for its gauges at each scrape. Adding it again changes nothing."""
        if source not in self._sources:
            self._sources.append(source)
        if self._books is not None:
            self._books.publish(self.gauges)

    def unwatch(self, source: GaugeSource) -> None:
        """Stop asking; nothing happens if it was not watched."""
        # In one step, as it is called whenever a pipeline is collected, in whatever thread.
        with suppress(ValueError):
            self._sources.remove(source)

    def watch_approvals(self, backlog: Backlog) -> None:
        """Ask at each scrape how many calls wait for a person, and how long the oldest has.

        `backlog` is a plain function and must not wait for anything; what several give is added
        up. Adding it again changes nothing.
        """
        if backlog not in self._backlogs:
            self._backlogs.append(backlog)

    def unwatch_approvals(self, backlog: Backlog) -> None:
        """Stop asking; nothing happens if it was not watched."""
        with suppress(ValueError):
            self._backlogs.remove(backlog)

    @property
    def registry(self) -> CollectorRegistry:
        """The registry that was given, or one of its own."""
        if self._registry is None:
            from prometheus_client import CollectorRegistry  # noqa: PLC0415  # 50 ms to import

            return self._attach(CollectorRegistry())
        return self._registry

    @property
    def is_of_workers(self) -> bool:
        """Whether it counts together with other workers, in files that they share."""
        return self._books is not None

    @property
    def max_series(self) -> int:
        """More series than this there never are, gauges of one's own apart; in each worker."""
        labels = self._max_tools + self._max_retired + 2
        return labels * PER_TOOL + PER_PIPELINE

    def text(self, accept: str = "") -> bytes:
        """Write the exposition of the registry: plain, or OpenMetrics if `accept` asks for it."""
        return self.exposition(accept)[0]

    def exposition(self, accept: str = "") -> tuple[bytes, str]:
        """Write the exposition, and say with which content type to send it.

        `accept` is the header of the request. Safe from any thread.
        """
        from seawall.recording.scrape import exposition  # noqa: PLC0415  # 50 ms to import

        return exposition(self.registry, accept)

    def close(self) -> None:
        """Leave the registry, so that another `Metrics` may use it."""
        if self._books is not None:
            self._books.close()
        if self._registry is not None and self._scrape is not None:
            self._registry.unregister(self._scrape)
            self._scrape = None

    def tools(self) -> list[tuple[str, ToolCounts]]:
        """List the counts by label: registered tools, retired ones, `_OTHER`, `_RETIRED`."""
        folded = [] if self._folded is None else [(RETIRED_TOOL, self._folded)]
        others = [] if self._others is None else [(OTHER_TOOL, self._others)]
        found = [*list(self._tools.items()), *list(self._retired.items()), *others, *folded]
        return [(name, counts.settled()) for name, counts in found]

    @property
    def unknown_calls(self) -> int:
        """Calls of names that are not registered, in this process."""
        return self.shared.unknown

    @property
    def sources(self) -> tuple[GaugeSource, ...]:
        """Who is asked for gauges, in the order they came."""
        return tuple(self._sources)

    def approvals(self) -> list[Gauge]:
        """Read how many calls wait for a person's answer, and how long the oldest has."""
        found = [_backlog_of(backlog) for backlog in tuple(self._backlogs)]
        waiting = sum(count for count, _ in found)
        oldest = max((age_s for _, age_s in found), default=0.0)
        return [
            Gauge(APPROVALS_WAITING.name, APPROVALS_WAITING.help, {}, waiting),
            Gauge(APPROVALS_OLDEST.name, APPROVALS_OLDEST.help, {}, max(oldest, 0.0)),
        ]

    def gauges(self) -> tuple[GaugeSource, ...]:
        """Everything whose values are read and not counted."""
        return (*self._sources, self.approvals)

    def _revived(self, name: str) -> ToolCounts:
        if len(self._tools) >= self._max_tools:
            self._others = self._others or ToolCounts(self.shared)
            return self._others
        known = name in self._retired
        counts = self._retired.pop(name) if known else ToolCounts(self.shared)
        self._tools[name] = counts
        return counts

    def _books_of_workers(self) -> WorkerBooks | None:
        if not os.environ.get("PROMETHEUS_MULTIPROC_DIR"):
            return None
        from seawall.recording.workers import WorkerBooks  # noqa: PLC0415  # 50 ms to import

        return WorkerBooks(self._max_tools + self._max_retired)

    def _attach(self, registry: CollectorRegistry) -> CollectorRegistry:
        if self._books is None:
            from seawall.recording.scrape import attached  # noqa: PLC0415  # 50 ms to import

            self._scrape = attached(self, registry)
        else:
            self._scrape = self._books.attached(registry, self.gauges)
        self._registry = registry
        return registry


def _backlog_of(backlog: Backlog) -> tuple[float, float]:
    def work() -> tuple[float, float]:
        count, age_s = backlog()
        return float(count), float(age_s)

    return guarded("a backlog of approvals failed and is left out", work, lambda _: (0.0, 0.0))


def _label_of(tool: str) -> str:
    """Make the label of a registered tool, which is never one of our own two."""
    return f"{tool}_" if tool in (OTHER_TOOL, RETIRED_TOOL) else encodable(tool)


def _recording(counts: ToolCounts) -> ToolRecorder:
    return ToolRecorder(counts.on_attempt, counts.on_call, counts.on_event, counts.on_success)
