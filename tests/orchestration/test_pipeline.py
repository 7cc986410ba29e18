"""The front door: what a call takes, what comes back, and what may change meanwhile."""

from __future__ import annotations

import asyncio
import gc
import math
import threading
import weakref
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from tests.waiting import until

from seawall import (
    AllowlistPolicy,
    Annotations,
    BreakerPolicy,
    ConfigurationError,
    FailureCode,
    Metrics,
    Pipeline,
    Policies,
    Prepared,
    Registry,
    Risk,
    RiskPolicy,
    RunPolicy,
    Session,
    Tool,
    ToolResult,
    TraceRecorder,
    UsageTracker,
)
from seawall.layers.risk_gate import Gate
from seawall.pipeline.recorder import ToolRecorder
from seawall.policy.settings import RiskSettings, TraceSettings
from seawall.testing import FakeClock, FixedChance, scripted

if TYPE_CHECKING:
    from seawall import Invocation

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


class Desk:
    """A pipeline over scripted tools, on a clock moved by hand."""

    def __init__(self, *tools: Tool, policy: RunPolicy | None = None, **options: Any) -> None:
        self.clock = FakeClock()
        policies = Policies(default=policy or RunPolicy())
        self.pipeline = Pipeline(
            tools or [scripted("well", name="t")],
            **{
                "clock": self.clock,
                "chance": FixedChance(),
                "policies": policies,
                **options,
            },
        )

    async def call(self, name: Any = "t", arguments: Any = None, **options: Any) -> ToolResult:
        return await self.clock.run(self.pipeline.call(name, arguments, **options))


def reason(result: ToolResult) -> str:
    return "" if result.failure is None else result.failure.reason


# --- one call


async def test_a_call_comes_back_as_a_result_with_its_name_and_id() -> None:
    desk = Desk()

    named, given = await desk.call(), await desk.call(call_id="mine")

    assert (named.text, named.tool, named.attempts, named.is_error) == ("well", "t", 1, False)
    assert named.call_id
    assert named.call_id != (await desk.call()).call_id
    assert given.call_id == "mine"


@pytest.mark.parametrize(
    "arguments",
    [{"n": 5}, '{"n": 5}', '{"n": "5"}', {"n": "5"}, {"n": 5.0}, "```json\n{'n': 5}\n```"],
)
async def test_arguments_may_be_a_mapping_or_text(arguments: Any) -> None:
    tool = scripted("well", name="t", input_schema=SCHEMA)

    await Desk(tool).call(arguments=arguments)

    executor: Any = tool.executor
    assert executor.calls == [{"n": 5}]


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (None, "argument_missing"),
        ("", "argument_missing"),
        ("[1]", "arguments_not_object"),
        ([1], "arguments_not_object"),
        (5, "arguments_not_object"),
        ("{", "arguments_truncated"),
        ("{]", "arguments_not_json"),
        ({"n": "x"}, "argument_type"),
    ],
)
async def test_arguments_that_are_no_good_are_refused_and_nothing_runs(
    arguments: Any, why: str
) -> None:
    tool = scripted("well", name="t", input_schema=SCHEMA)

    result = await Desk(tool).call(arguments=arguments)

    executor: Any = tool.executor
    assert reason(result) == why
    assert not executor.calls


async def test_a_value_that_holds_itself_is_refused_and_recorded() -> None:
    desk = Desk()
    loop: dict[str, Any] = {}
    loop["one"] = loop["two"] = loop

    assert reason(await desk.call(arguments=loop)) == "too_deep"
    assert len(desk.pipeline.trace) == 1


async def test_a_call_that_the_provider_cut_off_is_not_completed() -> None:
    assert reason(await Desk().call(arguments={}, truncated=True)) == "arguments_truncated"


@pytest.mark.parametrize("name", ["nobody", "", None, 5, ["t"], {"t"}, "\ud800", "x" * 100_000])
async def test_a_name_that_is_not_registered_runs_nothing(name: Any) -> None:
    desk = Desk()

    result = await desk.call(name)

    assert reason(result) == "tool_not_found"
    assert len(desk.pipeline.trace) == 0
    assert desk.pipeline.usage.snapshot()["t"].invocations == 0
    assert desk.pipeline.metrics.unknown_calls == 1


