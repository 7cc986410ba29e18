"""Let calls that touch the same thing wait for each other.

A tool names what that is by a fixed key, or by the argument that holds it: `$path` makes calls
with the same path take turns, those of other tools with `$path` too. An argument that is not given
stands for the default in the tool's schema. A call made by a tool that
has the key already goes through, as it could only wait for itself. Of tools that hold one key each
and call for the other's, the one that would close the circle is refused.

A tool that was given up and still runs (a thread cannot be stopped) keeps its key until it ends.
"""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from hashlib import blake2b
from typing import TYPE_CHECKING

from seawall.contract.defaults import default_of
from seawall.contract.failure import FailureCode
from seawall.layers.room import Room
from seawall.pipeline.digest import canonical_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from seawall.contract.result import ToolResult
    from seawall.pipeline.invocation import Handler, Invocation, Leftovers
    from seawall.pipeline.layer import LayerContext

MAX_WAITING = 1_000
"""Calls that may wait for one key."""

LONGEST_KEY = 200
"""Characters of an argument that are kept as they are; a longer one is kept as its hash."""


class _Key(Room):
    """A room for one, and who is in it."""

    __slots__ = ("hold",)

    def __init__(self) -> None:
        super().__init__(1)
        self.hold: _Hold | None = None


class _Rooms(dict[str, _Key]):
    """The keys that are in use, each with its room."""

    def forget_loop(self) -> None:
        """Free all keys; calls of the former loop leave rooms that nobody enters any more."""
        self.clear()


class _Hold:
    """A key while its call runs. What outlives the call finds it no longer live."""

    __slots__ = ("key", "leftovers", "live", "outer", "rooms", "waits_for")

    def __init__(self, rooms: _Rooms, key: str, outer: _Hold | None) -> None:
        self.rooms = rooms
        self.key = key
        self.outer = outer
        self.live = True
        self.leftovers: list[Leftovers] = []
        """Of calls inside this one, which run under its key."""
        self.waits_for: list[_Key] = []
        """What calls inside this one wait for now."""

    def all(self) -> Iterator[_Hold]:
        """Give what this call, and those that it is part of, have now."""
        hold: _Hold | None = self
        while hold is not None:
            if hold.live:
                yield hold
            hold = hold.outer

    def found(self, rooms: _Rooms, key: str) -> _Hold | None:
        """Find who has the key now: this call, or one that it is part of."""
        held = (hold for hold in self.all() if hold.key == key and hold.rooms is rooms)
        return next(held, None)

    def is_waited_for_in(self, room: _Key) -> bool:
        """Whether who is in the room waits, if by way of others, for what we have."""
        ours, seen, rooms = set(self.all()), set[_Hold](), [room]
        while rooms:
            hold = rooms.pop().hold
            if hold in ours:
                return True
            if hold is not None and hold not in seen:
                seen.add(hold)
                rooms.extend(hold.waits_for)
        return False

    @contextmanager
    def waiting(self, room: _Key) -> Iterator[None]:
        """Let it be known that what we have is kept until the room is free."""
        held = tuple(self.all())
        for hold in held:
            hold.waits_for.append(room)
        try:
            yield
        finally:
            for hold in held:
                hold.waits_for.remove(room)

    def keep(self, call: Invocation) -> None:
        """Stay until nothing of the call runs any more."""
        if call.leftovers is not None and call.leftovers.running:
            self.leftovers.append(call.leftovers)

    def when_over(self, release: Callable[[], None]) -> None:
        """Release now, or when the last of what was left behind has ended."""
        while self.leftovers:
            leftovers = self.leftovers.pop()
            if leftovers.running:
                leftovers.then(lambda: self.when_over(release))
                return
        self.live = False
        release()


# Follows the task, and whatever the tool starts from it: that is how nested calls are known.
_held: ContextVar[_Hold | None] = ContextVar("seawall_exclusive", default=None)


