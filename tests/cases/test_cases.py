"""What people reported about tools and the things around them, replayed through a whole pipeline.

A case says what is registered, what is called, and what has to hold. Its words are turned into
Seawall's here and nowhere else: `_policy` and `Script` read what is given, `World` plays the calls,
`Expectations` has one method for each thing that can be expected; a word that none of them knows
fails the case. Scripted tools run on a clock moved by hand; sync ones in real threads, in half the
time that the case says.
"""

from __future__ import annotations

import ast
import asyncio
import builtins
import contextlib
import copy
import json
import subprocess
import sys
import time
from email.utils import formatdate
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

from seawall import (
    AllowlistPolicy,
    Annotations,
    ApprovalConflict,
    ApprovalSettings,
    BreakerPolicy,
    ConfigurationError,
    FailureCode,
    HookContext,
    MemoryApprovals,
    Pipeline,
    Policies,
    Registry,
    Rewrite,
    Risk,
    RunPolicy,
    Session,
    Tool,
    ToolResult,
    TraceRecorder,
)
from seawall.layers.rate_limit.bucket import MemoryBuckets, TokenBucket
from seawall.layers.rate_limit.strategies import parse_rate
from seawall.layers.retry import Waits
from seawall.pipeline.chance import SystemChance
from seawall.pipeline.clock import Clock, SystemClock
from seawall.pipeline.digest import Digester
from seawall.testing import FakeClock, FixedChance

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Case = dict[str, Any]

CASES: list[Case] = json.loads((Path(__file__).parent / "cases.json").read_text("utf-8"))

LATER = {
    "name-export": "played in test_mcp_cases.py",
    "name-collision": "played in test_mcp_cases.py",
    "progress": "played in test_mcp_cases.py",
    "mcp-stdio": "played in test_mcp_cases.py",
    "mcp-http": "played in test_mcp_cases.py",
    "batch-order": "played in tests/orchestration/test_turn.py",
    "batch-duplicate-id": "played in tests/orchestration/test_turn.py",
    "batch-failure": "played in tests/orchestration/test_turn.py",
    "loop-repeat": "played in tests/orchestration/test_loop.py",
    "loop-false-positive": "played in tests/orchestration/test_loop.py",
    "gateway-disconnect": "played in tests/edges/gateway/test_calls.py",
}
"""Kinds that are not played here; with the reason, so that none is forgotten."""


def later(case: Case) -> str | None:
    """Why a case is not played yet."""
    given = case["given"]
    if "mcp_stdio" in given or "mcp_http" in given:
        return LATER["mcp-stdio"]
    if "gateway" in given:
        return LATER["gateway-disconnect"]
    if "backend" in given.get("policy", {}).get("limiter", {}):
        return "played with real servers, in test_shared_limiter.py"
    return LATER.get(case["kind"])


PLAYED = [case for case in CASES if later(case) is None]

OVERRULED: dict[str, dict[str, Any]] = {
    # A reference to nothing lets through nothing at its place, and spares the rest of the tool.
    "schema-ref-02": {"outcome": "invalid_arguments", "at": "/o", "others_usable": ["healthy"]},
}
"""What is expected here where the design decides against a case."""

REAL_TIME = 0.5
"""How much of a case's time passes where threads take part."""

HEAD, TAIL = "<head>", "<tail>"


# --- given: tools


class RetryAfter(Exception):  # noqa: N818  # the cases call it so
    """An error that says when to come back."""

    def __init__(self, retry_after: Any) -> None:
        super().__init__("busy")
        self.retry_after = retry_after


def error_named(said: str, wall: Callable[[], float]) -> BaseException:
    """The error that `TYPE`, `TYPE:message` or `RetryAfter:value` means."""
    name, _, message = said.partition(":")
    if name == "RetryAfter":
        if message.startswith("{http_date:"):
            return RetryAfter(formatdate(wall() + float(message[11:-1]), usegmt=True))
        return RetryAfter(float(message))
    kind = getattr(builtins, name, None) or type(name, (Exception,), {})
    made: BaseException = kind(message) if message else kind()
    return made


