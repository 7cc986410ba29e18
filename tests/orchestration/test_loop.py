"""Loops: what counts as one, what does not, and what the model is told."""

from __future__ import annotations

import asyncio
import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seawall import (
    Annotations,
    FailureCode,
    ImageContent,
    LoopPolicy,
    Pipeline,
    Policies,
    ResourceLink,
    Risk,
    RunPolicy,
    Session,
    Tool,
    ToolResult,
    TurnStatus,
)
from seawall.contract.span import Outcome
from seawall.policy.settings import LoopSettings
from seawall.testing import FakeClock, scripted

CASES = {
    case["id"]: case
    for case in json.loads((Path(__file__).parents[1] / "cases" / "turns.json").read_text())
}

ANY = {"type": "object"}


def reason(result: ToolResult) -> str:
    return result.failure.reason if result.failure else "ok"


def flags(results: list[ToolResult]) -> list[str]:
    """What the model is told of each: nothing, a warning, or that it was stopped."""
    return [
        "stopped" if reason(result) == "loop_detected" else "warned" if is_flagged(result) else "-"
        for result in results
    ]


def is_flagged(result: ToolResult) -> bool:
    return "loop" in (result.metadata or {})


class Bench:
    """A pipeline with some tools, a session, and a fake clock."""

    def __init__(self, *tools: Tool, policies: Policies | None = None, **numbers: Any) -> None:
        self.clock = FakeClock()
        self.session = Session("s")
        same = [scripted("same", clock=self.clock, name=name) for name in "abcd"]
        count = itertools.count()

        async def new(arguments: dict[str, Any], context: Any) -> int:
            return next(count)

        self.pipeline = Pipeline(
            [*same, Tool("new", "", ANY, new), *tools],
            clock=self.clock,
            loop=LoopPolicy(**numbers),
            policies=policies,
        )

    async def call(self, name: str, arguments: Any = None, **options: Any) -> ToolResult:
        return await self.clock.run(
            self.pipeline.call(name, arguments, session=self.session, **options)
        )

    async def calls(self, names: str) -> list[ToolResult]:
        return [await self.call(name) for name in names]


async def test_the_fifth_of_five_equal_calls_is_warned_and_the_next_is_stopped() -> None:
    bench = Bench()

    results = await bench.calls("aaaaaaa")

    assert flags(results) == ["-"] * 4 + ["warned"] + ["stopped"] * 2
    assert results[4].text.startswith("same\n[Loop: the same call was made 5 times")
    assert not results[4].is_error
    failure = results[5].failure
    assert failure is not None
    assert (failure.code, failure.layer) == (FailureCode.PERMISSION_DENIED, "loop_detector")
    assert "a was not run, as the same call was made 5 times" in failure.message
    assert failure.may_have_run is False
    assert (
        results[4].metadata == results[5].metadata == {"loop": {"detector": "repeat", "count": 5}}
    )


async def test_a_stopped_call_is_recorded_as_denied() -> None:
    bench = Bench(threshold=2)

    await bench.calls("aaa")

    spans = bench.pipeline.trace.spans()
    denied = [span for span in spans if span.outcome is Outcome.DENIED]
    assert [(span.attempt, span.reason) for span in denied] == [(0, "loop_detected")]
    usage = bench.pipeline.usage.snapshot()["a"]
    assert (usage.successes, usage.refusals) == (2, 1)


async def test_something_else_in_between_begins_the_row_anew() -> None:
    assert flags(await Bench().calls("aaaabaaaa")) == ["-"] * 9


async def test_after_a_stop_something_else_sets_the_call_free() -> None:
    assert flags(await Bench(threshold=3).calls("aaaabaa")) == [
        *["-", "-", "warned", "stopped"],
        *["-", "-", "-"],
    ]