async def test_a_tool_that_is_set_aside_is_refused_and_says_why() -> None:
    registry = Registry([scripted("well", name="t")])
    registry.register(
        scripted(name="bad", input_schema={"type": "string"}), on_invalid="quarantine"
    )
    desk = Desk()
    pipeline = Pipeline(registry, clock=desk.clock)

    result, prepared = await pipeline.call("bad"), pipeline.prepare("bad")

    assert reason(result) == "tool_quarantined"
    assert isinstance(prepared, ToolResult)
    assert reason(prepared) == "tool_quarantined"
    assert pipeline.metrics.unknown_calls == 0


# --- limits of a call


@pytest.mark.parametrize("limit", [{"timeout_s": 2}, {"deadline_s": 2}])
@pytest.mark.parametrize("layers", [None, []])
async def test_a_limit_given_with_the_call_holds_whatever_the_layers(
    limit: Any, layers: Any
) -> None:
    desk = Desk(scripted(("sleep", 9), name="t"), layers=layers)

    result = await desk.call(**limit)

    assert result.failure is not None
    assert result.failure.code is FailureCode.TIMEOUT
    assert desk.clock.now() == 2


@pytest.mark.parametrize("name", ["timeout_s", "deadline_s"])
@pytest.mark.parametrize("seconds", [0, -1, math.nan])
async def test_a_limit_that_makes_no_sense_is_an_error_of_the_caller(
    name: str, seconds: float
) -> None:
    desk = Desk()

    with pytest.raises(ValueError, match=f"{name} must be above 0"):
        await desk.call(**{name: seconds})
    assert len(desk.pipeline.trace) == 0
    assert desk.pipeline.usage.snapshot()["t"].invocations == 0


async def test_a_deadline_bounds_attempts_and_waits_together() -> None:
    policy = RunPolicy(timeout_s=4, max_retries=5, base_delay_s=1, deadline_s=8)
    tool = scripted(("sleep", 99), name="t", annotations=Annotations.for_reading())
    desk = Desk(tool, policy=policy)

    result = await desk.call()

    assert reason(result) == "deadline_exceeded"
    assert (desk.clock.now(), result.attempts) == (8, 2)
    assert result.failure is not None
    assert result.failure.may_have_run is None  # it only reads


async def test_calls_under_the_policys_deadline_share_one_timer() -> None:
    policy = RunPolicy(timeout_s=4, deadline_s=8)
    desk = Desk(scripted(*[("sleep", 99)] * 20, name="t"), policy=policy)
    calls = [asyncio.ensure_future(desk.pipeline.call("t")) for _ in range(20)]
    await desk.clock.settle()

    timers = [timer for _, _, timer in desk.clock._timers if timer.callback is not None]

    assert len(timers) == 20 + 2  # the sleep of each; the limit and the deadline of all
    await desk.clock.advance(8)
    assert all(reason(call.result()) == "attempt_timeout" for call in calls)


async def test_a_deadline_of_the_policy_cuts_what_comes_before_any_attempt() -> None:
    clock = FakeClock()

    async def confirm(*asked: Any) -> str:
        await clock.sleep(1000)
        return "yes"

    tool = scripted("well", name="t", risk=Risk.HIGH)
    desk = Desk(tool, clock=clock, confirm=confirm, policy=RunPolicy(deadline_s=5))
    desk.clock = clock

    first = asyncio.ensure_future(desk.pipeline.call("t"))
    await clock.advance(2)
    second = await desk.call()

    assert (reason(first.result()), reason(second)) == ("deadline_exceeded", "deadline_exceeded")
    assert clock.now() == 7


async def test_a_deadline_bounds_the_wait_for_a_person_too() -> None:
    clock = FakeClock()

    async def confirm(*asked: Any) -> str:
        await clock.sleep(1000)
        return "yes"

    desk = Desk(scripted("well", name="t", risk=Risk.HIGH), clock=clock, confirm=confirm)
    desk.clock = clock

    result = await desk.call(deadline_s=5)

    assert (reason(result), clock.now()) == ("deadline_exceeded", 5)
    assert result.failure is not None
    assert result.failure.may_have_run is False