class Script:
    """A tool's body: what it does at each attempt, step by step; and what it has seen."""

    def __init__(self, attempts: list[list[str]], clock: Clock) -> None:
        self._attempts = attempts
        self._clock = clock
        self.received: list[Any] = []
        self.keys: list[tuple[str, str]] = []
        self.effects = 0
        self.crash: Callable[[], None] = lambda: None

    def _steps(self, arguments: Any) -> list[str]:
        self.received.append(copy.deepcopy(arguments))
        return self._attempts[min(len(self.received), len(self._attempts)) - 1]

    async def run(self, arguments: dict[str, Any], context: Any) -> Any:
        """Do one attempt."""
        steps = self._steps(arguments)
        try:
            for step in steps:
                if step.startswith("sleep:"):
                    await self._clock.sleep(float(step[6:]))
                elif step == "hang":
                    await self._clock.sleep(1e9)
                elif step == "crash_process":
                    self.crash()
                    await asyncio.Event().wait()
                elif (given := self._done(step, context)) is not None:
                    return given[0]
        finally:
            for step in steps:
                if step.startswith("finally:sleep:"):
                    await self._clock.sleep(float(step[14:]))
                elif step.startswith("finally:"):
                    self._done(step.removeprefix("finally:"), context)
        return None

    def run_sync(self, arguments: dict[str, Any], context: Any) -> Any:
        """Do one attempt in a thread, where time is real."""
        for step in self._steps(arguments):
            if step.startswith("sleep:"):
                time.sleep(float(step[6:]) * REAL_TIME)
            elif (given := self._done(step, context)) is not None:
                return given[0]
        return None

    def _done(self, step: str, context: Any) -> tuple[Any] | None:
        """Do a step that takes no time; in a tuple, what the attempt gives."""
        word, _, rest = step.partition(":")
        if word == "effect":
            self.effects += 1
        elif word == "record_key":
            self.keys.append((context.call_id, context.idempotency_key))
        elif word == "raise":
            raise error_named(rest, self._clock.wall)
        elif word == "raise_text":
            raise RuntimeError("x" * int(rest))
        elif word == "raise_group":
            inner = error_named(rest.strip("[]"), self._clock.wall)
            assert isinstance(inner, Exception)
            raise ExceptionGroup("outer", [ExceptionGroup("inner", [inner])])
        elif word.startswith("return"):
            return (_value(word, rest),)
        return None


def _value(word: str, rest: str) -> Any:
    if word == "return_text":
        return HEAD + "x" * (int(rest) - len(HEAD) - len(TAIL)) + TAIL
    if word == "return_py":
        return eval(rest, {})
    try:
        return ast.literal_eval(rest)
    except (ValueError, SyntaxError):
        return rest


# --- given: policies


def _policy(said: dict[str, Any], scale: float) -> RunPolicy:
    """The run policy that a case's settings mean."""
    names = {
        "timeout_s": "timeout_s",
        "deadline_s": "deadline_s",
        "cancel_grace_s": "grace_s",
        "backoff_base_s": "base_delay_s",
        "backoff_cap_s": "max_delay_s",
        "retry_after_cap_s": "max_delay_s",
    }
    found: dict[str, Any] = {
        names[key]: value * scale for key, value in said.items() if key in names
    }
    found["max_retries"] = said.get("max_attempts", 1) - 1
    for key, name in (("max_result_bytes", "max_result_bytes"), ("sync_workers", "max_threads")):
        if key in said:
            found[name] = said[key]
    if "limiter" in said:
        found["rate"] = _rate(said["limiter"])
    if "breaker" in said:
        found["breaker"] = _breaker(said["breaker"])
    return RunPolicy(**found)


def _rate(said: dict[str, Any]) -> str:
    return f"{said['capacity']} per {round(said['capacity'] / said['refill_per_s'])} second"


