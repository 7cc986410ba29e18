"""Turns: two orders, one result for each call, and what happens when one of them goes wrong."""

from __future__ import annotations

import asyncio
import json
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from seawall import (
    Answer,
    ConfigurationError,
    FailureCode,
    LoopPolicy,
    Pipeline,
    Policies,
    Risk,
    RunPolicy,
    Session,
    Tool,
    ToolCall,
    ToolResult,
    TurnEvent,
    TurnStatus,
)
from seawall.orchestration.turn import MAX_CALLS
from seawall.pipeline.recorder import ToolRecorder
from seawall.testing import FakeClock, scripted

CASES = {
    case["id"]: case
    for case in json.loads((Path(__file__).parents[1] / "cases" / "turns.json").read_text())
}

ANY = {"type": "object"}


def slow_and_fast(clock: FakeClock, **fields: Any) -> list[Tool]:
    return [
        scripted(("sleep", 0.3, "slow"), clock=clock, name="slow", **fields),
        scripted(("sleep", 0.05, "fast"), clock=clock, name="fast"),
    ]


def reasons(results: tuple[ToolResult, ...]) -> list[str]:
    return [result.failure.reason if result.failure else "ok" for result in results]


class Told:
    """Events of a turn, shortened."""

    def __init__(self) -> None:
        self.events: list[TurnEvent] = []

    def __call__(self, event: TurnEvent) -> None:
        self.events.append(event)

    def of(self, kind: str) -> list[str]:
        return [event.call_id for event in self.events if event.kind == kind]


# Order.


async def test_ends_come_as_they_happen_and_results_in_the_order_of_the_calls() -> None:
    clock, told = FakeClock(), Told()
    pipeline = Pipeline(slow_and_fast(clock), clock=clock)

    outcome = await clock.run(pipeline.turn([("slow", {}, "1"), ("fast", {}, "2")], on_event=told))

    assert [(event.kind, event.call_id) for event in told.events] == [
        ("start", "1"),
        ("start", "2"),
        ("end", "2"),
        ("end", "1"),
    ]
    assert [result.text for result in outcome.results] == ["slow", "fast"]
    assert clock.now() == pytest.approx(0.3)
    assert outcome.status is TurnStatus.DONE


@pytest.mark.parametrize("by_tool", [True, False])
async def test_one_sequential_tool_or_the_caller_makes_the_whole_turn_sequential(
    by_tool: bool,
) -> None:
    clock, told = FakeClock(), Told()
    tools = slow_and_fast(clock, execution="sequential" if by_tool else "parallel")
    pipeline = Pipeline(tools, clock=clock)

    await clock.run(
        pipeline.turn(
            [("fast", {}, "1"), ("slow", {}, "2"), ("fast", {}, "3")],
            execution="parallel" if by_tool else "sequential",
            on_event=told,
        )
    )

    assert told.of("end") == ["1", "2", "3"]
    assert clock.now() == pytest.approx(0.4)


async def test_a_sequential_tool_that_is_not_called_does_not_matter() -> None:
    clock = FakeClock()
    pipeline = Pipeline(slow_and_fast(clock, execution="sequential"), clock=clock)

    await clock.run(pipeline.turn([("fast", {"n": 1}), ("fast", {"n": 2})]))

    assert clock.now() == pytest.approx(0.05)


async def test_nothing_runs_before_all_have_passed_their_gates_in_order() -> None:
    clock = FakeClock()
    log: list[str] = []

    async def confirm(prepared: Any, decision: Any) -> Answer:
        log.append(f"ask {prepared.call_id}")
        await clock.sleep(60)
        return Answer.ALLOW_ONCE

    async def execute(arguments: dict[str, Any], context: Any) -> str:
        log.append(f"run {context.call_id}")
        return "done"

    tools = [
        Tool("calm", "", ANY, execute),
        Tool("wild", "", ANY, execute, risk=Risk.HIGH),
    ]
    pipeline = Pipeline(tools, clock=clock, confirm=confirm)

    outcome = await clock.run(
        pipeline.turn([("calm", {}, "1"), ("wild", {"n": 1}, "2"), ("wild", {"n": 2}, "3")])
    )

    assert log == ["ask 2", "ask 3", "run 1", "run 2", "run 3"]
    assert reasons(outcome.results) == ["ok", "ok", "ok"]


