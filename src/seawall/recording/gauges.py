"""Values that others own and that are read when somebody scrapes: breaker states, tokens, threads.

Whoever owns such a value registers a source with `Metrics.watch`; nothing is kept here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from itertools import islice

import msgspec

from seawall.contract.errors import ConfigurationError
from seawall.pipeline.foreign import guarded

MAX_GAUGES = 100_000
"""Values taken from one source at one scrape; a source that never ends must not hang it."""

_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
_LABEL = re.compile(r"(?!__)[a-zA-Z_][a-zA-Z0-9_]*")


class Gauge(msgspec.Struct, frozen=True):
    """One value at one moment. Label values must come from a bounded set."""

    name: str
    """Of Prometheus' shape, in base units: `seawall_breaker_open`, `seawall_wait_seconds`."""
    help: str
    labels: Mapping[str, str]
    value: float

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            said = "use letters, digits and underscores, such as seawall_wait_seconds"
            raise ConfigurationError(f"{self.name!r} cannot be the name of a gauge: {said}")
        for label in self.labels:
            if not _LABEL.fullmatch(label):
                said = f"{label!r} cannot be the name of a label: use letters, digits and _"
                raise ConfigurationError(f"{self.name}: {said}")


GaugeSource = Callable[[], Iterable[Gauge]]
"""Gives the values of this moment. One that raises is logged and left out of that scrape."""

Backlog = Callable[[], tuple[int, float]]
"""How many calls wait for a person's answer, and for how many seconds the oldest has."""


def read(sources: Iterable[GaugeSource], taken: frozenset[str]) -> dict[str, list[Gauge]]:
    """Read all sources: gauges by name, none with a name that is taken, each series once.

    Of two sources that give the same series the newest stands: it may be a pipeline made anew.
    """
    found: dict[str, dict[tuple[tuple[str, str], ...], Gauge]] = {}
    for source in reversed(tuple(sources)):
        for gauge in _read_one(source, taken):
            series = tuple(sorted(gauge.labels.items()))
            found.setdefault(gauge.name, {}).setdefault(series, gauge)
    return {name: list(series.values()) for name, series in found.items()}


def _read_one(source: GaugeSource, taken: frozenset[str]) -> list[Gauge]:
    def work() -> list[Gauge]:
        return [_plain(gauge, taken) for gauge in islice(source(), MAX_GAUGES)]

    return guarded("a source of gauges failed and is left out", work, lambda _: [])


def _plain(gauge: Gauge, taken: frozenset[str]) -> Gauge:
    """Make the gauge one that the encoder cannot stumble over."""
    if gauge.name in taken:
        raise ConfigurationError(f"{gauge.name} is counted by Seawall itself; choose another name")
    labels = {label: encodable(str(value)) for label, value in gauge.labels.items()}
    return Gauge(gauge.name, encodable(gauge.help), labels, float(gauge.value))


def encodable(text: str) -> str:
    """Write out what UTF-8 cannot say, for one such name would spoil every scrape."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "backslashreplace").decode()
    return text