def _breaker(said: dict[str, Any]) -> BreakerPolicy:
    cooldown_s = said.get("recovery_s", 15)
    return BreakerPolicy(
        threshold=said["failure_threshold"],
        cooldown_s=cooldown_s,
        max_cooldown_s=cooldown_s,  # the cases know of no cooldown that grows
        ignore=tuple(said.get("ignore", ())),
        permits=said.get("half_open_max", 1),
        shared="all" if said.get("scope") == "shared" else None,
    )


def _lists(given: dict[str, Any], names: list[str]) -> AllowlistPolicy | None:
    """Tools that a policy withholds, or that need a person's word."""
    hidden = [*given.get("hidden", []), *given.get("policy", {}).get("deny", [])]
    ask = given.get("policy", {}).get("approval_required", [])
    if not hidden and not ask:
        return None
    return AllowlistPolicy([name for name in names if name not in (*hidden, *ask)], ask, hidden)


# --- given: approvals


class Mortal:
    """A store as one process has it: when that has crashed, it writes nothing more."""

    def __init__(self, store: MemoryApprovals) -> None:
        self._store = store
        self.is_dead = False

    def __getattr__(self, name: str) -> Any:
        if self.is_dead:
            raise ConnectionError("this process is gone")
        return getattr(self._store, name)


class SetForce:
    """A hook of a case: it adds to what the model asked for."""

    def before(self, context: HookContext) -> Rewrite:
        return Rewrite({**context.arguments, "force": True})


# --- the call


