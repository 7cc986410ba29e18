"""Prometheus metrics of calls, attempts, refusals, retries and what layers did.

    metrics = Metrics()                       # a registry of its own
    metrics = Metrics(prometheus_client.REGISTRY)
    body = metrics.text(request.headers.get("accept", ""))

Labels are bounded: a tool's name comes from the registry only, names that nobody registered count
under `_OTHER`, reasons, layers and events are closed or limited sets. Calls are counted from one
event loop; scraping is safe from any thread.
"""

from __future__ import annotations

from collections import OrderedDict
from contextlib import suppress
from typing import TYPE_CHECKING

from seawall.contract.errors import ConfigurationError
from seawall.pipeline.recorder import ToolRecorder
from seawall.recording.counts import OTHER_TOOL, RETIRED_TOOL, ToolCounts
from seawall.recording.gauges import Gauge, GaugeSource, encodable

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

    from seawall.recording.scrape import Scrape

__all__ = ["Gauge", "GaugeSource", "Metrics"]

MAX_RETIRED = 1_024
"""Unregistered tools whose counts still stand under their own names."""


class Metrics:
    """Counts for Prometheus; several pipelines may share one."""

    def __init__(
        self, registry: CollectorRegistry | None = None, *, max_retired: int = MAX_RETIRED
    ) -> None:
        if max_retired < 0:
            raise ConfigurationError(f"max_retired must be 0 or more, not {max_retired}")
        self._tools: dict[str, ToolCounts] = {}
        self._retired: OrderedDict[str, ToolCounts] = OrderedDict()
        self._max_retired = max_retired
        self._folded: ToolCounts | None = None
        self._unknown = 0
        self._sources: list[GaugeSource] = []
        self._registry: CollectorRegistry | None = None
        self._scrape: Scrape | None = None
        if registry is not None:
            self._attach(registry)

    def for_tool(self, tool: str) -> ToolRecorder:
        """Give the functions that count for a registered tool; its counts go on if it was here."""
        name = _label_of(tool)
        counts = self._tools.get(name)
        if counts is None:
            counts = self._tools[name] = self._revived(name)
        return ToolRecorder(counts.on_attempt, counts.on_call, counts.on_event)

    def unknown(self) -> None:
        """Count a refused call under `_OTHER`: its name is the model's invention."""
        self._unknown += 1

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
            self._folded = self._folded or ToolCounts()
            self._folded.absorb(oldest)

    def watch(self, source: GaugeSource) -> None:
        """Ask `source` for its gauges at each scrape. Adding it again changes nothing."""
        if source not in self._sources:
            self._sources.append(source)

    def unwatch(self, source: GaugeSource) -> None:
        """Stop asking; nothing happens if it was not watched."""
        # In one step, as it is called whenever a pipeline is collected, in whatever thread.
        with suppress(ValueError):
            self._sources.remove(source)

    @property
    def registry(self) -> CollectorRegistry:
        """The registry that was given, or one of its own."""
        if self._registry is None:
            from prometheus_client import CollectorRegistry  # noqa: PLC0415  # 50 ms to import

            return self._attach(CollectorRegistry())
        return self._registry

    def text(self, accept: str = "") -> bytes:
        """Write the exposition of the registry: plain, or OpenMetrics if `accept` asks for it."""
        return self.exposition(accept)[0]

    def exposition(self, accept: str = "") -> tuple[bytes, str]:
        """Write the exposition, and say with which content type to send it."""
        from seawall.recording.scrape import exposition  # noqa: PLC0415  # 50 ms to import

        return exposition(self.registry, accept)

    def close(self) -> None:
        """Leave the registry, so that another `Metrics` may use it."""
        if self._registry is not None and self._scrape is not None:
            self._registry.unregister(self._scrape)
            self._scrape = None

    def tools(self) -> list[tuple[str, ToolCounts]]:
        """List the counts by label: registered tools, retired ones, the rest as `_RETIRED`."""
        folded = [] if self._folded is None else [(RETIRED_TOOL, self._folded)]
        return [*list(self._tools.items()), *list(self._retired.items()), *folded]

    @property
    def unknown_calls(self) -> int:
        """Calls of names that are not registered."""
        return self._unknown

    @property
    def sources(self) -> tuple[GaugeSource, ...]:
        """Who is asked for gauges, in the order they came."""
        return tuple(self._sources)

    def _revived(self, name: str) -> ToolCounts:
        return self._retired.pop(name) if name in self._retired else ToolCounts()

    def _attach(self, registry: CollectorRegistry) -> CollectorRegistry:
        from seawall.recording.scrape import attached  # noqa: PLC0415  # 50 ms to import

        self._scrape = attached(self, registry)
        self._registry = registry
        return registry


def _label_of(tool: str) -> str:
    """Make the label of a registered tool, which is never one of our own two."""
    return f"{tool}_" if tool in (OTHER_TOOL, RETIRED_TOOL) else encodable(tool)