async def test_the_time_in_which_a_call_waits_for_the_gates_of_others_is_not_its_own() -> None:
    clock = FakeClock()

    async def confirm(prepared: Any, decision: Any) -> bool:
        await clock.sleep(60)
        return True

    tools = [
        scripted(("sleep", 3, "done"), clock=clock, name="calm"),
        scripted("done", clock=clock, name="wild", risk=Risk.HIGH),
        scripted(("sleep", 9, "done"), clock=clock, name="late"),
    ]
    policies = Policies(
        default=RunPolicy(), tools={name: RunPolicy(deadline_s=5) for name in ("calm", "late")}
    )
    pipeline = Pipeline(tools, clock=clock, confirm=confirm, policies=policies)

    outcome = await clock.run(pipeline.turn([("calm", {}), ("late", {}), ("wild", {})]))

    assert reasons(outcome.results) == ["ok", "deadline_exceeded", "ok"]
    assert clock.now() == pytest.approx(65)


async def test_a_call_refused_by_a_gate_ends_before_anything_runs() -> None:
    clock, told = FakeClock(), Told()
    tools = [*slow_and_fast(clock), scripted("x", clock=clock, name="wild", risk=Risk.HIGH)]
    pipeline = Pipeline(tools, clock=clock)

    outcome = await clock.run(
        pipeline.turn([("fast", {}, "1"), ("wild", {}, "2"), ("slow", {}, "3")], on_event=told)
    )

    assert told.of("end") == ["2", "1", "3"]
    assert reasons(outcome.results) == ["ok", "approval_required", "ok"]
    assert outcome.approval is None


@pytest.mark.parametrize(("width", "seconds"), [(1, 5), (2, 3), (5, 1), (16, 1)])
async def test_so_many_run_at_once(width: int, seconds: float) -> None:
    clock = FakeClock()
    most = running = 0

    async def execute(arguments: dict[str, Any], context: Any) -> int:
        nonlocal most, running
        running += 1
        most = max(most, running)
        await clock.sleep(1)
        running -= 1
        return arguments["n"]  # type: ignore[no-any-return]  # as it was given

    pipeline = Pipeline([Tool("t", "", ANY, execute)], clock=clock, max_turn_width=width)

    outcome = await clock.run(pipeline.turn([("t", {"n": n}) for n in range(5)]))

    assert most == min(width, 5)
    assert clock.now() == pytest.approx(seconds)
    assert [result.text for result in outcome.results] == ["0", "1", "2", "3", "4"]


@pytest.mark.parametrize("width", [0, -1, 1.5, True, None])
def test_a_width_that_lets_nothing_through_is_refused(width: Any) -> None:
    with pytest.raises(ConfigurationError, match="max_turn_width"):
        Pipeline([scripted("x", clock=FakeClock())], max_turn_width=width)


async def test_a_tool_that_calls_tools_needs_no_place_for_them() -> None:
    clock = FakeClock()

    async def outer(arguments: dict[str, Any], context: Any) -> str:
        return (await context.call_tool("fast", arguments)).text  # type: ignore[no-any-return]  # text

    tools = [*slow_and_fast(clock), Tool("outer", "", ANY, outer)]
    pipeline = Pipeline(tools, clock=clock, max_turn_width=1)

    outcome = await clock.run(pipeline.turn([("outer", {"n": 1}), ("outer", {"n": 2})]))

    assert [result.text for result in outcome.results] == ["fast", "fast"]


# One result for each call.


async def test_an_empty_turn_is_done() -> None:
    pipeline = Pipeline([scripted("x", clock=FakeClock())])

    outcome = await pipeline.turn([])

    assert outcome.results == ()
    assert outcome.status is TurnStatus.DONE