class World:
    """A pipeline as a case gives it, and what came of the calls."""

    def __init__(self, case: Case) -> None:
        given = case["given"]
        self.case = case
        tools = _tools(given)
        self.real = any(tool.get("sync") for tool in tools)
        self.scale = REAL_TIME if self.real else 1.0
        self.clock: Any = SystemClock() if self.real else FakeClock()
        self.scripts: dict[str, Script] = {}
        self.registry = Registry()
        for tool in tools:
            self.registry.register(self._tool(tool), on_invalid="quarantine")
        self.waits = case["kind"].startswith("approval-")
        self.store = MemoryApprovals()
        self.pipeline = self._pipeline()
        self.approvals: dict[str, str] = {}
        self.pending: dict[str, int] = {}
        self.shown: list[Any] = []
        self.results: dict[str, ToolResult | str] = {}
        self.groups: dict[str, list[ToolResult]] = {}
        self.elapsed: dict[str, float] = {}
        self.circuits: dict[str, str] = {}
        self.took_s = 0.0
        self.scraped = ""
        self._calls: dict[str, asyncio.Task[Any]] = {}
        self._begun = self.clock.now()

    def _pipeline(self) -> Pipeline:
        """What one process has: after a restart, another one."""
        policy = self.case["given"].get("policy", {})
        self.process = Mortal(self.store)
        settings = ApprovalSettings(
            store=cast("Any", self.process),
            expires_after_s=policy.get("approval_ttl_s", 3_600),
            lease_s=1,
        )
        return Pipeline(
            self.registry,
            policies=Policies(default=_policy(policy, self.scale)),
            risk=_lists(self.case["given"], list(self.registry.names())),
            hooks=[cast("Any", SetForce())] if policy.get("hook") == "set force=true" else (),
            approvals=settings if self.waits else None,
            clock=self.clock,
            chance=FixedChance(),
            trace=TraceRecorder(policy.get("trace_max_entries", 300)),
        )

    def _tool(self, said: dict[str, Any]) -> Tool:
        script = Script(said.get("script", [["return:done"]]), self.clock)
        script.crash = lambda: setattr(self.process, "is_dead", True)
        self.scripts[said["name"]] = script
        return Tool(
            name=said["name"],
            description="A tool of a case.",
            input_schema=said.get("schema", {"type": "object"}),
            executor=script.run_sync if said.get("sync") else script.run,
            annotations=Annotations(read_only=said.get("retry_safe") or None),
            risk=Risk.parse(said["risk"]) if "risk" in said else None,
        )

    @property
    def now(self) -> float:
        found: float = (self.clock.now() - self._begun) / self.scale
        return found

    async def _until(self, at: float) -> None:
        if self.real:
            await asyncio.sleep(max(at - self.now, 0) * self.scale)
        else:
            await self.clock.advance(at - self.now)

    async def play(self) -> None:
        """Make the calls, and wait for them all."""
        begun = time.perf_counter()
        call = self.case["call"]
        if "timeline" in call:
            for event in call["timeline"]:
                await self._until(event.get("at", self.now))
                await getattr(self, f"do_{event['do']}")(event)
                await self._until(self.now)
                self.circuits[f"{event.get('at', 0):g}"] = self._circuit()
        else:
            await self._one(call)
        whole = asyncio.gather(*self._calls.values(), return_exceptions=True)
        await (whole if self.real else self.clock.run(whole))
        self.took_s = time.perf_counter() - begun

    async def _one(self, call: dict[str, Any]) -> None:
        name = call.get("name", "")
        if "name_gen" in call:
            name = call["name_gen"]["unit"] * call["name_gen"]["times"]
        arguments = call.get("arguments_text", call.get("arguments"))
        if made := call.get("arguments_text_gen"):
            arguments = made["open"] * made["times"] + made["core"] + made["close"] * made["times"]
        self._start("", name, arguments)

    def _start(self, label: str, name: str, arguments: Any, **options: Any) -> None:
        async def work() -> None:
            begun = self.now
            try:
                self.results[label] = await self.pipeline.call(name, arguments, **options)
            except asyncio.CancelledError:
                self.results[label] = "cancelled"
            self.elapsed[label] = self.now - begun

        self._calls[label or f"call {len(self._calls)}"] = asyncio.ensure_future(work())

    def _named(self, event: dict[str, Any]) -> str:
        return str(event.get("tool") or next(iter(self.scripts)))

    def _circuit(self) -> str:
        snapshot = self.pipeline.breakers.snapshot()
        return next(iter(snapshot.values()), "closed")

    async def do_call(self, event: dict[str, Any]) -> None:
        options = {"timeout_s": event["timeout_s"] * self.scale} if "timeout_s" in event else {}
        label = event.get("as", f"at {event['at']}")
        self._start(label, self._named(event), event.get("args"), call_id=label, **options)

    async def do_list_pending(self, event: dict[str, Any]) -> None:
        found = await self.pipeline.approvals.list()
        self.pending[f"{event['at']:g}"] = len(found)

    async def do_approve(self, event: dict[str, Any]) -> None:
        target = event["target"]
        result = self.results[target]
        assert isinstance(result, ToolResult)
        assert result.metadata is not None
        approval_id = self.approvals[target] = result.metadata["approval_id"]
        batch = await self.pipeline.approvals.show(approval_id)
        self.shown += [json.loads(one.arguments) for one in batch.approvals]
        with contextlib.suppress(ApprovalConflict):
            await self.pipeline.approvals.approve(approval_id, by="a person")
        resumed = [one for one in self.case["call"]["timeline"] if one["do"] == "resume"]
        if not resumed:
            # Some products run at once what was approved: here whoever waits resumes it.
            await self.do_resume({"target": target})

    async def do_resume(self, event: dict[str, Any]) -> None:
        label = event.get("as", f"resumed {event['target']}")
        pipeline, approval_id = self.pipeline, self.approvals[event["target"]]

        async def work() -> None:
            outcome = await pipeline.resume(approval_id, arguments=event.get("with_args"))
            (self.results[label],) = outcome.results

        self._calls[label] = asyncio.ensure_future(work())

    async def do_restart(self, event: dict[str, Any]) -> None:
        self.process.is_dead = True
        for call in self._calls.values():
            call.cancel()
        self.pipeline = self._pipeline()

    async def do_withdraw_tool(self, event: dict[str, Any]) -> None:
        self.registry.unregister(self._named(event))

    async def do_call_many(self, event: dict[str, Any]) -> None:
        name, arguments = self._named(event), event.get("args")
        group = self.groups.setdefault(event.get("as", ""), [])

        async def one() -> None:
            group.append(await self.pipeline.call(name, arguments))

        async def one_by_one() -> None:
            for _ in range(event["count"]):
                await one()

        if event.get("concurrent"):
            work = asyncio.gather(*(one() for _ in range(event["count"])))
            self._calls[f"many {event['at']}"] = asyncio.ensure_future(work)
        else:
            await self.clock.run(one_by_one())

    async def do_cancel(self, event: dict[str, Any]) -> None:
        self._calls[event["target"]].cancel()

    async def do_observe(self, event: dict[str, Any]) -> None:
        """Look at the circuit, as is done after every event."""

    async def do_acquire_many(self, event: dict[str, Any]) -> None:
        await self.do_call_many({**event, "tool": "t"})

    async def do_acquire(self, event: dict[str, Any]) -> None:
        if "clock_reads" in event:
            self.clock._now = event["clock_reads"]
        await self.do_acquire_many({**event, "count": 1})

    async def do_clock_step(self, event: dict[str, Any]) -> None:
        self.clock.step_wall(event["by"])

    async def do_call_unknown_names(self, event: dict[str, Any]) -> None:
        for number in range(event["distinct"]):
            await self.pipeline.call(f"made_up_{number}")

    async def do_calls_from_tenants(self, event: dict[str, Any]) -> None:
        for number in range(event["distinct"]):
            session = Session(f"tenant-{number}", caller=f"tenant-{number}")
            await self.pipeline.call(self._named(event), session=session)

    async def do_scrape(self, event: dict[str, Any]) -> None:
        self.scraped = self.pipeline.metrics.text().decode()


