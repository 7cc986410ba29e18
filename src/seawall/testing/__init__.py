"""A clock that is moved by hand, fixed chance, faults on purpose, and a bench for layers.

No test that uses these sleeps. `LayerBench` runs one layer around a scripted tool, without a
pipeline; `FakeClock` serves a whole `Pipeline` just as well.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
from typing import TYPE_CHECKING, Any, TypeVar

from seawall.contract.policy import RunPolicy
from seawall.contract.tool import Tool
from seawall.pipeline.clock import Clock, Timer
from seawall.pipeline.execute import executing
from seawall.pipeline.invocation import Handler, Invocation
from seawall.pipeline.layer import LayerContext
from seawall.pipeline.session import Session
from seawall.pipeline.state import StateTable
from seawall.pipeline.threads import Threads, Workers
from seawall.testing.chaos import Chaos

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

    from seawall.contract.result import ToolResult

__all__ = ["Chaos", "FakeClock", "FixedChance", "LayerBench", "scripted"]

T = TypeVar("T")

_MAX_TURNS = 100_000


class _FakeTimer:
    __slots__ = ("callback",)

    def __init__(self, callback: Callable[[], None]) -> None:
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        self.callback = None


class FakeClock(Clock):
    """Time that moves only when told: `await clock.advance(s)` or `await clock.run(work)`."""

    def __init__(self, now: float = 0.0, wall: float = 1_700_000_000.0) -> None:
        super().__init__()
        self._now = now
        self._epoch = wall - now
        self._timers: list[tuple[float, int, _FakeTimer]] = []
        self._order = itertools.count()

    def now(self) -> float:
        """Seconds on the fake clock."""
        return self._now

    def wall(self) -> float:
        """Fake seconds since the epoch."""
        return self._epoch + self._now

    def step_wall(self, seconds: float) -> None:
        """Move the wall clock alone, as an operator or a time server does."""
        self._epoch += seconds

    def call_later(self, seconds: float, callback: Callable[[], None]) -> Timer:
        """Call back when the clock was moved so far."""
        timer = _FakeTimer(callback)
        heapq.heappush(self._timers, (self._now + max(seconds, 0.0), next(self._order), timer))
        return timer

    async def sleep(self, seconds: float) -> None:
        """Wait until the clock was moved so far."""
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        done, timer = self.alarm(seconds)
        try:
            await done
        finally:
            timer.cancel()

    def next_due(self) -> float | None:
        """When something happens next, if anything is waiting."""
        while self._timers and self._timers[0][2].callback is None:
            heapq.heappop(self._timers)
        return self._timers[0][0] if self._timers else None

    async def settle(self) -> None:
        """Let everything run that can run without time passing."""
        ready = getattr(asyncio.get_running_loop(), "_ready", None)
        for _ in range(_MAX_TURNS if ready is not None else 50):
            await asyncio.sleep(0)
            if ready is not None and not ready:
                return

    async def advance(self, seconds: float) -> None:
        """Move the clock, stopping at each timer on the way."""
        end = self._now + seconds
        await self.settle()
        while (due := self.next_due()) is not None and due <= end:
            await self._fire(due)
        self._now = max(self._now, end)
        await self.settle()

    async def run(self, work: Awaitable[T]) -> T:
        """Run to the end, moving the clock whenever nothing else can go on."""
        task = asyncio.ensure_future(work)
        try:
            while not task.done():
                await self.settle()
                if task.done():
                    break
                due = self.next_due()
                if due is None:
                    await asyncio.wait({task}, timeout=0.005)  # a thread or a socket is at work
                else:
                    await self._fire(due)
        finally:
            if not task.done():
                task.cancel()
        return await task

    async def _fire(self, due: float) -> None:
        self._now = max(self._now, due)
        _, _, timer = heapq.heappop(self._timers)
        callback, timer.callback = timer.callback, None
        if callback is not None:
            callback()
        await self.settle()


class FixedChance:
    """Chance that always falls the same way: `share` of the way from low to high."""

    def __init__(self, share: float = 1.0) -> None:
        self.share = share
        self._tokens = itertools.count(1)

    def uniform(self, low: float, high: float) -> float:
        """Give the fixed share of the range."""
        return low + (high - low) * self.share

    def integer(self, low: int, high: int) -> int:
        """Give the fixed share of the range, as a whole number."""
        return round(low + (high - low) * self.share)

    def token(self, n: int) -> str:
        """Give the next of a row of tokens, `2 * n` digits long."""
        return f"{next(self._tokens):0{2 * n}x}"


def scripted(
    *answers: Any,
    clock: Clock | None = None,
    name: str = "scripted",
    **fields: Any,
) -> Tool:
    """Make a tool that gives one answer a call, the last one for ever.

    An answer is a value, an exception to raise, or a number of seconds written as `("sleep", s)`
    followed by the value: `("sleep", 2, "late")`. `tool.executor.calls` has the arguments of each
    run.
    """
    return Tool(
        name=name,
        description=f"Gives scripted answers ({len(answers)}).",
        input_schema=fields.pop("input_schema", {"type": "object"}),
        executor=_Script(answers or (None,), clock),
        **fields,
    )


class _Script:
    def __init__(self, answers: Sequence[Any], clock: Clock | None) -> None:
        self._answers = list(answers)
        self._clock = clock
        self.calls: list[dict[str, Any]] = []

    async def __call__(self, arguments: dict[str, Any], context: Any) -> Any:
        answer = self._answers[min(len(self.calls), len(self._answers) - 1)]
        self.calls.append(arguments)
        if isinstance(answer, tuple) and answer[:1] == ("sleep",):
            clock = self._clock or context._call.pipeline.clock  # noqa: SLF001  # the test's own kit
            await clock.sleep(answer[1])
            answer = answer[2] if len(answer) > 2 else None
        if isinstance(answer, BaseException) or (
            isinstance(answer, type) and issubclass(answer, BaseException)
        ):
            raise answer
        return answer


class LayerBench:
    """One layer, one tool, a fake clock; `events` has what the layer counted.

    bench = LayerBench(policy=RunPolicy(timeout_s=5))
    layer = Timeout.for_tool(bench.context)
    result = await bench.call(compose([layer], bench.slow_tool(6)))
    """

    def __init__(
        self,
        policy: RunPolicy | None = None,
        *,
        tool: Tool | None = None,
        clock: FakeClock | None = None,
        chance: FixedChance | None = None,
        session: Session | None = None,
        parts: Mapping[type, Any] | None = None,
    ) -> None:
        self.clock = clock or FakeClock()
        self.chance = chance or FixedChance()
        self.policy = policy or RunPolicy()
        self.session = session or Session("s1", caller="c1")
        self.tool = tool or scripted("done", clock=self.clock, name="tool")
        self.states = StateTable()
        self.events: list[tuple[str, str]] = []
        self.parts = dict(parts or {})
        self.shown: list[Any] = []
        self._calls = itertools.count(1)
        self._threads = Threads()

    @property
    def context(self) -> LayerContext:
        """What the pipeline would hand to a layer of this tool."""
        return LayerContext(
            self.tool,
            self.policy,
            self.clock,
            self.chance,
            self.states,
            lambda layer, event: self.events.append((layer, event)),
            self.parts,
        )

    def execute(self, tool: Tool | None = None) -> Handler:
        """Make the innermost handler, which runs the tool."""
        workers = Workers(self._threads, self.policy.max_threads)
        return executing(tool or self.tool, self.clock, lambda: workers)

    def slow_tool(self, seconds: float, answer: Any = "done") -> Handler:
        """Make the handler of a tool that takes so long."""
        self.tool = scripted(("sleep", seconds, answer), clock=self.clock, name=self.tool.name)
        return self.execute()

    def answering(self, *answers: Any) -> Handler:
        """Make the handler of a tool that gives these answers, one a call."""
        annotations = self.tool.annotations
        self.tool = scripted(
            *answers, clock=self.clock, name=self.tool.name, annotations=annotations
        )
        return self.execute()

    def invocation(self, arguments: Mapping[str, Any] | None = None, **fields: Any) -> Invocation:
        """Make a call with arguments that are already in order."""

        def prepare(call: Invocation) -> None:
            call.arguments = dict(arguments or {})

        call = Invocation(
            self.tool,
            self.policy,
            prepare,
            arguments,
            str(next(self._calls)),
            self.session,
            self.clock.now(),
        )
        call.pipeline = self
        for name, value in fields.items():
            setattr(call, name, value)
        return call

    async def call(
        self, handler: Handler, arguments: Mapping[str, Any] | None = None, **fields: Any
    ) -> ToolResult:
        """Make one call; the clock moves as far as it needs."""
        return await self.clock.run(handler(self.invocation(arguments, **fields)))

    async def calls(self, handler: Handler, each: Iterable[Mapping[str, Any]]) -> list[ToolResult]:
        """Make calls one after the other."""
        return [await self.call(handler, arguments) for arguments in each]

    def progressed(self, call: Invocation, report: Any, done: Any, total: Any) -> None:
        """Keep what the tool reported, in `shown`."""
        self.shown.append((call.call_id, report, done, total))

    def new_key(self) -> str:
        """Make an idempotency key."""
        return self.chance.token(16)