async def test_calls_of_one_turn_share_its_id_and_no_other() -> None:
    seen: list[str | None] = []

    async def execute(arguments: dict[str, Any], context: Any) -> None:
        seen.append(context.batch_id)

    pipeline = Pipeline([Tool("t", "", ANY, execute)])
    await pipeline.turn([("t", {"n": 1}), ("t", {"n": 2})])
    await pipeline.turn([("t", {"n": 1})])

    assert seen[0] == seen[1] != seen[2]
    assert None not in seen


async def test_the_same_call_twice_is_run_once_and_answered_twice() -> None:
    clock, told = FakeClock(), Told()
    tool = scripted(("sleep", 1, "done"), clock=clock, name="t")
    pipeline = Pipeline([tool], clock=clock)

    outcome = await clock.run(
        pipeline.turn([("t", {"a": 1}, "x"), ("t", '{"a": 1}', "x")], on_event=told)
    )

    assert len(tool.executor.calls) == 1  # type: ignore[attr-defined]  # of the script
    assert [result.call_id for result in outcome.results] == ["x", "x"]
    assert told.of("start") == told.of("end") == ["x", "x"]
    assert sorted(event.position for event in told.events) == [0, 0, 1, 1]


async def test_a_repeated_call_starts_in_its_place_and_ends_with_the_one_it_repeats() -> None:
    clock, told = FakeClock(), Told()
    pipeline = Pipeline(slow_and_fast(clock), clock=clock)

    await clock.run(
        pipeline.turn([("fast", {}, "1"), ("slow", {}, "2"), ("fast", {}, "1")], on_event=told)
    )

    found = [(event.kind, event.position) for event in told.events]
    assert found[:3] == [("start", 0), ("start", 1), ("start", 2)]
    assert found[3:] == [("end", 0), ("end", 2), ("end", 1)]


async def test_one_id_for_two_calls_runs_both_under_ids_of_their_own() -> None:
    clock = FakeClock()
    pipeline = Pipeline(slow_and_fast(clock), clock=clock)

    outcome = await clock.run(pipeline.turn([("slow", {}, "x"), ("fast", {}, "x")]))

    found = [(result.call_id, result.text) for result in outcome.results]
    assert found == [("x", "slow"), ("x_2", "fast")]


async def test_unknown_and_invalid_calls_are_answered_among_the_others() -> None:
    clock = FakeClock()
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    pipeline = Pipeline([scripted("ok", clock=clock, name="t", input_schema=schema)], clock=clock)

    outcome = await clock.run(
        pipeline.turn(
            [
                ("t", {"n": 1}),
                ("tt", {}),
                ("t", {"n": "many"}),
                {"function": {}},
                ToolCall("t", "{", arguments_error="the stream broke off"),
            ]
        )
    )

    assert reasons(outcome.results) == [
        "ok",
        "tool_not_found",
        "argument_type",
        "tool_not_found",
        "arguments_not_json",
    ]
    assert "the stream broke off" in outcome.results[4].text
    assert len({result.call_id for result in outcome.results}) == 5


async def test_what_the_provider_cut_off_is_refused_unrun() -> None:
    clock = FakeClock()
    [slow, fast] = slow_and_fast(clock)
    pipeline = Pipeline([slow, fast], clock=clock)

    outcome = await clock.run(
        pipeline.turn([("fast", {}), ("nope", {}), ("slow", {"n": 1})], truncated=True)
    )

    assert reasons(outcome.results) == ["arguments_truncated"] * 3
    assert all(not result.failure.may_have_run for result in outcome.results if result.failure)
    assert outcome.status is TurnStatus.DONE
    assert clock.now() == 0


async def test_one_call_that_was_cut_off_leaves_the_others_running() -> None:
    clock = FakeClock()
    pipeline = Pipeline(slow_and_fast(clock), clock=clock)

    outcome = await clock.run(pipeline.turn([("fast", {}), ToolCall("slow", "{}", truncated=True)]))

    assert reasons(outcome.results) == ["ok", "arguments_truncated"]