def _tools(given: dict[str, Any]) -> list[dict[str, Any]]:
    """What is registered, as a list of tools with names."""
    if made := given.get("registry_gen"):
        return [{"name": made["pattern"].format(i=i)} for i in range(made["count"])]
    if "registry" in given:
        return [{"name": name} for name in (*given["registry"], *given.get("hidden", ()))]
    tools = given.get("tools", [given.get("tool", {})])
    if isinstance(tools, dict):
        return [{"name": name, **tool} for name, tool in tools.items()]
    return [{"name": "t", **tool} for tool in tools]


# --- expect

WORDS = {
    "invalid_arguments": FailureCode.INVALID_ARGUMENT,
    "invalid_call": FailureCode.INVALID_ARGUMENT,
    "circuit_open": FailureCode.CIRCUIT_OPEN,
}
REASONS = {
    "unknown_tool": ("tool_not_found",),
    "tool_not_permitted": ("denied_by_policy", "tool_not_found"),
    "timeout": ("attempt_timeout",),
    "deadline_exceeded": ("deadline_exceeded",),
    "tool_error": ("tool_failed", "tool_timeout"),
    "transport_error": ("transport",),
    "rejected": ("rate_limited",),
    "overloaded": ("overloaded",),
    "config_error": ("tool_quarantined",),
    "denied": ("denied_by_policy",),
    "interrupted": ("outcome_unknown",),
    "may_have_run": ("outcome_unknown",),
    "needs_review": ("outcome_unknown",),
    **{
        name: (name,)
        for name in (
            "approval_required",
            "approval_denied",
            "approval_expired",
            "approval_mismatch",
        )
    },
}


def is_outcome(word: str, result: ToolResult | str) -> bool:
    """Whether a call ended as a case's word says."""
    if isinstance(result, str):
        return result == word
    failure = result.failure
    if failure is None:
        return word == "ok"
    return failure.code is WORDS.get(word) or failure.reason in REASONS.get(word, ())