async def test_the_same_call_with_a_new_result_is_progress() -> None:
    bench = Bench(threshold=2)

    results = [await bench.call("new") for _ in range(50)]

    assert flags(results) == ["-"] * 50


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(["a", "b", "c", "new", "new"]), max_size=40))
def test_a_poller_whose_result_changes_is_never_stopped_whatever_is_called_beside_it(
    names: list[str],
) -> None:
    async def play() -> list[ToolResult]:
        bench = Bench(window=8)
        return [await bench.call(name) for name in [*names, *["new"] * 12]]

    results = asyncio.run(play())

    polled = [
        one for name, one in zip([*names, *["new"] * 12], results, strict=True) if name == "new"
    ]
    assert set(flags(polled)) == {"-"}


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"a": 1, "b": [2]}, {"b": [2], "a": 1}),
        ({"a": 5}, {"a": 5.0}),
        ('{"a": 1}', {"a": 1}),
        ("", {}),
    ],
)
async def test_arguments_are_compared_by_value(first: Any, second: Any) -> None:
    bench = Bench(threshold=2)

    results = [await bench.call("a", given) for given in (first, second, first)]

    assert flags(results) == ["-", "warned", "stopped"]


@pytest.mark.parametrize(
    ("first", "second"), [({"a": 1}, {"a": True}), ({"a": 1}, {"a": "1"}), ({}, {"a": None})]
)
async def test_other_arguments_are_another_call(first: Any, second: Any) -> None:
    bench = Bench(threshold=2)

    assert flags([await bench.call("a", given) for given in (first, second)]) == ["-", "-"]


@pytest.mark.parametrize(
    ("names", "detector", "count"),
    [("ababab", "cycle_2", 3), ("abcabcabc", "cycle_3", 3), ("cababab", "cycle_2", 3)],
)
async def test_cycles_of_two_and_three_calls_are_seen(
    names: str, detector: str, count: int
) -> None:
    bench = Bench()
    length = int(detector[-1])

    results = await bench.calls(names)
    next_ = await bench.call(names[-length])

    assert flags(results) == ["-"] * (len(names) - 1) + ["warned"]
    assert flags([next_]) == ["stopped"]
    assert next_.metadata == {"loop": {"detector": detector, "count": count}}
    assert f"the same {length} calls were made {count} times in turn" in next_.render()


async def test_what_breaks_a_cycle_is_let_through() -> None:
    bench = Bench()
    await bench.calls("ababab")

    assert flags([await bench.call("c"), await bench.call("a")]) == ["-", "-"]


async def test_a_cycle_in_which_one_result_is_new_is_progress() -> None:
    bench = Bench()

    results = [await bench.call(name) for name in ["a", "new"] * 10]

    assert flags(results) == ["-"] * 20


async def test_cycles_are_not_looked_for_if_the_policy_says_so() -> None:
    assert flags(await Bench(cycle_rounds=None).calls("ab" * 10)) == ["-"] * 20


async def test_a_wider_window_counts_what_is_not_in_a_row() -> None:
    bench = Bench(threshold=3, window=6, cycle_rounds=None)

    assert flags(await bench.calls("abacaabbb")) == [
        *["-", "-", "-", "-", "warned", "stopped"],
        *["-", "warned", "stopped"],
    ]


async def test_what_is_hot_stays_so_while_it_is_in_the_window() -> None:
    bench = Bench(threshold=3, window=6, cycle_rounds=None)

    assert flags(await bench.calls("aaabcad")) == [
        *["-", "-", "warned", "-", "-", "stopped", "-"],
    ]
    assert flags(await bench.calls("aba")) == ["stopped", "-", "-"]


async def test_attempts_of_one_call_count_once() -> None:
    clock = FakeClock()
    flaky = scripted(
        OSError("down"), clock=clock, name="flaky", annotations=Annotations.for_reading()
    )
    policies = Policies(default=RunPolicy(max_retries=9, base_delay_s=0))
    bench = Bench(flaky, policies=policies, threshold=3)

    results = [await bench.call("flaky") for _ in range(3)]

    assert flags(results) == ["-", "-", "warned"]
    assert results[0].attempts == 10


