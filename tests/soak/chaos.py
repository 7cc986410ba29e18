"""Everything on, faults on purpose, servers that come and go: what is held, and what the books say.

In cycles: a load with one outage in its midst, then rest, in which all that is held is counted. At
the end each call must be in each book once: in the metrics, in the audit log, with a listener that
writes every span and every call, and with whoever made it.
"""

from __future__ import annotations

import asyncio
import gc
import json
import random
import threading
import time
from array import array
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec.structs import replace
from opentelemetry.sdk.trace import TracerProvider
from prometheus_client.parser import text_string_to_metric_families

from seawall import (
    Annotations,
    ApprovalSettings,
    BatchRunner,
    BreakerPolicy,
    Failure,
    FailureCode,
    Metrics,
    Pipeline,
    Policies,
    Registry,
    Risk,
    RunPolicy,
    Session,
    Shared,
    Shortcuts,
    StoreUnavailable,
    Tool,
    ToolFailed,
    TraceRecorder,
    open_state,
)
from seawall.contract.optional_policies import (
    AdaptiveLimitPolicy,
    CachePolicy,
    FallbackPolicy,
    HedgePolicy,
    RetryBudgetPolicy,
)
from seawall.pipeline.recorder import Finished, ToolRecorder
from seawall.policy.build import BY_NAME
from seawall.recording.otel import OpenTelemetry
from seawall.recording.trace_file import TraceFile
from seawall.testing import Chaos

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tests.outages.postgres import FailingPostgres
    from tests.redis_servers import Server

    from seawall.contract.span import Span

SCHEMA = {
    "type": "object",
    "properties": {"n": {"type": "integer", "minimum": 0}},
    "required": ["n"],
}
WAITS = "waits-"
"""How the ids begin of calls that wait for a person."""

POLICY = RunPolicy(
    deadline_s=4.0,
    timeout_s=0.5,
    grace_s=0.2,
    max_retries=2,
    base_delay_s=0.01,
    max_delay_s=0.1,
    rate="3000/minute",
    breaker=BreakerPolicy(threshold=5, cooldown_s=0.5, max_cooldown_s=2.0),
    retry_budget=RetryBudgetPolicy(),
    max_concurrency=8,
    max_result_bytes=2_000,
    spill=True,
    on_store_down="fail-open",
)


class Held(NamedTuple):
    """What the process holds when nothing is under way."""

    memory_kb: int
    tasks: int
    threads: int
    descriptors: int


class Report(NamedTuple):
    """What came of it all."""

    seconds: float
    calls: int
    outcomes: Counter[str]
    held: list[Held]
    """After each cycle."""
    injected: Counter[str]
    outages: Counter[str]
    slowest_s: float
    faults: list[str]