class Expectations:
    """One method for each thing that a case may expect; each says whether it holds."""

    def __init__(self, world: World, log: str) -> None:
        self.world = world
        self.log = log

    def hold(self, expect: dict[str, Any]) -> Iterator[str]:
        """Name what does not hold."""
        for key, value in expect.items():
            if key == "any_of":
                if all([*self.hold(one)] for one in value):
                    yield f"none of {value}"
            elif key not in ("note", "no_exception") and not getattr(self, key)(value):
                yield f"{key}: {value}"

    @property
    def result(self) -> ToolResult:
        found = next(iter(self.world.results.values()))
        assert isinstance(found, ToolResult)
        return found

    @property
    def received(self) -> list[Any]:
        return [one for script in self.world.scripts.values() for one in script.received]

    def of(self, label: str) -> ToolResult:
        found = self.world.results[label]
        assert isinstance(found, ToolResult)
        return found

    def outcome(self, word: str) -> bool:
        return is_outcome(word, self.result)

    def outcome_any(self, words: list[str]) -> bool:
        return any(map(self.outcome, words))

    def outcomes(self, words: dict[str, str]) -> bool:
        return all(is_outcome(word, self.world.results[label]) for label, word in words.items())

    def outcomes_any(self, words: dict[str, list[str]]) -> bool:
        results = self.world.results
        return all(
            any(is_outcome(word, results[label]) for word in some) for label, some in words.items()
        )

    def pending_at(self, numbers: dict[str, int]) -> bool:
        return self.world.pending == numbers

    def approval_equals_executed(self, wanted: bool) -> bool:
        return (self.world.shown == self.received != []) is wanted

    def count(self, counts: dict[str, dict[str, int]]) -> bool:
        return all(
            sum(is_outcome(word, result) for result in self.world.groups[label]) == number
            for label, numbers in counts.items()
            for word, number in numbers.items()
        )

    def args(self, value: Any) -> bool:
        return bool(self.received == [value])

    def args_json(self, text: str) -> bool:
        return self.args(json.loads(text))

    def never_args(self, values: list[Any]) -> bool:
        return all(value not in self.received for value in values)

    def types(self, kinds: dict[str, str]) -> bool:
        (arguments,) = self.received
        return all(type(arguments[path[1:]]).__name__ == kind for path, kind in kinds.items())

    def at(self, path: str) -> bool:
        failure = self.result.failure
        return failure is not None and path in [issue.path for issue in failure.issues]

    def executions(self, number: int) -> bool:
        return len(self.received) == number

    def effects(self, number: int) -> bool:
        return sum(script.effects for script in self.world.scripts.values()) == number

    def effects_after_s(self, wanted: dict[str, Any]) -> bool:
        return self.effects(wanted["count"])

    def may_have_run(self, wanted: dict[str, bool]) -> bool:
        failures = {label: self.of(label).failure for label in wanted}
        return all(
            failure is not None and failure.may_have_run is wanted[label]
            for label, failure in failures.items()
        )

    def elapsed_max_s(self, bounds: dict[str, float]) -> bool:
        return all(self.world.elapsed[label] <= bound for label, bound in bounds.items())

    def elapsed_min_s(self, bounds: dict[str, float]) -> bool:
        return all(self.world.elapsed[label] >= bound for label, bound in bounds.items())

    def max_seconds(self, bound: float) -> bool:
        return self.world.took_s <= bound

    def message_mentions(self, words: list[str]) -> bool:
        return all(word in self.result.render() for word in words)

    def message_mentions_any(self, words: list[str]) -> bool:
        said = self.result.render().lower()
        return any(word in said for word in words)

    def max_message_bytes(self, bound: int) -> bool:
        return len(self.result.render().encode()) <= bound

    def error_mentions(self, words: dict[str, str]) -> bool:
        return all(word in self.of(label).render() for label, word in words.items())

    def error_bytes_max(self, bound: int) -> bool:
        return self.max_message_bytes(bound)

    def suggest_any(self, names: list[str]) -> bool:
        return bool(set(self._hints()) & set(names))

    def first(self, name: str) -> bool:
        return self._hints()[:1] == (name,)

    def suggestions(self, word: str) -> bool:
        return word == "free" or not self._hints()

    def allowed_suggestions(self, names: list[str]) -> bool:
        return set(self._hints()) <= set(names)

    def _hints(self) -> tuple[str, ...]:
        failure = self.result.failure
        assert failure is not None
        return failure.hints

    def quarantined(self, names: list[str]) -> bool:
        return list(self.world.registry.quarantined()) == names

    def others_usable(self, names: list[str]) -> bool:
        return all(
            not asyncio.run(World(self.world.case).pipeline.call(name, {"q": "x"})).is_error
            for name in names
        )

    def breaker(self, states: dict[str, str]) -> bool:
        return all(self.world.circuits[at] == state for at, state in states.items())

    def breaker_stats(self, wanted: dict[str, int]) -> bool:
        counts = self.world.pipeline.breakers.circuit("t").counts
        return all(getattr(counts, key) == number for key, number in wanted.items())

    def granted(self, wanted: dict[str, int]) -> bool:
        return all(
            sum(not result.is_error for result in self.world.groups[label]) == number
            for label, number in wanted.items()
        )

    def keys_equal(self, pairs: list[list[str]]) -> bool:
        return all(self._key(one) == self._key(other) for one, other in pairs)

    def keys_differ(self, pairs: list[list[str]]) -> bool:
        return all(self._key(one) != self._key(other) for one, other in pairs)

    def _key(self, said: str) -> str:
        label, _, attempt = said.partition("#")
        keys = [key for call, key in self.world.scripts["t"].keys if call == label]
        return keys[int(attempt) - 1]

    def result_bytes_max(self, bound: int) -> bool:
        return len(self.result.text.encode()) <= bound

    def result_has_marker(self, wanted: bool) -> bool:
        return ("left out" in self.result.text or "cut" in self.result.text) is wanted

    def valid_utf8(self, wanted: bool) -> bool:
        return self.result.text.encode().decode() == self.result.text

    def keeps_head(self, wanted: bool) -> bool:
        return self.result.text.startswith(HEAD) is wanted

    def keeps_tail(self, wanted: bool) -> bool:
        return self.result.text.rstrip().endswith(TAIL) is wanted

    def result_is_strict_json(self, wanted: bool) -> bool:
        json.dumps(self.result.structured_content, allow_nan=False)
        json.loads(self.result.text, parse_constant=pytest.fail)
        return wanted

    def result_digits(self, digits: str) -> bool:
        return digits in self.result.text

    def digest_produced(self, wanted: bool) -> bool:
        return all((span.digest is not None) is wanted for span in self._spans())

    def trace_entries_max(self, bound: int) -> bool:
        return len(self._spans()) <= bound

    def trace_dropped(self, number: int) -> bool:
        return self.world.pipeline.trace.dropped == number

    def _spans(self) -> Any:
        return self.world.pipeline.trace.spans()

    def absent_everywhere(self, secrets: list[str]) -> bool:
        pipeline = self.world.pipeline
        said = [
            *(self.log, pipeline.trace.export_json(), pipeline.trace.report()),
            *(pipeline.usage.report(), pipeline.metrics.text().decode(), self.result.render()),
        ]
        return not any(secret in text for secret in secrets for text in said)

    def absent_in(self, secrets: dict[str, list[str]]) -> bool:
        said = {"log": self.log, "trace": self.world.pipeline.trace.export_json()}
        return not any(word in said[place] for place, words in secrets.items() for word in words)

    def series_max(self, bound: int) -> bool:
        return len(self._series()) <= bound

    def label_values_max(self, bounds: dict[str, int]) -> bool:
        return all(
            len({line.partition(f'{label}="')[2].partition('"')[0] for line in self._series()})
            <= bound
            for label, bound in bounds.items()
        )

    def label_names_never(self, names: list[str]) -> bool:
        return bool(self._series()) and not any(
            f'{name}="' in line for name in names for line in self._series()
        )

    def _series(self) -> list[str]:
        return [line for line in self.world.scraped.splitlines() if not line.startswith("#")]