async def test_progress_of_one_call_counts_for_nothing() -> None:
    async def stream(arguments: dict[str, Any], context: Any) -> Any:
        for _ in range(20):
            yield "same"

    bench = Bench(Tool("stream", "", ANY, stream), threshold=2)

    assert flags([await bench.call("stream")]) == ["-"]


async def test_calls_that_tools_make_are_not_the_models() -> None:
    async def poll(arguments: dict[str, Any], context: Any) -> int:
        results = [await context.call_tool("a") for _ in range(20)]
        return sum(not result.is_error for result in results)

    bench = Bench(Tool("poll", "", ANY, poll), threshold=2)

    assert (await bench.call("poll")).text == "20"


@pytest.mark.parametrize(
    "numbers", [{"exempt": ("po*",)}, {"exempt": ("poll",)}, {"exempt_tags": ("x", "waits")}, {}]
)
async def test_a_polling_tool_may_be_exempt_by_name_or_by_tag(numbers: dict[str, Any]) -> None:
    clock = FakeClock()
    tags = ("waits",) if "exempt_tags" in numbers else ("polling",) if not numbers else ()
    poll = scripted("pending", clock=clock, name="poll", tags=tags)
    bench = Bench(poll, threshold=2, **numbers)

    assert flags([await bench.call("poll") for _ in range(9)]) == ["-"] * 9


async def test_while_one_call_is_too_many_all_others_go_on() -> None:
    poll = scripted("pending", clock=FakeClock(), name="poll", tags=("polling",))
    bench = Bench(poll, threshold=3)
    await bench.calls("aaa")

    results = [await bench.call(name) for name in ("poll", "a", "nope", "b")]

    assert flags(results) == ["-", "stopped", "-", "-"]


async def test_an_exempt_tool_between_equal_calls_is_not_something_else() -> None:
    poll = scripted("pending", clock=FakeClock(), name="poll", tags=("polling",))
    bench = Bench(poll, threshold=3)

    results = [await bench.call(name) for name in ["a", "poll", "a", "poll", "a"]]

    assert flags(results)[-1] == "warned"


@pytest.mark.parametrize(
    ("name", "given"),
    [("nope", {"n": 1}), ("a", "{not json"), ("wild", {})],
)
async def test_calls_that_are_refused_again_and_again_are_a_loop_too(name: str, given: Any) -> None:
    wild = scripted("x", clock=FakeClock(), name="wild", risk=Risk.HIGH)
    bench = Bench(wild, threshold=3)

    results = [await bench.call(name, given) for _ in range(5)]

    assert flags(results) == ["-", "-", "warned", "stopped", "stopped"]
    assert all(result.is_error for result in results)


async def test_unknown_names_that_differ_are_no_loop() -> None:
    bench = Bench(threshold=2)

    results = [await bench.call(f"nope_{n}") for n in range(5)]

    assert flags(results) == ["-"] * 5


async def test_a_refusal_counts_as_the_same_though_its_seconds_run_down() -> None:
    policies = Policies(default=RunPolicy(rate="1/minute"))
    bench = Bench(policies=policies, threshold=3)

    results = []
    for _ in range(5):
        results.append(await bench.call("b"))
        await bench.clock.advance(5)

    assert [reason(result) for result in results] == ["ok"] + ["rate_limited"] * 3 + [
        "loop_detected"
    ]


async def test_a_model_that_waits_as_it_was_told_is_not_stopped() -> None:
    policies = Policies(default=RunPolicy(rate="1/minute"))
    bench = Bench(policies=policies, threshold=3)
    for _ in range(4):
        await bench.call("b")
    await bench.clock.advance(61)

    assert reason(await bench.call("b")) == "ok"


@pytest.mark.parametrize(("pause", "last"), [(299, "stopped"), (301, "-")])
async def test_a_session_that_pauses_begins_anew(pause: float, last: str) -> None:
    bench = Bench(threshold=3)
    await bench.calls("aaa")
    await bench.clock.advance(pause)

    assert flags(await bench.calls("a")) == [last]


