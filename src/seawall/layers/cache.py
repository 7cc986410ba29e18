"""Give an answer of a read-only tool again, for a while, to whoever may have it.

Only tools that read, only answers that are no errors, kept by the prepared arguments. An answer is
its session's alone unless the policy says otherwise. Equal calls at one time are one run: the
others wait for it, and if it fails or is cancelled the next of them runs. Outside of `rate_limit`
and all that follows: a call that is answered here costs none of it.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from contextvars import ContextVar
from hashlib import blake2b
from itertools import count
from typing import TYPE_CHECKING, Any

import msgspec

from seawall.contract.content import TextContent
from seawall.contract.failure import FailureCode
from seawall.contract.result import ToolResult
from seawall.layers.result_sizes import size_of
from seawall.pipeline.copying import copied, copied_within
from seawall.pipeline.digest import canonical_text, told_apart

if TYPE_CHECKING:
    from seawall.contract.content import Content
    from seawall.contract.optional_policies import CachePolicy
    from seawall.pipeline.clock import Clock
    from seawall.pipeline.invocation import Handler, Invocation
    from seawall.pipeline.layer import LayerContext
    from seawall.pipeline.session import Session

MAX_WAITING = 1_000
"""Calls that may wait for one run."""

ENTRY_BYTES = 256
"""What an entry counts beyond its answer, so that empty answers are bounded too."""

_serials = count(1)


class Cache:
    """Keeps the answers of one tool, in its slot `cache`."""

    name = "cache"

    def __init__(self, context: LayerContext, policy: CachePolicy) -> None:
        self._clock: Clock = context.clock
        self._count = context.count
        self._scope = "session" if context.tool.annotations.sensitive else policy.scope
        self._ttl_s = policy.ttl_s
        self._kept: Kept = context.slots.slot(self.name, Kept)
        self._kept.resize(policy.max_entries, policy.max_bytes)
        self._kept.belong_to(context.tool)

    @classmethod
    def for_tool(cls, context: LayerContext) -> Cache | None:
        """Nothing to do for a tool that does more than read; what was kept before is forgotten."""
        policy = context.policy.cache
        if policy is None or not context.tool.annotations.is_read_only:
            context.slots.drop(cls.name)
            return None
        return cls(context, policy)

    async def __call__(self, call: Invocation, proceed: Handler) -> ToolResult:
        """Give the answer that is kept, wait for a run that is under way, or run."""
        refusal = call.prepared()
        if refusal is not None:
            return refusal
        key = self._key(call)
        while (found := self._fresh(key)) is None:
            flight = self._kept.flights.get(key)
            if flight is None or flight in _flying.get():
                return await self._run(call, proceed, key)
            refusal = await self._wait(call, flight)
            if refusal is not None:
                return refusal
            if flight.brought is not None:
                found = 0.0, flight.brought
                break
        return self._given_again(call, *found)

    async def _run(self, call: Invocation, proceed: Handler, key: bytes) -> ToolResult:
        kept = self._kept
        flight = Flight()
        kept.flights.setdefault(key, flight)
        outer = _flying.set((*_flying.get(), flight))
        try:
            result = await proceed(call)
            if result.failure is None and not result.is_error:
                flight.brought = _plain(result)
                kept.keep(key, self._clock.now(), flight)
            return result
        finally:
            _flying.reset(outer)
            if kept.flights.get(key) is flight:
                del kept.flights[key]
            flight.land()

    async def _wait(self, call: Invocation, flight: Flight) -> ToolResult | None:
        """Wait until the run has ended, however it did; a refusal if that was too long."""
        if len(flight.waiting) >= MAX_WAITING:
            return call.refuse(
                FailureCode.RATE_LIMITED,
                f"{len(flight.waiting)} calls wait for the same answer of {call.tool.name}",
                reason="overloaded",
                layer=self.name,
            )
        left_s = None if call.deadline is None else call.deadline - self._clock.now()
        self._count(self.name, "waited")
        call.lines_up(self._clock.now())
        if await flight.wait(self._clock, left_s):
            call.mark("admitted", self._clock.now())
            return None
        return call.refuse(
            FailureCode.TIMEOUT,
            f"the same call of {call.tool.name} was under way until the time for this one was over",
            reason="deadline_exceeded",
            layer=self.name,
        )

    def _fresh(self, key: bytes) -> tuple[float, ToolResult] | None:
        """Find an answer that is young enough, and how old it is."""
        found = self._kept.find(key)
        if found is None:
            return None
        age_s = self._clock.now() - found.at
        if age_s >= self._ttl_s:
            self._kept.forget(key)
            return None
        return age_s, found.result

    def _given_again(self, call: Invocation, age_s: float, kept: ToolResult) -> ToolResult:
        self._count(self.name, "hit")
        call.note(f"{self.name}:hit")
        own = _copied(kept)
        said = {**(own.metadata or {}), "cache": {"age_s": round(age_s, 3)}}
        return msgspec.structs.replace(own, metadata=said, usage=None, duration_ms=None)

    def _key(self, call: Invocation) -> bytes:
        text = told_apart(*self._owner(call.session), canonical_text(call.arguments))
        return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=20).digest()

    def _owner(self, session: Session) -> tuple[str, ...]:
        """Say whose answer it is; without a name of its own, a session is known by itself."""
        if self._scope == "all":
            return ("all",)
        if self._scope == "caller" and session.caller:
            return ("caller", session.caller)
        if session.id:
            return ("session", session.caller, session.id)
        return ("object", str(session.memory.setdefault(self.name, next(_serials))))


class Flight:
    """A run that others wait for."""

    __slots__ = ("brought", "stale", "waiting")

    def __init__(self) -> None:
        self.waiting: dict[asyncio.Future[None], None] = {}
        self.brought: ToolResult | None = None
        """Its answer, if that is no error; for who waits, also if it is too large to be kept."""
        self.stale = False
        """What it brings is about a tool that was replaced meanwhile."""

    async def wait(self, clock: Clock, seconds: float | None) -> bool:
        """Wait for its end, `seconds` at most; a cancel of one who waits concerns nobody else."""
        landed = asyncio.get_running_loop().create_future()
        self.waiting[landed] = None
        try:
            with clock.limit(seconds):
                await landed
                return True
        finally:
            self.waiting.pop(landed, None)
        return False

    def land(self) -> None:
        """Wake who waits. The first of them may have to run, so all look again, in their order."""
        waiting, self.waiting = self.waiting, {}
        for landed in waiting:
            if not landed.done() and not landed.get_loop().is_closed():
                landed.set_result(None)


# The runs that this code is part of: a tool that calls itself must not wait for itself.
_flying: ContextVar[tuple[Flight, ...]] = ContextVar("seawall_cache", default=())


class Entry(msgspec.Struct, frozen=True, gc=False):
    """An answer, its size, and when it came."""

    at: float
    size: float
    result: ToolResult


class Kept:
    """Answers by key, the least recently used first, bounded in number and bytes."""

    __slots__ = ("_entries", "_max_bytes", "_max_entries", "_tool", "flights", "size")

    def __init__(self) -> None:
        self._entries: OrderedDict[bytes, Entry] = OrderedDict()
        self._max_entries = 0
        self._max_bytes = 0
        self._tool: Any = None
        self.size = 0.0
        """Bytes."""
        self.flights: dict[bytes, Flight] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def resize(self, max_entries: int, max_bytes: int) -> None:
        """Change the bounds."""
        self._max_entries, self._max_bytes = max_entries, max_bytes
        self._shrink()

    def belong_to(self, tool: Any) -> None:
        """Forget what a former tool of this name has answered."""
        if self._tool is not None and self._tool is not tool and self._tool != tool:
            self._entries.clear()
            self.size = 0.0
            for flight in self.flights.values():
                flight.stale = True
            self.flights = {}
        self._tool = tool

    def find(self, key: bytes) -> Entry | None:
        """Find an answer, whatever its age."""
        entry = self._entries.get(key)
        if entry is not None:
            self._entries.move_to_end(key)
        return entry

    def keep(self, key: bytes, at: float, flight: Flight) -> None:
        """Keep what a run has brought, if it fits; the least recently used make room."""
        result = flight.brought
        if result is None or flight.stale:
            return
        size = size_of(result) + ENTRY_BYTES
        if size > self._max_bytes:
            return
        self.forget(key)
        self._entries[key] = Entry(at, size, result)
        self.size += size
        self._shrink()

    def forget(self, key: bytes) -> None:
        """Drop an answer."""
        entry = self._entries.pop(key, None)
        if entry is not None:
            self.size -= entry.size

    def forget_loop(self) -> None:
        """Runs of a loop that is gone do not end."""
        self.flights = {}

    def _shrink(self) -> None:
        while len(self._entries) > self._max_entries or self.size > self._max_bytes:
            _, entry = self._entries.popitem(last=False)
            self.size -= entry.size


def _plain(result: ToolResult) -> ToolResult:
    """Keep what can be given again: not what only this caller was to see, nor its details."""
    return msgspec.structs.replace(_copied(result), call_id="", details=None)


def _copied(result: ToolResult) -> ToolResult:
    """Copy what whoever gets it may change in place; most results are texts and have nothing."""
    changes: dict[str, Any] = {}
    if isinstance(result.structured_content, (dict, list)):
        changes["structured_content"] = copied({"": result.structured_content})[""]
    if not all(map(_is_plain_text, result.content)):
        changes["content"] = tuple(map(_copied_block, result.content))
    if result.metadata:
        # None if it has no end: then nothing of it is given again.
        changes["metadata"] = copied_within(dict(result.metadata))
    return msgspec.structs.replace(result, **changes) if changes else result


def _is_plain_text(block: Content) -> bool:
    return type(block) is TextContent and block.annotations is None and block.meta is None


def _copied_block(block: Content) -> Content:
    fields = ("annotations", "meta", "resource")
    held = {name: getattr(block, name, None) for name in fields}
    changes = {name: copied(value) for name, value in held.items() if isinstance(value, dict)}
    return msgspec.structs.replace(block, **changes) if changes else block