# --- the tests

SPECIAL = ("sample_backoff", "digest", "digest_py", "identity_key")

CALLS = [
    case
    for case in PLAYED
    if case["call"].get("do") not in SPECIAL
    and case["id"] not in ("limiter-burst-03", "limiter-keys-01")
]


@pytest.mark.parametrize("case", CALLS, ids=[case["id"] for case in CALLS])
async def test_a_reported_case_ends_well(case: Case, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    expect = OVERRULED[case["id"]] if case["id"] in OVERRULED else case["expect"]
    world = World(case)

    await world.play()
    if "effects_after_s" in expect:
        await world._until(expect["effects_after_s"]["at"])

    found = Expectations(world, caplog.text)
    assert await asyncio.to_thread(lambda: [*found.hold(expect)]) == []
    await world.pipeline.aclose()


def _case(name: str) -> Case:
    return next(case for case in PLAYED if case["id"] == name)


def test_sampled_waits_are_spread_as_full_jitter_is() -> None:
    case = _case("retry-policy-11")
    given, expect = case["given"]["policy"], case["expect"]
    policy = RunPolicy(base_delay_s=given["backoff_base_s"], max_delay_s=given["backoff_cap_s"])
    waits = Waits(policy, SystemChance(seed=1))

    # The case counts from 1, so does not the exponent.
    drawn = [waits.draw(case["call"]["retry_index"] - 1) for _ in range(case["call"]["count"])]

    assert expect["min"] <= min(drawn) <= max(drawn) <= expect["max"]
    low, high = expect["mean_between"]
    assert low <= sum(drawn) / len(drawn) <= high
    assert len(set(drawn)) >= expect["distinct_min"]


@pytest.mark.parametrize("name", ["trace-digest-01", "trace-digest-06"])
def test_digests_tell_arguments_and_tools_apart(name: str) -> None:
    case, digester = _case(name), Digester()
    calls = case["call"].get("calls") or [
        {"name": "t", "arguments": value} for value in case["call"]["values"]
    ]
    macs = [digester.of(call["name"], call["arguments"]).mac for call in calls]

    expect = case["expect"]
    assert all(macs[one] == macs[other] for one, other in expect.get("equal", ()))
    assert all(macs[one] != macs[other] for one, other in expect["distinct"])
    assert 4 * len(macs[0]) >= expect.get("bits_min", 0)


def test_a_digest_of_odd_values_is_the_same_in_every_run() -> None:
    case = _case("trace-digest-04")
    (value,) = case["call"]["values"]
    program = (
        f"from seawall.pipeline.digest import Digester; print(Digester(b'k').of('t', {value}))"
    )

    runs = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONHASHSEED": str(seed)},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for seed in range(case["call"]["runs"])
    }

    assert len(runs) == 1