async def test_slow_calls_are_no_pauses() -> None:
    bench = Bench(scripted(("sleep", 600, "failed"), name="build"), threshold=3)

    results = [await bench.call("build") for _ in range(4)]

    assert flags(results) == ["-", "-", "warned", "stopped"]


async def test_a_call_an_hour_is_no_loop() -> None:
    bench = Bench(threshold=2)
    results = []
    for _ in range(10):
        results += await bench.calls("a")
        await bench.clock.advance(3_600)

    assert flags(results) == ["-"] * 10


async def test_the_application_may_begin_a_session_anew() -> None:
    bench = Bench(threshold=3)
    await bench.calls("aaa")
    assert bench.pipeline.loop_detector is not None

    bench.pipeline.loop_detector.reset(bench.session)

    assert flags(await bench.calls("aa")) == ["-", "-"]


async def test_sessions_are_apart() -> None:
    bench = Bench(threshold=3)
    await bench.calls("aaa")
    bench.session = Session("other")

    assert flags(await bench.calls("aa")) == ["-", "-"]


@pytest.mark.parametrize(
    ("loop", "with_session", "last"),
    [
        (None, True, "-"),
        (LoopPolicy(), False, "stopped"),
        (LoopPolicy(scope="sessions"), False, "-"),
        (LoopPolicy(scope="sessions"), True, "stopped"),
    ],
)
async def test_whose_calls_are_watched_is_a_matter_of_policy(
    loop: LoopPolicy | None, with_session: bool, last: str
) -> None:
    clock = FakeClock()
    pipeline = Pipeline([scripted("same", clock=clock, name="a")], clock=clock, loop=loop)
    session = Session("s") if with_session else None

    results = [await pipeline.call("a", session=session) for _ in range(6)]

    assert flags(results)[-1] == last


async def test_calls_of_nobody_in_particular_may_repeat_where_nothing_else_is_said() -> None:
    clock = FakeClock()
    pipeline = Pipeline([scripted("same", clock=clock, name="a")], clock=clock)
    session = Session("s")

    alone = [await pipeline.call("a") for _ in range(20)]
    in_session = [await pipeline.call("a", session=session) for _ in range(6)]

    assert flags(alone) == ["-"] * 20
    assert flags(in_session) == ["-"] * 4 + ["warned", "stopped"]


async def test_what_is_remembered_of_a_session_is_bounded() -> None:
    bench = Bench(threshold=3)
    for n in range(2_000):
        await bench.call("a", {"n": n % 700})

    recent = bench.session.recent
    assert len(recent.keys) <= 9
    assert len(recent.signatures) <= 9
    assert recent.hot == {}


# What a result is.


@pytest.mark.parametrize(
    ("results", "is_loop"),
    [
        ([{"n": 1}, {"n": 1}], True),
        ([{"n": 1}, {"n": 2}], False),
        ([None, None], True),
        ([[1, 2], [1, 2]], True),
        (
            [ToolResult(structured_content={"n": n}, content=ToolResult.of_text("ok").content)
             for n in (1, 2)],
            False,
        ),
        (
            [ToolResult(structured_content={"n": 1}, content=ToolResult.of_text("ok").content)
             for n in (1, 2)],
            True,
        ),
        ([ImageContent(data="aGk=", mime_type="image/png")] * 2, True),
        ([ImageContent(data=data, mime_type="image/png") for data in ("aGk=", "aG8=")], False),
        (
            [ResourceLink(uri="u", name="n", meta={"k": [1]}) for _ in (1, 2)],
            True,
        ),
        (
            [ResourceLink(uri="u", name="n", meta={"k": [n]}) for n in (1, 2)],
            False,
        ),
        ([ValueError("no"), ValueError("no")], True),
        ([ValueError("no"), ValueError("other")], False),
        ([ValueError("no"), "no"], False),
    ],
)  # fmt: skip
async def test_results_are_compared_whole(results: list[Any], is_loop: bool) -> None:
    bench = Bench(scripted(*results, clock=FakeClock(), name="t"), threshold=2)

    found = [await bench.call("t"), await bench.call("t")]

    assert flags(found) == ["-", "warned" if is_loop else "-"]


