"""What a tool's layers remember between calls, kept by tool name and not in the chain.

A chain may be composed anew at any time (a reload, a replaced tool); what it remembers must not
begin anew with it. State of tools that were unregistered is kept too, within a bound: else a
server could refill its own limit by announcing its tools again.
"""

from __future__ import annotations

from collections import OrderedDict
from itertools import chain
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast, runtime_checkable

from seawall.pipeline.clock import Deadlines

if TYPE_CHECKING:
    from collections.abc import Callable

    from seawall.pipeline.clock import Clock

T = TypeVar("T")

MAX_RETIRED = 1_024


@runtime_checkable
class LoopBound(Protocol):
    """Something remembered that counts what is under way in one event loop."""

    def forget_loop(self) -> None:
        """Begin anew: that loop is gone, and whatever was under way in it will not end."""
        ...


class Slots:
    """The remembered things of one tool (or of one name that several tools share)."""

    __slots__ = ("_held",)

    def __init__(self) -> None:
        self._held: dict[str, Any] = {}

    def slot(self, name: str, make: Callable[[], T]) -> T:
        """What is remembered under `name`, made at the first asking."""
        if name not in self._held:
            self._held[name] = make()
        return cast("T", self._held[name])

    def find(self, name: str) -> Any:
        """What is remembered under `name`, or None."""
        return self._held.get(name)

    def drop(self, name: str) -> None:
        """Forget it."""
        self._held.pop(name, None)

    def forget_loop(self) -> None:
        """Let everything that is bound to the event loop begin anew."""
        for held in tuple(self._held.values()):
            if isinstance(held, LoopBound):
                held.forget_loop()


class StateTable:
    """All slots, by tool name."""

    def __init__(self) -> None:
        self._tools: dict[str, Slots] = {}
        self._retired: OrderedDict[str, Slots] = OrderedDict()
        self._shared: dict[str, Slots] = {}

    def of_tool(self, name: str) -> Slots:
        """Slots of one tool, the former ones if it was here before."""
        slots = self._tools.get(name)
        if slots is None:
            slots = self._retired.pop(name) if name in self._retired else Slots()
            self._tools[name] = slots
        return slots

    def shared(self, name: str) -> Slots:
        """Slots that a policy shares between tools; names come from policies, so they are few."""
        return self._shared.setdefault(name, Slots())

    def find(self, name: str) -> Slots | None:
        """Slots of a tool if it has any yet."""
        return self._tools.get(name) or self._retired.get(name)

    def retire(self, name: str) -> None:
        """Set aside what an unregistered tool left; the oldest beyond `MAX_RETIRED` are dropped."""
        slots = self._tools.pop(name, None)
        if slots is None:
            return
        self._retired[name] = slots
        while len(self._retired) > MAX_RETIRED:
            self._retired.popitem(last=False)

    def forget_loop(self) -> None:
        """Let everything that is bound to the event loop begin anew, for whatever tool."""
        tables = (self._tools, self._retired, self._shared)
        for slots in tuple(chain.from_iterable(table.values() for table in tables)):
            slots.forget_loop()

    def __len__(self) -> int:
        return len(self._tools)


def deadlines_of(states: StateTable, clock: Clock, seconds: float | None) -> Deadlines | None:
    """Give what all waits of one length in a pipeline share: one timer."""
    if seconds is None:
        return None
    return states.shared("deadlines").slot(repr(seconds), lambda: Deadlines(clock, seconds))