def test_a_cost_that_no_bucket_can_ever_hold_is_told_at_once() -> None:
    case = _case("limiter-burst-03")
    cost = case["call"]["timeline"][0]["cost"]
    policy = RunPolicy(rate=_rate(case["given"]["policy"]["limiter"]), cost=cost)

    with pytest.raises(ConfigurationError, match="cost"):
        Pipeline([_nothing], policies=Policies(default=policy))


def _nothing() -> None:
    """Do nothing."""


def test_keys_are_bounded_and_forgotten_when_they_are_full() -> None:
    case = _case("limiter-keys-01")
    limiter, (many, one, _) = case["given"]["policy"]["limiter"], case["call"]["timeline"]
    clock = FakeClock()
    buckets = TokenBucket(MemoryBuckets(limiter["max_keys"]), clock.now)
    rate = parse_rate(_rate(limiter))

    most = 0
    for number in range(many["distinct"]):
        buckets.take(rate, f"key-{number}")
        most = max(most, buckets.tracked) if number % 1000 == 0 else most
    clock._now = one["at"]
    buckets.take(rate, one["key"])

    assert most <= case["expect"]["tracked_keys_max"]
    assert buckets.tracked <= case["expect"]["tracked_keys_at"]["100"]["max"]


def test_every_case_is_played_or_waits_for_something_named() -> None:
    special = [case for case in PLAYED if case not in CALLS]

    assert len(CASES) == len(CALLS) + len(special) + sum(later(case) is not None for case in CASES)
    assert len(CALLS) + len(special) >= 140
    assert {case["kind"] for case in CASES if later(case)} >= LATER.keys()