async def test_a_layer_of_ones_own_that_waits_is_cut_by_the_deadline() -> None:
    desk: Desk

    async def waits(call: Invocation, proceed: Any) -> ToolResult:
        await desk.clock.sleep(1000)
        result: ToolResult = await proceed(call)
        return result

    desk = Desk(layers=[waits])

    result = await desk.call(deadline_s=5)

    assert (reason(result), desk.clock.now()) == ("deadline_exceeded", 5)


# --- parts that are given


async def test_recorders_that_are_given_are_used_though_they_are_empty() -> None:
    trace, usage, metrics = TraceRecorder(5), UsageTracker(), Metrics()
    desk = Desk(trace=trace, usage=usage, metrics=metrics)

    await desk.call()

    assert (desk.pipeline.trace, desk.pipeline.usage) == (trace, usage)
    assert len(trace) == 1
    assert usage.snapshot()["t"].successes == 1
    assert 'tool="t"' in metrics.text().decode()


@pytest.mark.parametrize("of_successes", [True, False])
async def test_a_recorder_of_ones_own_that_fails_harms_no_call(of_successes: bool) -> None:
    class Broken:
        def for_tool(self, tool: str) -> ToolRecorder:
            on_success = self.fail if of_successes else None
            return ToolRecorder(self.fail, self.fail, self.fail, on_success)

        def unknown(self) -> None:
            raise OSError

        def fail(self, *news: Any) -> None:
            raise OSError

    heard: list[Any] = []

    class After(Broken):
        def fail(self, *news: Any) -> None:
            heard.append(news)

    desk = Desk(recorders=[Broken(), After()])

    assert (await desk.call()).text == "well"
    assert heard
    assert reason(await desk.call("nobody")) == "tool_not_found"


async def test_the_policies_say_how_much_is_traced() -> None:
    policies = Policies(default=RunPolicy(), trace=TraceSettings(capacity=2))
    desk = Desk(policies=policies)

    for _ in range(5):
        await desk.call()

    assert len(desk.pipeline.trace) == 2


async def test_digests_compare_between_pipelines_with_the_same_key() -> None:
    desks = [Desk(digest_key=key) for key in (b"k", b"k", None)]
    for desk in desks:
        await desk.call(arguments={"a": 1})

    one, other, without = (desk.pipeline.trace.spans()[0].digest for desk in desks)

    assert one == other != without


@pytest.mark.parametrize(
    ("risk", "settings", "why"),
    [
        (None, None, "approval_required"),
        (RiskPolicy(), None, "approval_required"),
        (AllowlistPolicy(allow=["t"]), None, ""),
        (Gate(policy=AllowlistPolicy(deny=["t"])), None, "denied_by_policy"),
        (None, RiskSettings(allow=("t",)), ""),
        (None, RiskSettings(allow=()), "denied_by_policy"),
        (AllowlistPolicy(allow=["t"]), RiskSettings(allow=()), ""),
    ],
)
async def test_who_decides_is_given_or_said_by_the_policies(
    risk: Any, settings: RiskSettings | None, why: str
) -> None:
    policies = Policies(default=RunPolicy(), risk=settings)
    desk = Desk(scripted("well", name="t", risk=Risk.HIGH), risk=risk, policies=policies)

    assert reason(await desk.call()) == why


async def test_calls_without_a_session_share_one() -> None:
    asked: list[Any] = []

    def confirm(*question: Any) -> str:
        asked.append(question)
        return "allow_session"

    desk = Desk(scripted("well", name="t", risk=Risk.HIGH), confirm=confirm)

    await desk.call()
    await desk.call()
    await desk.call(session=Session("other"))

    assert len(asked) == 2