async def test_what_is_beyond_the_most_calls_of_a_turn_is_refused() -> None:
    runs: list[int] = []

    async def execute(arguments: dict[str, Any], context: Any) -> None:
        runs.append(arguments["n"])

    pipeline = Pipeline([Tool("t", "", ANY, execute)])

    outcome = await pipeline.turn([("t", {"n": n}) for n in range(MAX_CALLS + 2)])

    assert len(runs) == MAX_CALLS
    assert reasons(outcome.results[MAX_CALLS - 1 :]) == ["ok", "overloaded", "overloaded"]


class Counted:
    """Counts what the books are told of."""

    def __init__(self) -> None:
        self.unknowns = 0
        self.ends: list[tuple[str, str | None]] = []
        self.spans: list[str] = []

    def for_tool(self, tool: str) -> ToolRecorder:
        return ToolRecorder(
            lambda span: self.spans.append(span.outcome),
            lambda end: self.ends.append((tool, end.reason)),
        )

    def unknown(self) -> None:
        self.unknowns += 1


async def test_every_call_of_a_turn_is_in_the_books_once_whatever_it_was_refused_for() -> None:
    books = Counted()
    pipeline = Pipeline([scripted("done", name="t")], recorders=[books])
    pipeline.registry.register(
        scripted(name="odd", input_schema={"type": "odd"}), on_invalid="quarantine"
    )
    three = ["t", "nope", "odd"]

    await pipeline.turn([(name, {}) for name in three], truncated=True)
    assert (len(books.ends), books.unknowns) == (2, 1)
    assert books.spans == ["denied", "denied"]

    await pipeline.turn([("nope", {})] * MAX_CALLS + [(name, {}) for name in three])
    assert books.ends[2:] == [("t", "overloaded"), ("odd", "overloaded")]
    assert books.unknowns == 1 + MAX_CALLS + 1
    assert books.spans == ["denied"] * 4


async def test_what_is_no_call_is_told_before_anything_runs() -> None:
    tool = scripted("x", clock=FakeClock(), name="t")

    with pytest.raises(TypeError, match="no call"):
        await Pipeline([tool]).turn([("t", {}), 7])

    assert tool.executor.calls == []  # type: ignore[attr-defined]  # of the script


@pytest.mark.parametrize("execution", ["both", "", True])
async def test_an_order_that_is_none_is_told(execution: Any) -> None:
    with pytest.raises(ValueError, match="execution"):
        await Pipeline([scripted("x", clock=FakeClock())]).turn([], execution=execution)


# The end of a turn.


@pytest.mark.parametrize(
    ("votes", "status"),
    [
        ([True], TurnStatus.TERMINATED),
        ([True, True], TurnStatus.TERMINATED),
        ([True, False], TurnStatus.DONE),
        ([False, False], TurnStatus.DONE),
    ],
)
async def test_a_turn_terminates_only_if_every_result_asks_for_it(
    votes: list[bool], status: TurnStatus
) -> None:
    async def execute(arguments: dict[str, Any], context: Any) -> ToolResult:
        return ToolResult(terminate=arguments["vote"])

    pipeline = Pipeline([Tool("t", "", ANY, execute)])

    outcome = await pipeline.turn([("t", {"vote": vote, "n": n}) for n, vote in enumerate(votes)])

    assert outcome.status is status
    assert bool(outcome.reason) is (status is TurnStatus.TERMINATED)


# What goes wrong.


async def test_one_failure_leaves_the_others_running() -> None:
    clock = FakeClock()
    tools = [*slow_and_fast(clock), scripted(ValueError("no"), clock=clock, name="boom")]
    pipeline = Pipeline(tools, clock=clock)

    outcome = await clock.run(pipeline.turn([("slow", {}), ("boom", {}), ("fast", {})]))

    assert reasons(outcome.results) == ["ok", "tool_failed", "ok"]


