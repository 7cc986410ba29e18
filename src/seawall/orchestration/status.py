"""What can be seen of a pipeline's layers from outside: circuits, tokens, calls in flight."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from seawall.contract.errors import ConfigurationError
from seawall.layers.breaker.slot import CircuitSlot
from seawall.recording import families
from seawall.recording.metrics import Gauge

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from seawall.layers.breaker import Circuit
    from seawall.pipeline.route import Route
    from seawall.pipeline.state import Slots, StateTable
    from seawall.pipeline.threads import Threads
    from seawall.recording.families import Family

STATES = ("closed", "open", "half_open")

NO_FAMILY = "none"
"""The label of tools that belong to none."""


class Breakers:
    """The circuits of a pipeline by tool name: to see, and to open or close by hand."""

    def __init__(self, pipeline: Any) -> None:
        self._pipeline = pipeline

    def state(self, tool: str) -> str:
        """`closed`, `open` or `half_open`."""
        slot = self._slot(tool)
        return "closed" if slot.circuit is None else slot.circuit.state

    def find_state(self, tool: str) -> str | None:
        """The same, or None for a tool that has no breaker."""
        slot = self._find(tool)
        return None if slot is None else self.state(tool)

    def circuit(self, tool: str) -> Circuit:
        """The circuit itself."""
        return self._slot(tool).made()

    def open(self, tool: str) -> None:
        """Refuse the tool's calls until `close` or `reset`; in all processes that share a store."""
        self._slot(tool).hold_open()

    def close(self, tool: str) -> None:
        """Let the tool's calls through again, with no failures counted."""
        self.circuit(tool).force_close()

    def reset(self, tool: str | None = None) -> None:
        """Forget what was learnt about one tool, or about all."""
        names = self._pipeline.registry.names() if tool is None else (tool,)
        for name in names:
            slot = self._find(name)
            if slot is not None and slot.circuit is not None:
                slot.circuit.reset()

    def snapshot(self) -> Mapping[str, str]:
        """The state of each tool that has a breaker."""
        found: dict[str, str] = {}
        for name in self._pipeline.registry.names():
            slot = self._find(name)
            if slot is not None:
                found[name] = "closed" if slot.circuit is None else slot.circuit.state
        return found

    def _slot(self, tool: str) -> CircuitSlot:
        slot = self._find(tool)
        if slot is None:
            raise ConfigurationError(
                f"{tool!r} has no breaker: name a tool whose policy gives it one"
            )
        return slot

    def _find(self, tool: str) -> CircuitSlot | None:
        policy = self._pipeline.policy_of(tool)
        if policy is None or policy.breaker is None:
            return None
        states: StateTable = self._pipeline.states
        shared = policy.breaker.shared
        slots = states.find(tool) if shared is None else states.shared(shared)
        found = None if slots is None else slots.find("circuit")
        return found if isinstance(found, CircuitSlot) else None


class Read:
    """Adds up what is read of tools that share a label, and gives each series once."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, tuple[str, ...]], tuple[Family, float]] = {}

    def add(self, family: Family, value: float, *labels: str) -> None:
        """Take a value; of several in one series the sum, the most or the least stands."""
        series = (family.name, labels)
        known = self._found.get(series)
        if known is not None:
            value = _JOINED[family.across](known[1], value)
        self._found[series] = (family, value)

    def gauges(self) -> Iterator[Gauge]:
        """Give what was added."""
        for (name, labels), (family, value) in self._found.items():
            named = dict(zip(family.labels, labels, strict=True))
            yield Gauge(name, family.help, named, value)


_JOINED: Mapping[str, Callable[[float, float], float]] = {
    "livesum": lambda one, other: one + other,
    "livemax": max,
    "livemin": min,
}


def gauges(
    routes: Mapping[str, Route],
    states: StateTable,
    threads: Threads,
    label: Callable[[str], str] = str,
) -> Iterator[Gauge]:
    """Everything that is read at a scrape; `label` gives the name by which a tool is counted."""
    read = Read()
    for name, route in tuple(routes.items()):
        shown = label(name)
        read.add(families.IN_FLIGHT, route.in_flight, shown)
        own = route.tool.family or NO_FAMILY
        read.add(families.TOOL_INFO, 1, shown, own if shown == name else NO_FAMILY)
        slots = states.find(name)
        if slots is not None:
            _read_slots(read, shown, route, slots, states)
    read.add(families.ABANDONED, threads.abandoned)
    return read.gauges()


def _read_slots(read: Read, shown: str, route: Route, slots: Slots, states: StateTable) -> None:
    breaker = route.policy.breaker
    if breaker is not None and breaker.mode != "off":
        held = slots if breaker.shared is None else states.shared(breaker.shared)
        slot = held.find("circuit")
        now = "closed" if slot is None or slot.circuit is None else slot.circuit.state
        for state in STATES:
            read.add(families.BREAKER_STATE, float(state == now), shown, state)
    left, most = slots.find("tokens_left"), slots.find("tokens_most")
    if left is not None:
        tokens = left()
        read.add(families.TOKENS, tokens, shown)
        if most:
            read.add(families.TOKENS_RATIO, min(max(tokens / most, 0.0), 1.0), shown)
    adapting = slots.find("adaptive_limit")
    if adapting is not None:
        read.add(families.CONCURRENCY_LIMIT, float(int(adapting.vegas.limit)), shown)