async def test_without_layers_text_is_parsed_and_the_value_becomes_a_result() -> None:
    tool = scripted({"a": 1}, OSError("down"), name="t", input_schema=SCHEMA, risk=Risk.HIGH)
    desk = Desk(tool, layers=[], policy=RunPolicy(rate="1/day", max_retries=3, timeout_s=1))

    good = await desk.call(arguments='{"n": "text"}')
    bad, unreadable = await desk.call(), await desk.call(arguments="{")

    executor: Any = tool.executor
    assert good.structured_content == {"a": 1}
    assert executor.calls == [{"n": "text"}, {}]
    assert reason(bad) == "tool_failed"
    assert unreadable.failure is not None
    assert unreadable.failure.code is FailureCode.INVALID_ARGUMENT


@pytest.mark.parametrize("layers", [["retry", 5], ["rate-limit"], [Tool]])
def test_what_is_no_layer_is_told_when_the_pipeline_is_made(layers: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"is no layer; known by name: .*retry"):
        Desk(layers=layers)


async def test_layers_may_be_named() -> None:
    desk = Desk(layers=["argument_check", "rate_limit"], policy=RunPolicy(rate="1/day"))

    assert [reason(await desk.call()) for _ in range(2)] == ["", "rate_limited"]


async def test_a_layer_of_ones_own_that_raises_is_a_refusal() -> None:
    async def broken(call: Invocation, proceed: Any) -> ToolResult:
        raise OSError("its fault")

    async def silent(call: Invocation, proceed: Any) -> Any:
        return "no result"

    for layer in (broken, silent):
        result = await Desk(layers=[layer]).call()
        assert reason(result) == "gate_failed"
        assert result.failure is not None
        assert result.failure.layer == layer.__name__


async def test_a_layer_object_that_is_empty_is_a_layer_all_the_same() -> None:
    class Counting(list[str]):
        async def __call__(self, call: Invocation, proceed: Any) -> ToolResult:
            self.append(call.call_id)
            result: ToolResult = await proceed(call)
            return result

    counting = Counting()

    await Desk(layers=[counting]).call(call_id="c1")

    assert counting == ["c1"]


async def test_a_defect_may_be_raised_for_development() -> None:
    desk = Desk(scripted(ZeroDivisionError("own"), name="t"), on_defect="raise")

    with pytest.raises(ZeroDivisionError):
        await desk.call()
    assert desk.pipeline.trace.spans()[0].reason == "tool_failed"
    assert desk.pipeline._routes["t"].in_flight == 0


async def test_a_policy_that_cannot_work_is_told_when_the_pipeline_is_made() -> None:
    with pytest.raises(ConfigurationError, match=r"t\.cost"):
        Desk(policy=RunPolicy(rate="1/minute", cost=5))


# --- looking without running


async def test_preparing_says_what_would_run_and_runs_nothing() -> None:
    tool = scripted("well", name="t", input_schema=SCHEMA)
    desk = Desk(tool)

    prepared = desk.pipeline.prepare("t", {"n": "5"}, session=Session("s", caller="ada"))

    assert isinstance(prepared, Prepared)
    assert (prepared.arguments, prepared.session_id, prepared.caller) == ({"n": 5}, "s", "ada")
    assert prepared.digest == desk.pipeline.digester.of("t", {"n": 5})
    assert prepared.mended
    executor: Any = tool.executor
    assert not executor.calls
    assert len(desk.pipeline.trace) == 0


@pytest.mark.parametrize(
    ("name", "arguments", "why"),
    [("t", {}, "argument_missing"), ("u", {}, "tool_not_found"), (None, {}, "tool_not_found")],
)
def test_preparing_says_why_it_would_not_run(name: Any, arguments: Any, why: str) -> None:
    desk = Desk(scripted("well", name="t", input_schema=SCHEMA))

    prepared = desk.pipeline.prepare(name, arguments)

    assert isinstance(prepared, ToolResult)
    assert reason(prepared) == why
    assert desk.pipeline.metrics.unknown_calls == 0


# --- what changes while calls run