@pytest.mark.parametrize("again", [False, True])
async def test_a_cancel_from_outside_stops_all_and_leaves_no_task_behind(again: bool) -> None:
    clock = FakeClock()
    ended: list[str] = []

    async def execute(arguments: dict[str, Any], context: Any) -> None:
        try:
            await clock.sleep(60)
        finally:
            await clock.sleep(0.5)
            ended.append(context.call_id)

    pipeline = Pipeline([Tool("t", "", ANY, execute)], clock=clock, max_turn_width=2)
    before = asyncio.all_tasks()
    turn = asyncio.create_task(pipeline.turn([("t", {"n": n}, str(n)) for n in range(3)]))
    await clock.advance(1)

    turn.cancel()
    await clock.advance(0.1)
    if again:
        turn.cancel()
    await clock.advance(2)

    with pytest.raises(asyncio.CancelledError):
        await turn
    assert asyncio.all_tasks() == before
    assert ended == ([] if again else ["0", "1"])
    usage = pipeline.usage.snapshot()["t"]
    assert (usage.failures, usage.refusals) == (2, 1)


async def test_a_cancel_while_gates_are_asked_stops_all_too() -> None:
    clock = FakeClock()

    async def confirm(prepared: Any, decision: Any) -> bool:
        await clock.sleep(60)
        return True

    tools = [*slow_and_fast(clock), scripted("x", clock=clock, name="wild", risk=Risk.HIGH)]
    pipeline = Pipeline(tools, clock=clock, confirm=confirm)
    before = asyncio.all_tasks()
    turn = asyncio.create_task(pipeline.turn([("fast", {}), ("wild", {}), ("slow", {})]))
    await clock.advance(1)

    turn.cancel()
    await clock.settle()

    with pytest.raises(asyncio.CancelledError):
        await turn
    assert asyncio.all_tasks() == before
    assert all(tool.executor.calls == [] for tool in tools)  # type: ignore[attr-defined]  # of scripts


async def test_a_tool_that_cancels_itself_is_answered_like_one_that_fails() -> None:
    clock = FakeClock()

    async def execute(arguments: dict[str, Any], context: Any) -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await clock.sleep(1)

    pipeline = Pipeline([*slow_and_fast(clock), Tool("odd", "", ANY, execute)], clock=clock)

    outcome = await clock.run(pipeline.turn([("odd", {}), ("slow", {})]))

    assert reasons(outcome.results) == ["cancelled", "ok"]
    assert outcome.results[0].failure is not None
    assert outcome.results[0].failure.may_have_run


async def test_a_defect_that_is_to_be_seen_ends_the_turn_and_all_its_tasks() -> None:
    clock = FakeClock()
    tools = [*slow_and_fast(clock), scripted(ValueError("seen"), clock=clock, name="boom")]
    pipeline = Pipeline(tools, clock=clock, on_defect="raise")
    before = asyncio.all_tasks()

    with pytest.raises(ValueError, match="seen"):
        await clock.run(pipeline.turn([("slow", {}), ("boom", {}), ("fast", {})]))

    assert asyncio.all_tasks() <= before


# Events.


async def test_a_listener_that_fails_harms_nobody(caplog: pytest.LogCaptureFixture) -> None:
    clock = FakeClock()
    pipeline = Pipeline(slow_and_fast(clock), clock=clock)

    def fail(_: TurnEvent) -> None:
        raise OSError("the socket is gone")

    outcome = await clock.run(pipeline.turn([("slow", {}), ("fast", {})], on_event=fail))

    assert reasons(outcome.results) == ["ok", "ok"]
    assert "a listener failed" in caplog.text


async def test_a_listener_that_would_have_to_be_awaited_is_refused() -> None:
    async def listen(_: TurnEvent) -> None: ...

    with pytest.raises(TypeError, match="plain function"):
        await Pipeline([scripted("x", clock=FakeClock())]).turn([], on_event=listen)