class Listener:
    """Writes every span and every end of a call, as it hears of them."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("w", encoding="utf-8")

    def for_tool(self, tool: str) -> ToolRecorder:
        return ToolRecorder(on_attempt=self.attempt, on_call=self.call)

    def unknown(self) -> None:
        self._write({"call": None, "tool": "_OTHER", "outcome": "failed"})

    def attempt(self, span: Span) -> None:
        self._write({"span": [span.call_id, span.tool, span.attempt, span.outcome]})

    def call(self, call: Finished) -> None:
        self._write(
            {
                "call": call.call_id,
                "tool": call.tool,
                "outcome": call.outcome,
                "attempts": call.attempts,
            }
        )

    def _write(self, line: dict[str, Any]) -> None:
        self._file.write(f"{json.dumps(line)}\n")

    def flush(self) -> None:
        self._file.flush()

    def close(self) -> None:
        self._file.close()


class World:
    """The pipeline, its tools, and whoever calls them."""

    def __init__(self, postgres_url: str, redis_url: str, folder: Path) -> None:
        self.folder = folder
        self.chance = random.Random(11)
        self.chaos = Chaos(
            7, errors=0.06, crashes=0.03, hangs=0.01, latency=0.05, latency_s=(0.01, 0.2)
        )
        self.state = open_state(postgres_url, key=bytes(range(32)))
        self.shared = Shared(redis_url, replicas=2)
        self.listener = Listener(folder / "spans.jsonl")
        self.file = TraceFile(folder / "trace.jsonl")
        self.metrics = Metrics()
        self.pipeline = Pipeline(
            Registry(self._tools()),
            policies=self._policies(),
            layers=[*BY_NAME, self.chaos],
            approvals=ApprovalSettings(keep_read_s=1.0),
            trace=TraceRecorder(1_000),
            metrics=self.metrics,
            recorders=[
                self.listener,
                self.file,
                OpenTelemetry(tracer_provider=TracerProvider(shutdown_on_exit=False)),
            ],
            state=self.state,
            shared=self.shared,
        )
        self.shortcuts = Shortcuts(self.pipeline)
        self.pipeline.registry.register(BatchRunner(self.pipeline).tool)
        self.made: Counter[str] = Counter()
        """Calls by what whoever made them saw: an outcome, `cancelled`, a reason."""
        self.asked = array("L")
        """The numbers of all calls that were asked for one by one, of a known tool."""
        self.slowest_s = 0.0
        self.raised: Counter[str] = Counter()
        self._numbers = 0

    def _policies(self) -> Policies:
        reading = replace(
            POLICY,
            cache=CachePolicy(ttl_s=0.5, max_entries=50),
            hedge=HedgePolicy(delay_s=0.1),
            max_concurrency=None,
            adaptive_limit=AdaptiveLimitPolicy(),
            fallback=FallbackPolicy(tool="spare"),
        )
        return Policies(POLICY, tools={"read": reading})

    def _tools(self) -> list[Tool]:
        reads, changes = Annotations.for_reading(), Annotations.for_changing()

        def tool(name: str, run: Any, annotations: Annotations = reads, **more: Any) -> Tool:
            more.setdefault("input_schema", SCHEMA)
            return Tool(name=name, description=name, executor=run, annotations=annotations, **more)

        return [
            tool("read", self.read),
            tool("spare", self.spare),
            tool("in_a_thread", self.in_a_thread),
            tool("pay", self.pay, changes, risk=Risk.LOW),
            tool("delete", self.pay, changes, risk=Risk.HIGH),
            tool("says_much", self.says_much),
            tool("streams", self.streams),
            tool("lies", self.lies, output_schema={"type": "object", "required": ["a"]}),
            tool("refuses", self.refuses),
            tool("nested", self.nested),
            tool("one_by_one", self.read, exclusive="$n"),
        ]

    async def read(self, arguments: dict[str, Any], context: Any) -> str:
        await asyncio.sleep(self.chance.random() * 0.01)
        return f"read {arguments['n']}"

    async def spare(self, arguments: dict[str, Any], context: Any) -> str:
        return "from elsewhere"

    def in_a_thread(self, arguments: dict[str, Any], context: Any) -> str:
        time.sleep(0.002)
        return "done in a thread"

    async def pay(self, arguments: dict[str, Any], context: Any) -> str:
        await asyncio.sleep(0.002)
        return "paid"

    async def says_much(self, arguments: dict[str, Any], context: Any) -> str:
        return f"{arguments['n']} " * 2_000

    async def streams(self, arguments: dict[str, Any], context: Any) -> Any:
        for number in range(3):
            yield {"n": number}

    async def lies(self, arguments: dict[str, Any], context: Any) -> dict[str, Any]:
        return {"a": 1} if arguments["n"] % 2 else {"b": "\ud800"}

    async def refuses(self, arguments: dict[str, Any], context: Any) -> Any:
        raise ToolFailed(Failure(code=FailureCode.NOT_FOUND, message="no such thing"))

    async def nested(self, arguments: dict[str, Any], context: Any) -> str:
        found = await context.call_tool("read", {"n": arguments["n"]})
        return f"inside: {found.is_error}"

    def id(self) -> str:
        self._numbers += 1
        return f"c{self._numbers}"

    def arguments(self) -> Any:
        """What a model gives: mostly right, at times to be mended or refused."""
        n = self.chance.randrange(1_000)
        kinds: list[Any] = [{"n": n}] * 12
        return self.chance.choice([*kinds, f'{{"n": {n},}}', {"n": f"{n}"}, {"n": -1}, '{"n": '])

    async def one(self) -> str:
        name = self.chance.choice(
            [
                *("read", "spare", "in_a_thread", "pay", "says_much", "streams", "lies"),
                *("refuses", "nested", "one_by_one", "shortcut.look", "nobody_knows_me"),
            ]
        )
        call_id = self.id()
        if name != "nobody_knows_me":
            self.asked.append(self._numbers)
        result = await self.pipeline.call(name, self.arguments(), call_id=call_id)
        return "ok" if result.failure is None else result.failure.reason

    async def cancelled(self) -> str:
        call = asyncio.ensure_future(self.one())
        await asyncio.sleep(self.chance.random() * 0.02)
        call.cancel()
        try:
            return await call
        except asyncio.CancelledError:
            return "cancelled"

    async def turn(self) -> str:
        names = self.chance.choices(["read", "in_a_thread", "pay", "nested"], k=4)
        calls = [(name, self.arguments(), self.id()) for name in names]
        outcome = await self.pipeline.turn(calls, session=Session(self.id()))
        return f"turn {outcome.status}"

    async def batch(self) -> str:
        steps = [
            {"tool": "read", "arguments": {"n": self.chance.randrange(1_000)}},
            {"tool": "in_a_thread", "arguments": {"n": 1}},
        ]
        given = {"steps": steps}
        result = await self.pipeline.call("tool_batch_run", given, call_id=self.id())
        return "batch ok" if result.failure is None else f"batch {result.failure.reason}"

    async def approval(self) -> str:
        ids = (WAITS + self.id(), WAITS + self.id())
        calls = [("delete", {"n": 1}, ids[0]), ("read", {"n": 2}, ids[1])]
        outcome = await self.pipeline.turn(calls, session=Session(self.id()))
        if outcome.approval is None:
            return "approval not stored"
        await self.pipeline.approvals.approve(outcome.approval.id, by="ada")
        resumed = await self.pipeline.resume(outcome.approval.id)
        await self.pipeline.outcome(outcome.approval.id)
        return f"approval {resumed.status}"

    async def again(self, work: Callable[[], Awaitable[str]], until: float, pause_s: float) -> None:
        while time.monotonic() < until:
            begun = time.monotonic()
            try:
                said = await work()
            except StoreUnavailable:
                said = "StoreUnavailable"
            except Exception as error:  # noqa: BLE001  # what must not come is told
                self.raised[f"{work.__name__}: {error!r}"] += 1
                said = "raised"
            self.made[said] += 1
            if work == self.one:
                self.slowest_s = max(self.slowest_s, time.monotonic() - begun)
            await asyncio.sleep(pause_s)

    async def load(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        await asyncio.gather(
            *(self.again(self.one, until, 0.01) for _ in range(6)),
            *(self.again(self.cancelled, until, 0.05) for _ in range(2)),
            self.again(self.turn, until, 0.05),
            self.again(self.batch, until, 0.1),
            self.again(self.approval, until, 0.2),
        )

    async def rest(self) -> Held:
        """Wait until nothing is under way, and count what is held."""
        database, audit = self.state.database, self.pipeline._audit
        assert database is not None
        assert audit is not None
        end = time.monotonic() + 30
        while audit.queued or len(self.pipeline.approvals.arrears) or database._current().busy:
            assert time.monotonic() < end, "something does not end"
            await asyncio.sleep(0.05)
        await asyncio.sleep(0.5)  # timers of what was given up
        gc.collect()
        return Held(
            _memory_kb(),
            len(asyncio.all_tasks()),
            threading.active_count(),
            _descriptors(),
        )


def _descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def _memory_kb() -> int:
    pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    return pages * 4


class Outages:
    """What happens to the servers, one thing in each cycle."""

    def __init__(self, postgres: FailingPostgres, redis: Server) -> None:
        self._postgres = postgres
        self._redis = redis
        self.done: Counter[str] = Counter()
        self._kinds: list[Callable[[], None]] = [
            self.redis_stopped,
            self.postgres_stopped,
            self.nothing,
            self.postgres_paused,
            self.redis_paused,
            self.both_gone,
            self.postgres_killed,
            self.both_paused,
        ]

    @property
    def are_complete(self) -> bool:
        """Whether each kind was there."""
        return len(self.done) == len(self._kinds)

    def happen(self, cycle: int) -> None:
        kind = self._kinds[cycle % len(self._kinds)]
        kind()
        self.done[kind.__name__] += 1

    def nothing(self) -> None:
        pass

    def redis_stopped(self) -> None:
        self._redis.stop()
        time.sleep(1)
        self._redis.start()

    def redis_paused(self) -> None:
        self._redis.pause()
        time.sleep(1)
        self._redis.go_on()

    def postgres_stopped(self) -> None:
        self._postgres.stop()
        time.sleep(1)
        self._postgres.start()

    def postgres_killed(self) -> None:
        self._postgres.kill()
        time.sleep(0.5)
        self._postgres.start()

    def postgres_paused(self) -> None:
        self._postgres.pause()
        time.sleep(1.5)
        self._postgres.go_on()

    def both_gone(self) -> None:
        self._redis.stop()
        self._postgres.stop()
        time.sleep(1)
        self._postgres.start()
        self._redis.start()

    def both_paused(self) -> None:
        self._redis.pause()
        self._postgres.pause()
        time.sleep(1.5)
        self._redis.go_on()
        self._postgres.go_on()


async def soak(
    world: World,
    outages: Outages,
    seconds: float,
    cycle_s: float,
    say: Callable[[str], object] = lambda _: None,
) -> Report:
    """Run cycles until the time is over and all has happened once, then compare the books."""
    began = time.monotonic()
    held: list[Held] = []
    async with world.state, world.shared, world.pipeline:
        steps = [{"tool": "read", "arguments": {"n": "{n}"}}]
        params = [{"name": "n", "required": True}]
        definition = {"id": "shortcut.look", "name": "Look", "params": params, "steps": steps}
        await world.shortcuts.define(definition)
        while time.monotonic() - began < seconds or not outages.are_complete:
            failing = asyncio.ensure_future(_after(cycle_s * 0.25, outages, len(held)))
            await world.load(cycle_s)
            await failing
            held.append(await world.rest())
            say(f"{time.monotonic() - began:5.0f} s  {held[-1]}  {sum(world.made.values()):,} made")
        world.file.close()
        world.listener.close()
        faults = [f"raised: {said}" for said in world.raised]
        faults += await disagreements(world)
    faults += unsteady(held)
    calls = Counter({key: count for key, count in world.made.items() if count})
    return Report(
        time.monotonic() - began,
        sum(1 for _ in _lines(world, "call")),
        calls,
        held,
        world.chaos.injected,
        outages.done,
        world.slowest_s,
        faults,
    )


async def _after(seconds: float, outages: Outages, cycle: int) -> None:
    await asyncio.sleep(seconds)
    await asyncio.to_thread(outages.happen, cycle)


def _lines(world: World, kind: str) -> Any:
    with (world.folder / "spans.jsonl").open(encoding="utf-8") as file:
        for line in file:
            found = json.loads(line)
            if kind in found:
                yield found


async def disagreements(world: World) -> list[str]:
    """What one book has and another has not."""
    unknown = sum(1 for line in _lines(world, "call") if line["call"] is None)
    calls = Counter(
        (line["call"], line["tool"], line["outcome"])
        for line in _lines(world, "call")
        if line["call"] is not None
    )
    # One that waits for a person is refused first, and ends again when it is resumed.
    ends: Counter[str] = Counter()
    for (call_id, _, _), count in calls.items():
        ends[call_id] += count
    faults = [
        f"{call_id} ended {count} times"
        for call_id, count in ends.items()
        if count > (2 if call_id.startswith(WAITS) else 1)
    ]
    faults += await _against_audit(world, calls)
    faults += _against_metrics(world, calls, unknown)
    faults += _against_spans(world)
    asked = (f"c{number}" for number in world.asked)
    faults += [f"{one} was asked for and never ended" for one in asked if one not in ends]
    return faults


async def _against_audit(world: World, calls: Counter[Any]) -> list[str]:
    audited: Counter[Any] = Counter()
    async for record in world.state.audit.records():
        entry = json.loads(record.text)
        if entry["kind"] == "call":
            audited[entry["call_id"], entry["tool"], entry["outcome"]] += 1
        elif entry["kind"] == "gap":
            return [f"{entry['outcome']} entries of the audit log were lost"]
    report = await world.state.audit.verify()
    faults = [f"the audit log: {fault.said}" for fault in report.faults]
    faults += [f"the audit log lacks {call} ({n})" for call, n in (calls - audited).items()]
    faults += [f"the audit log alone has {call} ({n})" for call, n in (audited - calls).items()]
    return faults


def _against_metrics(world: World, calls: Counter[Any], unknown: int) -> list[str]:
    counted = Counter(
        {
            (sample.labels["tool"], sample.labels["outcome"]): int(sample.value)
            for family in text_string_to_metric_families(world.metrics.text().decode())
            for sample in family.samples
            if sample.name == "seawall_calls_total" and sample.value
        }
    )
    ours: Counter[Any] = Counter()
    for (_, tool, outcome), count in calls.items():
        ours[tool, outcome] += count
    others = sum(n for (tool, _), n in counted.items() if tool == "_OTHER")
    known = Counter({key: n for key, n in counted.items() if key[0] != "_OTHER"})
    faults = [] if others == unknown else [f"{others} unknown names counted, {unknown} heard of"]
    if known != ours:
        faults.append(f"metrics and listener differ: {known - ours}, {ours - known}")
    return faults


def _against_spans(world: World) -> list[str]:
    """Each call has a span; those of the file are those that the listener heard of."""
    heard = Counter(tuple(line["span"]) for line in _lines(world, "span"))
    filed: Counter[Any] = Counter()
    with (world.folder / "trace.jsonl").open(encoding="utf-8") as file:
        for line in map(json.loads, file):
            if "call_id" in line:
                filed[line["call_id"], line["tool"], line["attempt"], line["outcome"]] += 1
    faults = [] if heard == filed else [f"spans differ: {heard - filed}, {filed - heard}"]
    spans: Counter[str] = Counter()
    for (call_id, _, attempt, _), count in heard.items():
        spans[call_id] += count if attempt else 0
    with_span = {call_id for call_id, *_ in heard}
    attempts: Counter[str] = Counter()
    for line in _lines(world, "call"):
        if line["call"] is not None:
            attempts[line["call"]] += line["attempts"]
    faults += [f"{call_id} has no span" for call_id in attempts if call_id not in with_span]
    faults += [
        f"{call_id} has {spans[call_id]} spans of {count} attempts"
        for call_id, count in attempts.items()
        if spans[call_id] != count
    ]
    return faults


def unsteady(held: list[Held]) -> list[str]:
    """What grows: the last third against the second one, as the first is for warming up."""
    third = max(len(held) // 3, 1)
    before, after = held[third : 2 * third] or held[:1], held[-third:]
    room = {"memory_kb": 6_000, "tasks": 2, "threads": 8, "descriptors": 8}
    faults = []
    for name, most in room.items():
        first = max(getattr(one, name) for one in before)
        last = min(getattr(one, name) for one in after)
        if last > first + most:
            faults.append(f"{name} grows: {first:,}, then {last:,}")
    return faults


def shown(report: Report) -> str:
    """Say it for a person."""
    first, last = report.held[len(report.held) // 3], report.held[-1]
    lines = [
        f"{report.seconds:.0f} s, {report.calls:,} calls, slowest {report.slowest_s:.1f} s",
        f"asked for: {dict(report.outcomes.most_common())}",
        f"faults injected: {dict(report.injected)}; outages: {dict(report.outages)}",
        f"held after a third: {first}",
        f"held at the end:    {last}",
        *(f"FAULT {fault}" for fault in report.faults[:50]),
        f"{len(report.faults)} faults",
    ]
    return "\n".join(lines)