async def test_a_call_goes_on_with_the_tool_it_began_with() -> None:
    desk = Desk(scripted(("sleep", 5, "old"), name="t"))
    running = asyncio.ensure_future(desk.pipeline.call("t"))
    await desk.clock.settle()

    desk.pipeline.registry.register(scripted("new", name="t"), on_duplicate="replace")
    fresh = await desk.pipeline.call("t")
    desk.pipeline.registry.unregister("t")
    gone = await desk.pipeline.call("t")
    await desk.clock.advance(5)

    assert fresh.text == "new"
    assert reason(gone) == "tool_not_found"
    assert (await running).text == "old"


async def test_a_tool_that_becomes_faulty_can_be_called_no_longer() -> None:
    desk = Desk()
    broken = scripted("worse", name="t", input_schema={"type": "string"})

    desk.pipeline.registry.register(broken, on_duplicate="replace", on_invalid="quarantine")

    assert reason(await desk.call()) == "tool_quarantined"
    assert desk.pipeline.policy_of("t") is None


async def test_a_tool_that_comes_back_does_not_find_its_limits_refilled() -> None:
    policy = RunPolicy(rate="1/day", breaker=BreakerPolicy(threshold=1))
    tool = scripted("well", name="t")
    desk = Desk(tool, policy=policy)
    await desk.call()
    desk.pipeline.breakers.open("t")

    desk.pipeline.registry.unregister("t")
    desk.pipeline.registry.register(tool)

    assert reason(await desk.call()) == "rate_limited"
    assert desk.pipeline.breakers.state("t") == "open"
    assert desk.pipeline.usage.snapshot()["t"].invocations == 1


def test_tools_may_be_registered_from_other_threads_while_policies_change() -> None:
    desk = Desk()

    def work(number: int) -> None:
        for turn in range(30):
            desk.pipeline.registry.register(scripted(name=f"t{number}_{turn}"))
            if turn % 3 == 0:
                desk.pipeline.registry.unregister(f"t{number}_{turn}")

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for seconds in range(1, 20):
        desk.pipeline.replace_policies(Policies(default=RunPolicy(timeout_s=seconds)))
    for thread in threads:
        thread.join()

    assert set(desk.pipeline._routes) == set(desk.pipeline.registry.names())


async def test_new_policies_hold_for_new_calls_and_keep_what_was_learnt() -> None:
    policy = RunPolicy(rate="2/day", timeout_s=10, breaker=BreakerPolicy(threshold=2))
    desk = Desk(scripted(OSError("down"), ("sleep", 20), name="t"), policy=policy)
    await desk.call()
    running = asyncio.ensure_future(desk.pipeline.call("t"))
    await desk.clock.settle()

    changed = msgspec.structs.replace(policy, timeout_s=30)
    desk.pipeline.replace_policies(Policies(default=changed))
    await desk.clock.advance(10)

    assert reason(await running) == "attempt_timeout"
    assert desk.pipeline.breakers.state("t") == "open"
    assert reason(await desk.call()) == "rate_limited"
    assert desk.pipeline.policy_of("t").timeout_s == 30


async def test_policies_of_which_one_cannot_work_change_nothing_at_all() -> None:
    breaker = BreakerPolicy(threshold=2)
    policy = RunPolicy(rate="5/day", breaker=breaker, max_concurrency=3)
    good, bad = (scripted(OSError("down"), name=name) for name in ("good", "bad"))
    desk = Desk(good, bad, policy=policy)
    await desk.call("good")
    states = desk.pipeline.states.of_tool("good")
    circuit, room = states.find("circuit").circuit, states.find("bulkhead")

    with pytest.raises(ConfigurationError, match=r"bad\.cost"):
        desk.pipeline.replace_policies(
            Policies(
                tools={
                    "good": RunPolicy(breaker=BreakerPolicy(threshold=9), max_concurrency=1),
                    "bad": RunPolicy(rate="1/day", cost=9),
                }
            )
        )

    assert states.find("circuit").circuit is circuit
    assert room.limit == 3
    assert desk.pipeline.policy_of("good") == policy
    await desk.call("good")
    assert desk.pipeline.breakers.state("good") == "open"