async def test_progress_comes_between_the_start_and_the_end_of_its_call() -> None:
    told = Told()
    contexts: list[Any] = []

    async def execute(arguments: dict[str, Any], context: Any) -> str:
        contexts.append(context)
        context.progress("half", 1, 2)
        return "done"

    pipeline = Pipeline([Tool("t", "", ANY, execute)])
    await pipeline.turn([("t", {"n": 1}, "1"), ("t", {"n": 2}, "2")], on_event=told)
    contexts[0].progress("too late")

    updates = [event for event in told.events if event.kind == "update"]
    assert [(event.report, event.done, event.total) for event in updates] == [("half", 1, 2)] * 2
    kinds = [event.kind for event in told.events if event.call_id == "1"]
    assert kinds == ["start", "update", "end"]


async def test_progress_that_was_on_its_way_when_its_call_ended_is_dropped() -> None:
    told = Told()
    contexts: list[Any] = []

    async def execute(arguments: dict[str, Any], context: Any) -> None:
        contexts.append(context)

    await Pipeline([Tool("t", "", ANY, execute)]).turn([("t", {})], on_event=told)
    contexts[0]._call.on_progress("late", None, None)

    assert [event.kind for event in told.events] == ["start", "end"]


async def test_progress_of_a_plain_function_comes_before_its_end_too() -> None:
    told = Told()
    threads: list[int] = []

    def listen(event: TurnEvent) -> None:
        threads.append(threading.get_ident())
        told(event)

    def execute(arguments: dict[str, Any], context: Any) -> str:
        context.progress("half")
        return "done"

    pipeline = Pipeline([Tool("t", "", ANY, execute)])
    async with pipeline:
        await pipeline.turn([("t", {"n": 1}), ("t", {"n": 2})], on_event=listen)

    for position in (0, 1):
        kinds = [event.kind for event in told.events if event.position == position]
        assert kinds == ["start", "update", "end"]
    assert set(threads) == {threading.get_ident()}


# Cases.


def case_tool(name: str, script: list[list[str]], clock: FakeClock, seen: Counter[str]) -> Tool:
    async def execute(arguments: dict[str, Any], context: Any) -> Any:
        seen["executions"] += 1
        seen["running"] += 1
        seen["most"] = max(seen["most"], seen["running"])
        try:
            return await play(arguments)
        finally:
            seen["running"] -= 1

    async def play(arguments: dict[str, Any]) -> Any:
        for step in script[0]:
            word, _, value = step.partition(":")
            if word == "effect":
                seen["effects"] += 1
            elif word in ("sleep", "sleep_arg"):
                await clock.sleep(arguments[value] if word == "sleep_arg" else float(value))
            elif word == "maybe_raise_arg":
                if value in arguments:
                    raise ValueError("as asked")
            elif word == "return_arg":
                return arguments[value]
            else:
                assert word == "return"
                return json.loads(value)
        return None

    return Tool(name, "", ANY, execute)


def case_batch(case: dict[str, Any]) -> list[tuple[str, Any, str]]:
    made = case["call"].get("batch_gen")
    if made is None:
        return [(one.get("tool", "t"), one["args"], one["id"]) for one in case["call"]["batch"]]
    return [
        ("t", {"v": n, **({"r": "ValueError"} if n == made["fail_index"] else {})}, str(n))
        for n in range(made["count"])
    ]


OUTCOMES = {"ok": "ok", "tool_error": "tool_failed"}