# In turns.


async def test_the_turn_after_five_equal_ones_is_stopped() -> None:
    bench = Bench()

    outcomes = [await bench.clock.run(bench.pipeline.turn([("a", {})])) for _ in range(6)]

    assert [outcome.status for outcome in outcomes] == [TurnStatus.DONE] * 5 + [TurnStatus.LOOP]
    assert flags([outcome.results[0] for outcome in outcomes]) == [
        *["-"] * 4,
        *["warned", "stopped"],
    ]
    assert "5 times" in outcomes[-1].reason


async def test_one_that_is_stopped_leaves_the_others_of_its_turn_running() -> None:
    bench = Bench(threshold=3)
    await bench.calls("aaa")

    outcome = await bench.clock.run(
        bench.pipeline.turn([("a", {}), ("b", {})], session=bench.session)
    )

    assert [reason(result) for result in outcome.results] == ["loop_detected", "ok"]
    assert outcome.status is TurnStatus.LOOP


async def test_equal_turns_are_a_cycle_in_whatever_order_their_calls_end() -> None:
    clock = FakeClock()
    waits = iter([0.1, 0.3, 0.2] * 20)

    async def execute(arguments: dict[str, Any], context: Any) -> str:
        await clock.sleep(next(waits))
        return "same"

    tools = [Tool(name, "", ANY, execute) for name in "ab"]
    pipeline = Pipeline(tools, clock=clock)
    session = Session("s")

    outcomes = [
        await clock.run(pipeline.turn([("a", {}), ("b", {})], session=session)) for _ in range(4)
    ]

    assert [outcome.status for outcome in outcomes][-1] is TurnStatus.LOOP
    assert all(outcome.status is TurnStatus.DONE for outcome in outcomes[:3])


async def test_a_repeated_id_in_one_turn_counts_once() -> None:
    bench = Bench(threshold=2)

    outcome = await bench.clock.run(bench.pipeline.turn([("a", {}, "x")] * 5))

    assert flags(list(outcome.results)) == ["-"] * 5


async def test_many_calls_of_one_turn_are_remembered_within_the_bound() -> None:
    bench = Bench(threshold=3)

    for _ in range(3):
        await bench.clock.run(
            bench.pipeline.turn(
                [(name, {"n": n}) for n in range(20) for name in "ab"], session=bench.session
            )
        )

    assert len(bench.session.recent.keys) == 9


async def test_other_calls_of_the_session_between_those_of_a_turn_stay_in_their_place() -> None:
    clock, session = FakeClock(), Session("s")
    slow = scripted(("sleep", 2, "slow"), clock=clock, name="slow")
    fast = scripted("fast", clock=clock, name="fast")
    pipeline = Pipeline([slow, fast], clock=clock)

    async def both() -> None:
        turn = pipeline.turn([("slow", {}), ("fast", {"n": 1})], session=session)
        task = asyncio.ensure_future(turn)
        await clock.sleep(1)
        await pipeline.call("fast", {"n": 2}, session=session)
        await task

    await clock.run(both())

    assert len(set(session.recent.keys)) == 3


# Cases.


def case_bench(given: dict[str, Any]) -> Bench:
    errors = {"ConnectionError": ConnectionError}
    answers: list[Any] = []
    for [step] in given["tool"]["script"]:
        word, _, value = step.partition(":")
        answers.append(errors[value]("reset") if word == "raise" else value)
    tool = scripted(
        *answers,
        clock=FakeClock(),
        name="t",
        annotations=Annotations(idempotent=given["tool"]["retry_safe"]),
    )
    policy = given["policy"]
    run = RunPolicy(
        max_retries=policy.get("max_attempts", 1) - 1,
        base_delay_s=policy.get("backoff_base_s", 0),
    )
    return Bench(tool, policies=Policies(default=run), threshold=policy["loop"]["repeat"])