async def test_the_questions_of_new_policies_are_asked() -> None:
    desk = Desk()

    desk.pipeline.replace_policies(Policies(default=RunPolicy(), risk=RiskSettings(allow=())))

    assert reason(await desk.call()) == "denied_by_policy"


# --- the end


async def test_a_pipeline_that_nobody_holds_is_forgotten_by_its_registry() -> None:
    registry = Registry([scripted("well", name="t")])
    pipeline = Pipeline(registry)
    await pipeline.call("t")
    gone = weakref.ref(pipeline)

    del pipeline
    gc.collect()

    assert gone() is None
    registry.register(scripted(name="u"))


async def test_leaving_the_block_ends_idle_threads() -> None:
    def works(arguments: Any, context: Any) -> str:
        return threading.current_thread().name

    tool = Tool(name="t", description="", input_schema={}, executor=works)
    async with Pipeline([tool]) as pipeline:
        name = (await pipeline.call("t")).text

    await until(lambda: name not in [thread.name for thread in threading.enumerate()])


@pytest.mark.parametrize(("given", "used"), [(5, "5"), (10**300, ("1" + "0" * 300)[:200])])
async def test_a_call_id_that_is_no_text_is_made_one(given: Any, used: str) -> None:
    async def answers(arguments: dict[str, Any], context: Any) -> str:
        return "x"

    pipeline = Pipeline([Tool(name="t", description="", input_schema={}, executor=answers)])

    for name in ("t", "unknown"):
        result = await pipeline.call(name, {}, call_id=given)
        assert result.call_id == used
    assert used[:5] in pipeline.trace.export_json()
    assert pipeline.trace.report()


SECRET = {
    "type": "object",
    "properties": {"password": {"type": "string", "writeOnly": True}},
}


@pytest.mark.parametrize("where", ["executor", "check", "prepare_arguments"])
async def test_what_foreign_code_raises_reaches_nobody_with_a_secret_argument(
    where: str, caplog: pytest.LogCaptureFixture
) -> None:
    class Odd(BaseException):
        pass

    def refuses(arguments: dict[str, Any], context: Any = None) -> Any:
        raise Odd(f"{arguments['password']} was refused")

    parts: dict[str, Any] = {"executor": lambda _arguments, _context: "ran", where: refuses}
    pipeline = Pipeline([Tool(name="t", description="", input_schema=SECRET, **parts)])

    with caplog.at_level("DEBUG", logger="seawall"):
        result = await pipeline.call("t", {"password": "my hunter2"})

    assert "Odd: … was refused" in result.render()
    assert "hunter2" not in caplog.text + result.render()


@pytest.mark.parametrize("said", [["x"], [None], 5])
async def test_a_check_that_gives_no_issues_refuses_safely(said: Any) -> None:
    tool = Tool(
        name="t",
        description="",
        input_schema={},
        executor=lambda _arguments, _context: "ran",
        check=lambda _: (None, said),
    )
    result = await Pipeline([tool]).call("t", {})

    assert result.failure is not None
    assert result.failure.code is FailureCode.INVALID_ARGUMENT


class Lazy(Mapping[str, Any]):
    def __getitem__(self, key: str) -> Any:
        raise RuntimeError(key)

    def __iter__(self) -> Iterator[str]:
        return iter(["n"])

    def __len__(self) -> int:
        return 1


class Proud(int):
    def __gt__(self, other: object) -> bool:
        raise RuntimeError


class Text(str):
    __slots__ = ()


@pytest.mark.parametrize(
    ("given", "refused"),
    [
        (Lazy(), True),
        (Text("x"), True),
        (Text('{"n": 1}'), False),
        ({"n": 1, "x": Proud(5)}, False),
    ],
)
async def test_odd_arguments_are_refused_or_read_and_never_raise(given: Any, refused: bool) -> None:
    async def answers(arguments: dict[str, Any], context: Any) -> str:
        return "x"

    tool = Tool(name="t", description="", input_schema=SCHEMA, executor=answers)
    result = await Pipeline([tool]).call("t", given)

    assert result.is_error is refused
    assert result.failure is None or result.failure.code is FailureCode.INVALID_ARGUMENT
