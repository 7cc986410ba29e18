"""The circuits of one process, kept in step with those of all others through a store.

    a circuit opens here ──▶ told to the store ──▶ others read it, at most `POLL_S` later ──▶ open
    it may be probed     ──▶ the store is asked: one process gets leave, for all
    the probe is settled ──▶ told to the store ──▶ others read it: closed, or open for longer

Nothing is asked while a circuit is closed: what the store has is read in the background. When it is
silent each process goes by its own circuit; when it answers again, what opened meanwhile is told.
A circuit that was opened by hand in one process is held open in all, until one closes it by hand; a
store that has forgotten it is told again.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Protocol

from seawall.contract.circuit_news import CircuitNews, CircuitSeen
from seawall.pipeline.foreign import guarded_async

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping

    from seawall.layers.breaker.circuit import Circuit
    from seawall.layers.breaker.slot import CircuitSlot
    from seawall.pipeline.clock import Clock

POLL_S = 0.4
"""How old what is known of other processes may be; 1 s is the promise."""

MAX_NEWS = 256
"""News not yet told; what comes beyond is made up for by the next reading."""


class CircuitStore(Protocol):
    """A store of circuits that are not closed. It answers in bounded time, or not at all."""

    async def ask(self, name: str, process: str, cooldown_s: float) -> float | None:
        """Ask for leave to probe: 0, or the seconds to wait; below 0 if it is closed."""

    async def tell(self, news: CircuitNews) -> bool:
        """Say what happened; False if the store did not hear it."""

    async def read(self) -> Mapping[str, CircuitSeen] | None:
        """Read all circuits that are open, or were a moment ago; None if the store is silent."""


class Fleet:
    """Keeps circuits in step, from `start`, or the first call through one, until it is closed."""

    def __init__(self, store: CircuitStore, clock: Clock, process: str) -> None:
        self._store = store
        self._clock = clock
        self._process = process
        """A name that no other process has."""
        self._slots: dict[str, CircuitSlot] = {}
        self._known: dict[str, str] = {}
        self._held: set[str] = set()
        """Circuits that were opened by hand, as the store knows too."""
        self._is_following = False
        self._has_missed = False
        self._is_closed = False
        self._is_reading = False
        self._reading: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._turn = asyncio.Lock()

    def keeps(self, name: str, slot: CircuitSlot) -> bool:
        """Say whether this circuit is kept in step now."""
        return self._is_reading and self._slots.get(name) is slot

    def enlist(self, name: str, slot: CircuitSlot) -> None:
        """Know of a circuit, under the name that it has in all processes."""
        if self._slots.get(name) is not slot:
            self._slots[name] = slot
            self._known.pop(name, None)
        slot.on_change = lambda before, after: self._changed(name, slot, before, after)
        slot.on_hold = lambda: self._hold(name)

    def join(self, name: str, slot: CircuitSlot) -> None:
        """Keep a circuit in step."""
        self.enlist(name, slot)
        if not self._is_reading and not self._is_closed:
            self._is_reading = True
            self._reading = self._spawn(self._read())

    async def start(self) -> None:
        """Read once, as well as the store answers, and go on in the background."""
        if self._is_reading or self._is_closed:
            return
        await self._look()
        self._is_reading = True
        self._reading = self._spawn(self._read())

    async def may_probe(self, name: str, circuit: Circuit) -> bool | None:
        """Ask for leave to probe; what else the answer says is done to the circuit.

        None if the store is silent: then it is for the circuit alone to say.
        """
        if self._is_closed:
            return None
        wait_s = await self._store.ask(name, self._process, circuit.cooldown_s)
        if wait_s is None:
            return None
        if wait_s < 0:
            self._follow_one(self._slots[name], None)
        elif wait_s > 0:
            circuit.put_off(wait_s)
        return wait_s == 0

    def probed(self, name: str, circuit: Circuit) -> None:
        """Hand leave back that led to nothing; what a probe came to was told when it was known."""
        if not circuit.is_closed and not circuit.is_probed:
            self._tell(lambda: CircuitNews(name=name, what="released", process=self._process))

    def forget_loop(self) -> None:
        """Begin anew in another loop."""
        self._is_reading = False
        self._reading = None
        self._tasks = set()
        self._turn = asyncio.Lock()

    async def aclose(self) -> None:
        """Tell what is left to tell, and go by the circuits of this process from now on."""
        self._is_closed = True
        self._is_reading = False
        if self._reading is not None:
            self._reading.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=1)

    def _changed(self, name: str, slot: CircuitSlot, before: str, after: str) -> None:
        circuit = slot.circuit
        if self._is_following or circuit is None or circuit.held_open or after == "half_open":
            return
        if after == "closed":
            by_hand = before == "open"
            self._tell(
                lambda: CircuitNews(
                    name=name,
                    what="closed" if by_hand else "succeeded",
                    process=self._process,
                )
            )
        else:
            self._tell_open(name, circuit, "tripped" if before == "closed" else "failed")

    def _tell_open(self, name: str, circuit: Circuit, what: Any) -> None:
        # Read when it is told: how long it is to stay open is settled only after it opened.
        self._tell(
            lambda: CircuitNews(
                name=name,
                what=what,
                process=self._process,
                left_s=circuit.seconds_to_probe(),
                cooldown_s=circuit.cooldown_s,
                kind=circuit.last_error,
            )
        )

    def _hold(self, name: str) -> None:
        self._tell(lambda: CircuitNews(name=name, what="held", process=self._process))

    def _tell(self, news: Callable[[], CircuitNews]) -> None:
        if len(self._tasks) > MAX_NEWS or self._is_closed or not _is_in_loop():
            self._has_missed = True
        else:
            self._spawn(self._told(news))

    async def _told(self, news: Callable[[], CircuitNews]) -> None:
        # One after another: that a probe failed is not told before the opening it followed.
        async with self._turn:
            if not await self._store.tell(news()):
                self._has_missed = True

    async def _read(self) -> None:
        while not self._is_closed:
            await guarded_async("shared circuits could not be read", self._look, self._not_seen)
            await self._clock.sleep(POLL_S)

    def _not_seen(self, _: BaseException) -> None:
        """Go on after a reading that failed: nobody would begin the next."""
        self._has_missed = True

    async def _look(self) -> None:
        seen = await self._store.read()
        if seen is None:
            self._has_missed = True
        else:
            self._follow(seen)

    def _follow(self, seen: Mapping[str, CircuitSeen]) -> None:
        for name, slot in tuple(self._slots.items()):
            one = seen.get(name)
            if one is None or not one.is_open:
                self._make_up_for(name, slot)
            self._keep_held(name, slot, one)
            if one is not None and self._known.get(name) != one.changed:
                self._known[name] = one.changed
                self._follow_one(slot, one if one.is_open else None)
        self._has_missed = False

    def _follow_one(self, slot: CircuitSlot, one: CircuitSeen | None) -> None:
        """Be open as the store says; closed if it is None."""
        self._is_following = True
        try:
            if one is not None and one.is_held:
                slot.made().force_open()
            elif one is not None:
                slot.made().follow_open(one.left_s, one.cooldown_s, one.kind)
            elif slot.circuit is not None:
                slot.circuit.follow_close()
        finally:
            self._is_following = False

    def _keep_held(self, name: str, slot: CircuitSlot, one: CircuitSeen | None) -> None:
        """Tell of a circuit that is held open here; let go of it if another process has."""
        if one is not None and one.is_held:
            self._held.add(name)
        elif slot.circuit is None or not slot.circuit.held_open:
            self._held.discard(name)
        elif name in self._held and one is not None and self._known.get(name) != one.changed:
            self._held.discard(name)
            self._let_go(slot.circuit)
        else:
            self._hold(name)

    def _let_go(self, circuit: Circuit) -> None:
        self._is_following = True
        try:
            circuit.force_close()
        finally:
            self._is_following = False

    def _make_up_for(self, name: str, slot: CircuitSlot) -> None:
        """Tell of a circuit that opened while nobody could be told, or that the store has lost."""
        circuit = slot.circuit
        if not self._has_missed or circuit is None or circuit.held_open or circuit.is_closed:
            return
        if circuit.state == "open" and circuit.seconds_to_probe() > 0:
            self._tell_open(name, circuit, "tripped")

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


def _is_in_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
