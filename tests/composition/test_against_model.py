"""A whole pipeline beside a plain model of it: bucket, breaker, retry, timeout, cancels."""

from __future__ import annotations

import asyncio
import math
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from seawall import (
    Annotations,
    BreakerPolicy,
    Failure,
    FailureCode,
    Pipeline,
    Policies,
    RunPolicy,
    Tool,
    ToolFailed,
    ToolResult,
)
from seawall.testing import FakeClock, FixedChance

CAPACITY, PERIOD_S = 6, 60.0
TIMEOUT_S, WAIT_S, ATTEMPTS = 5.0, 2.0, 2
THRESHOLD, COOLDOWN_S, LONGEST_S = 2, 10.0, 25.0

POLICY = RunPolicy(
    timeout_s=TIMEOUT_S,
    delays_s=(WAIT_S,) * (ATTEMPTS - 1),
    rate=f"{CAPACITY} per {PERIOD_S:.0f} second",
    breaker=BreakerPolicy(threshold=THRESHOLD, cooldown_s=COOLDOWN_S, max_cooldown_s=LONGEST_S),
)

ENDS = ("well", "broken", "answered")
"""How an attempt may end: a value, an I/O error, or an answer such as *not found*."""


class Bucket:
    """Tokens that flow back."""

    def __init__(self) -> None:
        self.tokens, self.at = float(CAPACITY), 0.0

    def flow(self, now: float) -> None:
        self.tokens = min(CAPACITY, self.tokens + (now - self.at) * CAPACITY / PERIOD_S)
        self.at = now

    def take(self, now: float) -> bool:
        self.flow(now)
        if self.tokens < 1 - 1e-9:
            return False
        self.tokens -= 1
        return True


class Breaker:
    """Closed, open until, or half-open with a probe; attempts hold what it was when they began."""

    def __init__(self) -> None:
        self.state, self.streak, self.cooldown_s, self.until = "closed", 0, COOLDOWN_S, 0.0
        self.era: object = object()
        self.probe: object = None

    def permit(self, now: float) -> object:
        if self.state == "closed":
            return self.era
        if self.state == "open" and now < self.until:
            return None
        self.state = "half_open"
        if self.probe is not None:
            return None
        self.probe = object()
        return self.probe

    def settle(self, permit: object, end: str, now: float) -> None:
        if self.state == "closed" and permit is self.era:
            self._settle_closed(end, now)
        elif self.state == "half_open" and permit is self.probe:
            self.probe = None
            if end == "broken":
                self.cooldown_s = min(2 * self.cooldown_s, LONGEST_S)
                self._open(now)
            elif end != "cancelled":
                self.state, self.streak, self.cooldown_s = "closed", 0, COOLDOWN_S
                self.era = object()

    def _settle_closed(self, end: str, now: float) -> None:
        if end == "well":
            self.streak = 0
        elif end == "broken":
            self.streak += 1
            if self.streak == THRESHOLD:
                self._open(now)

    def _open(self, now: float) -> None:
        self.state, self.until, self.probe = "open", now + self.cooldown_s, None


class Call:
    """One call as the model sees it: what it does next, and when."""

    def __init__(self, script: list[tuple[str, float]]) -> None:
        self.script = script
        self.attempt = 0
        self.permit: object = None
        self.due = math.inf
        self.waits = False
        self.last = ""
        self.result = ""


class Model:
    """All calls of one tool, moved on from event to event."""

    def __init__(self) -> None:
        self.bucket, self.breaker = Bucket(), Breaker()
        self.runs = 0
        self.going: list[Call] = []

    def start(self, call: Call, now: float) -> None:
        if not self.bucket.take(now):
            call.result = "rate_limited"
            return
        self._try(call, now)
        if call.result == "circuit_open":
            self.bucket.tokens += 1

    def _try(self, call: Call, now: float) -> None:
        call.permit, call.waits = self.breaker.permit(now), False
        if call.permit is None:
            call.result = call.last or "circuit_open"
            return
        self.runs += 1
        call.attempt += 1
        call.due = now + min(call.script[call.attempt - 1][1], TIMEOUT_S)
        self.going.append(call)

    def advance(self, now: float) -> None:
        while (ready := min(self.going, key=_due, default=None)) and ready.due <= now:
            self._go_on(ready)

    def _go_on(self, call: Call) -> None:
        now = call.due
        self.going.remove(call)
        if call.waits:
            self._try(call, now)
            return
        end, seconds = call.script[call.attempt - 1]
        slow = seconds > TIMEOUT_S
        self.breaker.settle(call.permit, "broken" if slow else end, now)
        call.last = "attempt_timeout" if slow else end
        if (slow or end == "broken") and call.attempt < ATTEMPTS:
            call.waits, call.due = True, now + WAIT_S
            self.going.append(call)
        else:
            call.result = call.last

    def cancel(self, call: Call, now: float) -> None:
        if not call.waits:
            self.breaker.settle(call.permit, "cancelled", now)
        self.going.remove(call)
        call.result = "cancelled"