class Exclusive:
    """Runs one call at a time for each value of the tool's key."""

    name = "exclusive"

    def __init__(self, context: LayerContext, key: str) -> None:
        self._fixed = None if key.startswith("$") else key
        self._argument = key.removeprefix("$")
        # A call without the argument touches what one touches that gives the default.
        self._default = None if self._fixed else default_of(context.tool, self._argument)
        self._clock = context.clock
        self._count = context.count
        self._rooms: _Rooms = context.states.shared(self.name).slot("rooms", _Rooms)

    @classmethod
    def for_tool(cls, context: LayerContext) -> Exclusive | None:
        """Nothing to do for a tool without a key."""
        key = context.tool.exclusive
        return None if key is None else cls(context, key)

    async def __call__(self, call: Invocation, proceed: Handler) -> ToolResult:
        """Wait for the key, run, hand it on."""
        key = self._fixed
        if key is None:
            refusal = call.prepared()
            if refusal is not None:
                return refusal
            key = self._key_of(call)
        rooms, outer = self._rooms, _held.get()
        holder = None if outer is None else outer.found(rooms, key)
        if holder is not None:
            try:
                return await proceed(call)
            finally:
                holder.keep(call)

        room = rooms.get(key)
        if room is None:
            room = rooms[key] = _Key()
            room.in_flight = 1
        else:
            try:
                refusal = await self._wait(call, room, outer)
            finally:
                self._clear(key, room)
            if refusal is not None:
                return refusal
        hold = room.hold = _Hold(rooms, key, outer)
        _held.set(hold)
        try:
            return await proceed(call)
        finally:
            _held.set(outer)
            hold.keep(call)
            if hold.leftovers:
                self._count(self.name, "kept")
            hold.when_over(lambda: self._release(key, room))

    async def _wait(self, call: Invocation, room: _Key, outer: _Hold | None) -> ToolResult | None:
        if room.waiting >= MAX_WAITING:
            return self._overloaded(call, room)
        if outer is not None and outer.is_waited_for_in(room):
            return self._circle(call)
        left_s = None if call.deadline is None else call.deadline - self._clock.now()
        if left_s is not None and left_s <= 0:
            return self._too_late(call)
        self._count(self.name, "waited")
        with nullcontext() if outer is None else outer.waiting(room):
            call.lines_up(self._clock.now())
            admitted = await room.wait(self._clock, left_s)
        if admitted is None:
            return self._too_late(call)
        call.mark("admitted", admitted)
        return None

    def _release(self, key: str, room: _Key) -> None:
        room.hold = None
        room.leave()
        self._clear(key, room)

    def _clear(self, key: str, room: _Key) -> None:
        # Not another room, made after this one was cleared while a cancelled call still woke up.
        if room.idle and self._rooms.get(key) is room:
            del self._rooms[key]

    def _key_of(self, call: Invocation) -> str:
        text = canonical_text(call.arguments.get(self._argument, self._default))
        if len(text) > LONGEST_KEY:
            text = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=32).hexdigest()
        return f"${self._argument}={text}"

    def _overloaded(self, call: Invocation, room: Room) -> ToolResult:
        return call.refuse(
            FailureCode.RATE_LIMITED,
            f"{room.waiting} calls wait for what {call.tool.name} would use",
            reason="overloaded",
            layer=self.name,
        )

    def _circle(self, call: Invocation) -> ToolResult:
        self._count(self.name, "circle")
        return call.refuse(
            FailureCode.RATE_LIMITED,
            f"what {call.tool.name} would use is held by a call that waits, in turn, for what the"
            " caller of this one holds",
            reason="overloaded",
            layer=self.name,
            guidance="It cannot be had while that caller runs.",
        )

    def _too_late(self, call: Invocation) -> ToolResult:
        return call.refuse(
            FailureCode.TIMEOUT,
            f"another call used what {call.tool.name} needs until the time for this call was over;"
            " it was not begun",
            reason="deadline_exceeded",
            layer=self.name,
        )