@pytest.mark.parametrize("name", [name for name in CASES if name.startswith("loop-")])
async def test_the_detector_does_what_the_case_wants(name: str) -> None:
    case = CASES[name]
    bench = case_bench(case["given"])
    expected = case["expect"]
    results: list[tuple[str, ToolResult]] = []

    for event in case["call"]["timeline"]:
        await bench.clock.advance(max(event["at"] - bench.clock.now(), 0))
        for _ in range(event.get("count", 1)):
            result = await bench.call("t", event.get("args", {}))
            results.append((event.get("as", ""), result))

    flagged = [label for label, result in results if is_flagged(result)]
    if "flagged" in expected:
        assert flagged == expected["flagged"]
    if "first_flagged_index" in expected:  # counted from 1, as the other cases do
        first = [is_flagged(result) for _, result in results].index(True) + 1
        assert first == expected["first_flagged_index"]
    for label, outcome in expected.get("outcomes", {}).items():
        assert [reason(result) for known, result in results if known == label] == [outcome]


# --- by policy


async def _refused_at(pipeline: Pipeline, session: Session | None = None) -> int:
    """The number of the equal call that is refused; 0 if none of twenty is."""
    for number in range(1, 21):
        if reason(await pipeline.call("t", session=session)) == "loop_detected":
            return number
    return 0


def by_file(settings: LoopSettings | None, **options: Any) -> Pipeline:
    tools = [scripted("same", name="t")]
    return Pipeline(tools, policies=Policies(loop=settings), clock=FakeClock(), **options)


@pytest.mark.parametrize(
    ("settings", "options", "refused"),
    [
        (LoopSettings(), {}, 6),
        (LoopSettings(threshold=3), {}, 4),
        (LoopSettings(exempt=("t*",)), {}, 0),
        (None, {}, 0),
        (LoopSettings(threshold=3), {"loop": LoopPolicy(threshold=2)}, 3),
        (LoopSettings(threshold=3), {"loop": None}, 0),
        (None, {"loop": LoopPolicy(threshold=2)}, 3),
    ],
)
async def test_policies_say_what_a_loop_is_unless_the_program_does(
    settings: LoopSettings | None, options: dict[str, Any], refused: int
) -> None:
    assert await _refused_at(by_file(settings, **options), Session("s")) == refused


@pytest.mark.parametrize(("scope", "refused"), [("sessions", 0), ("all", 6)])
async def test_policies_say_whether_calls_without_a_session_count(scope: Any, refused: int) -> None:
    assert await _refused_at(by_file(LoopSettings(scope=scope))) == refused


async def test_new_policies_say_anew_what_a_loop_is_and_no_call_is_forgotten() -> None:
    pipeline, session = by_file(LoopSettings(threshold=3)), Session("s")
    for _ in range(2):
        await pipeline.call("t", session=session)

    pipeline.replace_policies(Policies(loop=LoopSettings(threshold=8)))
    later = await _refused_at(pipeline, session)
    pipeline.replace_policies(Policies(loop=None))

    assert later == 7
    assert await _refused_at(pipeline, session) == 0


async def test_new_policies_hold_for_turns_as_well() -> None:
    pipeline, session = by_file(None), Session("s")
    pipeline.replace_policies(Policies(loop=LoopSettings(threshold=2)))

    statuses = [(await pipeline.turn([("t", {})], session=session)).status for _ in range(3)]

    assert statuses == [TurnStatus.DONE, TurnStatus.DONE, TurnStatus.LOOP]


def stops(bench: Bench) -> dict[str, float]:
    lines = bench.pipeline.metrics.text().decode().splitlines()
    pairs = (line.rsplit(" ", 1) for line in lines if line.startswith("seawall_loop_stops_total"))
    return {name.split('"')[1]: float(value) for name, value in pairs if float(value)}


async def test_what_was_stopped_is_counted_by_who_saw_it() -> None:
    bench = Bench()

    for name in (*"aaaaaaa", *["nobody"] * 6):
        await bench.pipeline.call(name, {}, session=bench.session)

    assert stops(bench) == {"repeat": 3}