def _due(call: Call) -> float:
    return call.due


class Real:
    """The pipeline itself."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.runs = 0
        tool = Tool(
            name="t",
            description="",
            input_schema={"type": "object"},
            executor=self.execute,
            annotations=Annotations.for_reading(),
        )
        self.pipeline = Pipeline(
            [tool],
            policies=Policies(default=POLICY),
            clock=self.clock,
            chance=FixedChance(),
        )

    async def execute(self, arguments: dict[str, Any], context: Any) -> str:
        self.runs += 1
        end, seconds = arguments["script"][context.attempt - 1]
        await self.clock.sleep(seconds)
        if end == "broken":
            raise OSError("broken")
        if end == "answered":
            raise ToolFailed(Failure(code=FailureCode.NOT_FOUND, message="x", reason="answered"))
        return "well"


def said(task: asyncio.Task[ToolResult]) -> str:
    if task.cancelled():
        return "cancelled"
    failure = task.result().failure
    if failure is None:
        return "well"
    return "broken" if failure.reason == "tool_failed" else failure.reason


class PipelineMachine(RuleBasedStateMachine):
    """Starts, cancels and moves on calls in both."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.real, self.model = Real(), Model()
        self.calls: list[tuple[Call, asyncio.Task[ToolResult]]] = []

    def run(self, work: Any) -> Any:
        return self.loop.run_until_complete(work)

    @property
    def now(self) -> float:
        return self.real.clock.now()

    @rule(
        ends=st.lists(st.sampled_from(ENDS), min_size=2, max_size=2),
        seconds=st.lists(st.sampled_from([0.5, 1.0, 4.0, 7.0]), min_size=2, max_size=2),
    )
    def call(self, ends: list[str], seconds: list[float]) -> None:
        # A little more for each call, so that no two things happen at the same moment.
        grain = 0.001 * (len(self.calls) + 1)
        script = [(end, s + grain) for end, s in zip(ends, seconds, strict=True)]
        self.run(self.real.clock.advance(grain))
        self.model.advance(self.now)
        model = Call(script)
        self.model.start(model, self.now)
        work = self.real.pipeline.call("t", {"script": script})
        self.calls.append((model, self.loop.create_task(work)))
        self.run(self.real.clock.settle())

    @rule(seconds=st.sampled_from([0.25, 1.0, 3.0, 11.0, 40.0]))
    def pass_time(self, seconds: float) -> None:
        self.run(self.real.clock.advance(seconds))
        self.model.advance(self.now)

    @precondition(lambda self: any(not task.done() for _, task in self.calls))
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        going = [(model, task) for model, task in self.calls if not task.done()]
        model, task = data.draw(st.sampled_from(going))
        task.cancel()
        self.run(self.real.clock.settle())
        self.model.cancel(model, self.now)

    @invariant()
    def calls_ended_alike(self) -> None:
        for model, task in self.calls:
            assert task.done() is bool(model.result), (model.result, model.script)
            if model.result:
                assert said(task) == model.result
                if not task.cancelled():
                    assert task.result().attempts == model.attempt

    @invariant()
    def nothing_else_differs(self) -> None:
        pipeline = self.real.pipeline
        assert self.real.runs == self.model.runs
        assert pipeline.breakers.state("t") == self.model.breaker.state
        slot = pipeline.breakers._slot("t")
        if slot.circuit is not None and self.model.breaker.state == "closed":
            assert slot.circuit.failures == self.model.breaker.streak
        tokens = pipeline.states.of_tool("t").find("tokens_left")()
        self.model.bucket.flow(self.now)
        assert math.isclose(tokens, self.model.bucket.tokens, abs_tol=1e-6)
        assert pipeline._routes["t"].in_flight == len(self.model.going)

    def teardown(self) -> None:
        self.run(self.real.clock.advance(1000))
        self.model.advance(self.now)
        self.calls_ended_alike()
        self.loop.close()


TestPipelineMachine = PipelineMachine.TestCase
TestPipelineMachine.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
