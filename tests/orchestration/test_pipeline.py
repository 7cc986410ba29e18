"""The front door: what a call takes, what comes back, and what may change meanwhile."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pytest
from tests.orchestration.desk import Desk, reason

from seawall import (
    ConfigurationError,
    FailureCode,
    Pipeline,
    Prepared,
    Registry,
    Risk,
    RunPolicy,
    Session,
    Tool,
    ToolResult,
)
from seawall.testing import scripted

if TYPE_CHECKING:
    from seawall import Invocation

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


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


# --- sessions and layers


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