@pytest.mark.parametrize("name", [name for name in CASES if name.startswith("batch-")])
async def test_a_turn_does_what_the_case_wants(name: str) -> None:
    case = CASES[name]
    clock, seen = FakeClock(), Counter[str]()
    given_, expected = case["given"], case["expect"]
    tools = given_.get("tools", {"t": given_.get("tool")})
    pipeline = Pipeline(
        [case_tool(name, tool["script"], clock, seen) for name, tool in tools.items()],
        clock=clock,
        max_turn_width=given_.get("policy", {}).get("batch_concurrency", 16),
    )
    batch = case_batch(case)

    outcome = await clock.run(pipeline.turn(batch))

    found = dict(zip([call_id for *_, call_id in batch], outcome.results, strict=True))
    assert len(outcome.results) == expected.get("results_len", len(batch))
    for call_id, value in expected.get("results", []):
        assert (found[call_id].call_id, found[call_id].text) == (call_id, str(value))
    for call_id, word in expected.get("outcomes", {}).items():
        assert reasons((found[call_id],)) == [OUTCOMES[word]]
    counted = Counter(reasons(outcome.results))
    assert all(counted[OUTCOMES[word]] == n for word, n in expected.get("count", {}).items())
    assert seen["effects"] == expected.get("effects", seen["effects"])
    assert seen["executions"] == expected.get("executions", seen["executions"])
    assert seen["most"] == expected.get("max_overlap", seen["most"])


# A scripted agent.

ARGUMENTS = st.fixed_dictionaries(
    {"do": st.sampled_from(["answer", "wait", "raise", "fail", "cancel", "hang"])},
    optional={"n": st.integers(0, 3)},
)
CALLS = st.tuples(
    st.sampled_from(["async", "async", "sequential", "unknown"]),
    ARGUMENTS,
    st.sampled_from([None, "x", "y", "x_2"]),
)
TURNS = st.lists(st.lists(CALLS, max_size=5), min_size=200, max_size=200)


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(TURNS)
def test_every_call_of_a_long_conversation_has_exactly_one_result(
    turns: list[list[tuple[str, dict[str, Any], str | None]]],
) -> None:
    asyncio.run(conversation(turns))


def doing(clock: FakeClock, runs: Counter[str]) -> Pipeline:
    """Two tools that do what their arguments say; `runs` counts by call id."""

    async def execute(arguments: dict[str, Any], context: Any) -> Any:
        runs[context.call_id] += 1
        match arguments["do"]:
            case "wait":
                await clock.sleep(0.2 * (1 + arguments.get("n", 0)))
            case "raise":
                raise OSError("no")
            case "fail":
                return ToolResult.failed(FailureCode.NOT_FOUND, "nothing there")
            case "cancel" if context.call_id != "alone":
                raise asyncio.CancelledError
            case "hang":
                await clock.sleep(1_000)
        return arguments

    return Pipeline(
        [
            Tool("async", "", ANY, execute),
            Tool("sequential", "", ANY, execute, execution="sequential"),
        ],
        clock=clock,
        policies=Policies(default=RunPolicy(timeout_s=2, max_retries=0)),
        loop=LoopPolicy(threshold=50),
        max_turn_width=2,
    )


async def conversation(turns: list[list[tuple[str, dict[str, Any], str | None]]]) -> None:
    clock = FakeClock()
    session = Session("s")
    runs = Counter[str]()
    pipeline = doing(clock, runs)
    for number, calls in enumerate(turns):
        told = Told()
        runs.clear()
        turn = asyncio.ensure_future(pipeline.turn(calls, session=session, on_event=told))
        if number % 7 == 3:
            await clock.advance(0.3)
            turn.cancel()
        try:
            outcome = await clock.run(turn)
        except asyncio.CancelledError:
            starts = Counter(event.position for event in told.events if event.kind == "start")
            assert set(starts.values()) <= {1}
            continue
        assert len(outcome.results) == len(calls)
        for kind in ("start", "end"):
            positions = [event.position for event in told.events if event.kind == kind]
            assert sorted(positions) == list(range(len(calls)))
        ends = {event.position: event for event in told.events if event.kind == "end"}
        for position, (result, call) in enumerate(zip(outcome.results, calls, strict=True)):
            assert result is ends[position].result
            assert result.call_id == ends[position].call_id
            assert result.tool == call[0]
        assert set(runs.values()) <= {1}
    assert len(asyncio.all_tasks()) == 1
