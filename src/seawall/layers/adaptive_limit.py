"""Bound how many calls of a tool are under way by what it can take, learnt from its latencies.

Where a `bulkhead` has a number that somebody has to know, this finds one, and follows when the
tool becomes slower or faster. The algorithm is in `vegas.py`. Calls beyond the limit wait in line
as at the bulkhead. Outside of `retry`: a call is one sample, and one that was repeated is none.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from seawall.contract.failure import Failure, FailureCode
from seawall.layers.line import LINE_PER_PLACE, Line
from seawall.layers.room import Room
from seawall.layers.vegas import Vegas
from seawall.pipeline.convert import is_infrastructure

if TYPE_CHECKING:
    from seawall.contract.optional_policies import AdaptiveLimitPolicy
    from seawall.contract.result import ToolResult
    from seawall.pipeline.invocation import Handler, Invocation
    from seawall.pipeline.layer import LayerContext


class Adapting:
    """A room and the limit that is learnt for it; kept in the tool's slot `adaptive_limit`."""

    __slots__ = ("room", "vegas")

    def __init__(self, policy: AdaptiveLimitPolicy) -> None:
        self.vegas = Vegas(policy.initial, policy.min_limit, policy.max_limit)
        self.room = Room(policy.initial)

    def forget_loop(self) -> None:
        """Calls of a loop that is gone do not end."""
        self.room.forget_loop()


class AdaptiveLimit:
    """Lets as many calls through at once as the tool can take; others wait, or are refused."""

    name = "adaptive_limit"

    def __init__(self, context: LayerContext, policy: AdaptiveLimitPolicy) -> None:
        state = context.slots.slot(self.name, lambda: Adapting(policy))
        self._vegas = state.vegas
        self._room = state.room
        self._shadow = policy.mode == "shadow"
        self._now = context.clock.now
        self._count = context.count
        self._line = Line(
            self.name,
            self._room,
            context.clock,
            context.policy.timeout_s,
            lambda: self._count(self.name, "waited"),
        )
        self._vegas.bound(policy.min_limit, policy.max_limit)
        # In shadow mode nobody is held up, not even behind the calls of an earlier policy.
        self._room.resize(math.inf if self._shadow else self._limit)

    @classmethod
    def for_tool(cls, context: LayerContext) -> AdaptiveLimit | None:
        """Nothing to do without a policy; calls that wait for a limit that is gone go on."""
        policy = context.policy.adaptive_limit
        if policy is None or policy.mode == "off":
            state = context.slots.find(cls.name)
            if state is not None:
                state.room.resize(math.inf)
            return None
        return cls(context, policy)

    @property
    def _limit(self) -> int:
        return int(self._vegas.limit)

    async def __call__(self, call: Invocation, proceed: Handler) -> ToolResult:
        """Take a place, or wait for one; give it back whatever happens, and learn."""
        room = self._room
        if room.in_flight < room.limit and not room.line:
            room.in_flight += 1
            if self._shadow and room.in_flight > self._limit:
                self._note(call)
        else:
            refusal = await self._line.wait(call, self._limit * LINE_PER_PLACE)
            if refusal is not None:
                return refusal
        era, made, before_s = room.era, call.attempt, call.executed_s or 0.0
        try:
            result = await proceed(call)
            if call.attempt == made + 1 and era == room.era:
                self._learn(call, result.failure, (call.executed_s or 0.0) - before_s)
            return result
        finally:
            if era == room.era:
                room.leave()

    def _learn(self, call: Invocation, failure: Failure | None, latency_s: float) -> None:
        vegas, room = self._vegas, self._room
        if failure is None or not _says_nothing(call, failure):
            changed = vegas.sample(self._now(), latency_s, room.in_flight)
        elif _sent_away(failure):
            changed = vegas.drop(self._now(), latency_s, room.in_flight)
        else:
            return
        if changed:
            self._count(self.name, "changed")
            if not self._shadow:
                room.limit = self._limit
                room.admit()

    def _note(self, call: Invocation) -> None:
        """Say what would have happened; only beyond the line would there have been a refusal."""
        if self._room.in_flight <= self._limit * (1 + LINE_PER_PLACE):
            self._count(self.name, "shadow_held")
            call.note(f"{self.name}:would_wait")
            return
        self._count(self.name, "shadow_refused")
        call.note(f"{self.name}:would_refuse:overloaded")


def _says_nothing(call: Invocation, failure: Failure) -> bool:
    """Whether its latency is not that of an answer."""
    return is_infrastructure(failure, call.error) or failure.code is FailureCode.RATE_LIMITED


def _sent_away(failure: Failure) -> bool:
    """Whether the tool had more to do than it could: it was too slow, or said so."""
    if failure.code is FailureCode.TIMEOUT:
        return failure.reason == "attempt_timeout"
    return failure.code is FailureCode.RATE_LIMITED and failure.layer == "executor"
