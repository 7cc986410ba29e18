"""The OpenAI Agents SDK as installed: its tools in a pipeline, a pipeline's in its agents."""

import asyncio
import dataclasses
import json
from collections.abc import AsyncIterator
from typing import Annotated, Any

import pytest
from agents import (
    Agent,
    FunctionTool,
    Model,
    ModelResponse,
    RunConfig,
    RunContextWrapper,
    Runner,
    ToolOutputFileContent,
    ToolOutputImage,
    Usage,
    function_tool,
)
from openai.types.responses import (
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
)
from pydantic import Field
from tests.edges.adapters.trade import Trade

import seawall
from seawall import (
    Annotations,
    Answer,
    AudioContent,
    BreakerPolicy,
    EmbeddedResource,
    FailureCode,
    ImageContent,
    Pipeline,
    Policies,
    ResourceLink,
    Risk,
    RunPolicy,
    Session,
    TextContent,
    ToolContext,
    ToolResult,
    to_openai_agents,
    wrap,
)
from seawall.contract.content import Content
from seawall.testing import FixedChance

READS = Annotations.for_reading()
QUIET = RunConfig(tracing_disabled=True)


class Script(Model):
    """Calls the tools it was told to call, then says that it is done."""

    def __init__(self, *calls: tuple[str, Any, str]) -> None:
        self._calls = list(calls)

    async def get_response(self, *_: Any, **__: Any) -> ModelResponse:
        output: Any
        if self._calls:
            name, arguments, call_id = self._calls.pop(0)
            text = arguments if isinstance(arguments, str) else json.dumps(arguments)
            output = ResponseFunctionToolCall(
                type="function_call", name=name, arguments=text, call_id=call_id
            )
        else:
            said = ResponseOutputText(type="output_text", text="done", annotations=[])
            output = ResponseOutputMessage(
                id="m", type="message", role="assistant", status="completed", content=[said]
            )
        return ModelResponse(output=[output], usage=Usage(), response_id=None)

    def stream_response(self, *_: Any, **__: Any) -> AsyncIterator[Any]:
        raise NotImplementedError


def agent(tools: Any, *calls: tuple[str, Any, str]) -> Agent[Any]:
    return Agent(name="a", model=Script(*calls), tools=list(tools))


async def outputs(tools: Any, *calls: tuple[str, Any, str], context: Any = None) -> dict[str, Any]:
    result = await Runner.run(agent(tools, *calls), "go", context=context, run_config=QUIET)
    return outputs_of(result)


def outputs_of(result: Any) -> dict[str, Any]:
    items = [one for one in result.to_input_list() if one.get("type") == "function_call_output"]
    return {one["call_id"]: one["output"] for one in items}


@function_tool
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@function_tool
async def whose(context: RunContextWrapper[Any], of: str) -> str:
    """Whose is it?"""
    return f"{of} of {context.context}"


def pipeline_of(*tools: Any, **options: Any) -> Pipeline:
    names = {"find": READS} if any(one.name == "find" for one in tools) else {}
    registry = wrap(list(tools), annotations=names)
    return Pipeline(registry, chance=FixedChance(0.0), **options)


def test_name_description_and_schema_come_through_both_ways() -> None:
    (ours,) = wrap(add)
    (back,) = to_openai_agents([ours])

    for one in (ours, back):
        assert (one.name, one.description) == ("add", "Add two numbers.")
    assert ours.input_schema == back.params_json_schema == add.params_json_schema
    assert back.strict_json_schema


def test_a_tool_of_ours_is_not_said_to_be_strict() -> None:
    async def free(x: int = 1) -> int:
        return x

    (back,) = to_openai_agents([free])

    assert not back.strict_json_schema
    assert back.params_json_schema["properties"]["x"]["default"] == 1


def test_a_tool_that_is_switched_off_is_left_out() -> None:
    off = function_tool(name_override="off", is_enabled=False)(lambda: "x")

    assert wrap([off, add]).names() == ("add",)


async def test_results_call_ids_and_the_context_of_the_run_come_through() -> None:
    pipeline = pipeline_of(add, whose)
    tools = to_openai_agents(pipeline)

    found = await outputs(
        tools, ("add", {"a": 1, "b": 2}, "c1"), ("whose", {"of": "x"}, "c2"), context="ann"
    )
    alone = await pipeline.call("whose", {"of": "y"}, session=Session(services={"context": "bob"}))

    assert found == {"c1": "3", "c2": "x of ann"}
    assert {span.call_id for span in pipeline.trace.spans()} >= {"c1", "c2"}
    assert alone.text == "y of bob"


async def test_pictures_come_through_both_ways() -> None:
    @function_tool
    async def draw() -> ToolOutputImage:
        """Draw."""
        return ToolOutputImage(image_url="data:image/png;base64,AAAA")

    async def ours() -> list[Any]:
        return [TextContent(text="a"), ImageContent(data="BBBB", mime_type="image/png")]

    pipeline = pipeline_of(draw, seawall.tool(ours))

    result = await pipeline.call("draw")
    found = await outputs(to_openai_agents(pipeline), ("draw", {}, "c1"), ("ours", {}, "c2"))

    assert result.content == (ImageContent(data="AAAA", mime_type="image/png"),)
    assert found["c1"][0]["image_url"] == "data:image/png;base64,AAAA"
    assert [one["type"] for one in found["c2"]] == ["input_text", "input_image"]


PDF = "data:application/pdf;base64,JVBERg=="


def blob(name: str, mime: str, data: str) -> EmbeddedResource:
    return EmbeddedResource(resource={"uri": f"file:{name}", "mimeType": mime, "blob": data})


@pytest.mark.parametrize(
    ("given", "content"),
    [
        (
            ToolOutputFileContent(file_data=PDF, filename="a.pdf"),
            blob("a.pdf", "application/pdf", "JVBERg=="),
        ),
        (
            ToolOutputFileContent(file_data="JVBERg==", filename="a.pdf"),
            blob("a.pdf", "application/pdf", "JVBERg=="),
        ),
        (
            ToolOutputFileContent(file_data="AAAA"),
            blob("file", "application/octet-stream", "AAAA"),
        ),
        (ToolOutputFileContent(file_url=PDF), blob("file", "application/pdf", "JVBERg==")),
        (
            ToolOutputFileContent(file_url="https://x.test/a", filename="a"),
            ResourceLink(uri="https://x.test/a", name="a"),
        ),
        (ToolOutputFileContent(file_id="file-1"), ResourceLink(uri="file-1", name="file")),
        (ToolOutputImage(file_id="file-1"), ResourceLink(uri="file-1", name="image")),
        (
            ToolOutputFileContent(file_data="data:audio/wav;base64,AAAA", filename="audio"),
            AudioContent(data="AAAA", mime_type="audio/wav"),
        ),
        ({"type": "text", "text": "a"}, TextContent(text="a")),
    ],
)
async def test_what_the_sdk_hands_to_its_model_is_read_as_what_it_is(
    given: Any, content: Content
) -> None:
    @function_tool
    async def give() -> Any:
        """Give."""
        return given

    result = await pipeline_of(give).call("give")

    assert result.content == (content,)


@pytest.mark.parametrize(
    "given",
    [
        {"type": "file", "path": "/srv/a.txt", "size": 12},
        {"type": "text", "lines": ["a", "b"]},
        {"type": "text", "text": "a", "lines": ["a"]},
        {"type": "image"},
        {"type": ["text"]},
        [{"type": "file", "path": "/srv/a.txt"}],
        [],
    ],
)
async def test_data_that_has_a_type_of_its_own_is_data(given: Any) -> None:
    @function_tool
    async def give() -> Any:
        """Give."""
        return given

    result = await pipeline_of(give).call("give")

    assert result.structured_content == given
    assert json.loads(result.text) == given


async def test_a_medium_that_cannot_be_read_is_said_so_and_not_sent() -> None:
    unreadable: list[Content] = [
        ImageContent(data="no base64!", mime_type="image/png"),
        AudioContent(data="A", mime_type="audio/wav"),
        EmbeddedResource(resource={"uri": "file:a", "mimeType": "application/pdf", "blob": "A"}),
    ]

    async def odd(*_: Any) -> ToolResult:
        return ToolResult(content=(*unreadable, ImageContent(data="AAAA", mime_type="image/png")))

    pipeline = Pipeline([seawall.Tool("odd", "", {}, odd)])

    found = await outputs(to_openai_agents(pipeline), ("odd", {}, "c1"))

    assert [one["type"] for one in found["c1"]] == ["input_text"] * 3 + ["input_image"]
    assert "image/png that cannot be read" in found["c1"][0]["text"]


async def test_what_a_tool_promises_as_data_is_data_whatever_its_type() -> None:
    @function_tool
    async def give() -> dict[str, str]:
        """Give."""
        return {"type": "text", "text": "a"}

    if not hasattr(give, "output_json_schema"):
        pytest.skip("this version knows no output schema")
    schema = {
        "type": "object",
        "properties": {"type": {"type": "string"}, "text": {"type": "string"}},
        "required": ["type", "text"],
        "additionalProperties": False,
    }

    result = await pipeline_of(dataclasses.replace(give, output_json_schema=schema)).call("give")

    assert result.structured_content == {"type": "text", "text": "a"}


@pytest.mark.parametrize("arguments", [{"a": "x", "b": 1}, '{"a": 1'])
async def test_arguments_are_checked_and_mended_by_the_pipeline(arguments: Any) -> None:
    found = await outputs(
        to_openai_agents(pipeline_of(add)),
        ("add", arguments, "c1"),
        ("add", {"a": "1", "b": 2}, "c2"),
    )

    assert found["c1"].startswith("Error: argument")
    assert found["c2"] == "3"


async def test_what_only_the_tool_can_check_is_an_invalid_argument() -> None:
    @function_tool(strict_mode=False)
    async def even(n: Annotated[int, Field(multiple_of=2)]) -> int:
        """Even."""
        return n

    loose = seawall.Tool(
        **{f: getattr(next(iter(wrap(even))), f) for f in FIELDS} | {"input_schema": {}}
    )

    result = await Pipeline([loose]).call("even", {"n": 3})

    assert result.failure is not None
    assert result.failure.code is FailureCode.INVALID_ARGUMENT


FIELDS = ("name", "description", "executor", "input_schema")


async def test_a_failure_is_seen_and_tried_again_although_the_sdk_would_make_a_text_of_it() -> None:
    trade = Trade(1)

    found = await outputs(
        to_openai_agents(pipeline_of(function_tool(trade.find))), ("find", {"q": "x"}, "c1")
    )

    assert (found["c1"], trade.runs) == ("found x", ["x", "x"])


async def test_failures_open_the_circuit() -> None:
    trade = Trade(100)
    policy = RunPolicy(breaker=BreakerPolicy(threshold=1), max_retries=0)
    pipeline = pipeline_of(function_tool(trade.find), policies=Policies(default=policy))
    tools = to_openai_agents(pipeline)

    found = await outputs(tools, ("find", {"q": "x"}, "c1"), ("find", {"q": "y"}, "c2"))

    assert "ConnectionError: reset" in found["c1"]
    assert "circuit open" in found["c2"]
    assert trade.runs == ["x"]


async def test_what_the_tool_says_of_its_failures_is_said_once_no_retry_is_left() -> None:
    def say(_: Any, error: Exception) -> str:
        return f"sorry: {error}"

    trade = Trade(100)
    find = function_tool(trade.find, failure_error_function=say)

    found = await outputs(to_openai_agents(pipeline_of(find)), ("find", {"q": "x"}, "c1"))

    assert found["c1"].startswith("sorry: tool_failed: ConnectionError")
    assert trade.runs == ["x", "x"]


async def test_a_tool_that_is_to_end_the_run_by_its_failure_does() -> None:
    trade = Trade(100)
    find = function_tool(trade.find, failure_error_function=None)

    with pytest.raises(Exception, match="ConnectionError"):
        await outputs(to_openai_agents(pipeline_of(find)), ("find", {"q": "x"}, "c1"))

    assert trade.runs == ["x", "x"]


async def test_the_tools_own_timeout_bounds_each_attempt() -> None:
    runs = []

    @function_tool(timeout=0.03)
    async def find(q: str) -> str:
        """Wait."""
        runs.append(q)
        await asyncio.Event().wait()
        return ""

    pipeline = pipeline_of(find, policies=Policies(default=RunPolicy(max_retries=1)))

    found = await outputs(to_openai_agents(pipeline), ("find", {"q": "x"}, "c1"))

    assert "tool timeout" in found["c1"]
    assert runs == ["x", "x"]


@pytest.mark.parametrize("by", ["caller", "pipeline"])
async def test_a_cancel_reaches_the_tool_whoever_gives_up(by: str) -> None:
    trade = Trade()
    limit = RunPolicy(timeout_s=0.05 if by == "pipeline" else None)
    tools = to_openai_agents(
        pipeline_of(function_tool(trade.wait), policies=Policies(default=limit))
    )

    running = asyncio.ensure_future(outputs(tools, ("wait", {}, "c1")))
    await trade.begun.wait()
    if by == "caller":
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
    else:
        assert "attempt timeout" in (await running)["c1"]
    assert trade.cancelled.is_set()


def pay_tool(trade: Trade, needs_approval: Any = True) -> FunctionTool:
    return function_tool(trade.pay, needs_approval=needs_approval)


def test_a_tool_that_needs_approval_is_a_risk() -> None:
    (ours,) = wrap(pay_tool(Trade()))

    assert ours.risk is Risk.HIGH


@pytest.mark.parametrize(("approve", "said"), [(True, "paid ann"), (False, "not approved")])
@pytest.mark.parametrize("of", ["theirs", "ours"])
async def test_a_call_that_needs_a_person_interrupts_the_run(
    approve: bool, said: str, of: str
) -> None:
    trade = Trade()
    tool: Any = pay_tool(trade) if of == "theirs" else seawall.tool(trade.pay, risk=Risk.HIGH)
    paying = agent(
        to_openai_agents([tool] if of == "ours" else wrap(tool), approvals="framework"),
        ("pay", {"to": "ann"}, "c1"),
    )

    paused = await Runner.run(paying, "go", run_config=QUIET)
    assert (len(paused.interruptions), trade.runs) == (1, [])
    state = paused.to_state()
    for item in paused.interruptions:
        state.approve(item) if approve else state.reject(item)
    found = outputs_of(await Runner.run(paying, state, run_config=QUIET))

    assert said in found["c1"]
    assert trade.runs == (["ann"] if approve else [])


async def test_a_call_that_needs_nobody_interrupts_nothing() -> None:
    found = await outputs(
        to_openai_agents(wrap(add), approvals="framework"), ("add", {"a": 1, "b": 2}, "c1")
    )

    assert found["c1"] == "3"


async def test_a_pipeline_that_asks_by_itself_interrupts_nothing() -> None:
    trade = Trade()
    pipeline = Pipeline(wrap(pay_tool(trade)), confirm=lambda *_: Answer.ALLOW_ONCE)

    tools = to_openai_agents(pipeline, approvals="framework")
    found = await outputs(tools, ("pay", {"to": "ann"}, "c1"))

    assert (found["c1"], trade.runs) == ("paid ann", ["ann"])


async def test_a_tool_that_asks_by_its_arguments_asks_in_a_run_and_refuses_without_one() -> None:
    async def for_ann(_: Any, arguments: dict[str, Any], __: str) -> bool:
        return bool(arguments["to"] == "ann")

    trade = Trade()
    pipeline = Pipeline(wrap(pay_tool(trade, for_ann)))
    paying = agent(
        to_openai_agents(pipeline), ("pay", {"to": "bob"}, "c1"), ("pay", {"to": "ann"}, "c2")
    )

    paused = await Runner.run(paying, "go", run_config=QUIET)
    alone = await pipeline.call("pay", {"to": "ann"})

    assert (len(paused.interruptions), trade.runs) == (1, ["bob"])
    assert alone.failure is not None
    assert alone.failure.reason == "approval_required"


async def test_what_another_tool_calls_was_asked_about_by_nobody() -> None:
    async def always(*_: Any) -> bool:
        return True

    async def round_about(context: ToolContext) -> str:
        return (await context.call_tool("pay", {"to": "ann"})).render()

    trade = Trade()
    pipeline = Pipeline(wrap([pay_tool(trade, always), round_about]))

    found = await outputs(to_openai_agents(pipeline), ("round_about", {}, "c1"))

    assert "approval required" in found["c1"]
    assert trade.runs == []


async def test_a_run_is_one_session() -> None:
    seen: list[str] = []

    async def which(context: ToolContext) -> str:
        seen.append(context.session_id)
        return ""

    tools = to_openai_agents([which])
    for _ in range(2):
        await outputs(tools, ("which", {}, "c1"), ("which", {}, "c2"))

    assert seen[0] == seen[1] != seen[2] == seen[3]


async def test_an_agent_does_its_task_through_failure_retry_refusal_and_approval() -> None:
    trade = Trade(1)
    pipeline = pipeline_of(function_tool(trade.find), add, pay_tool(trade))
    doing = agent(
        to_openai_agents(pipeline, approvals="framework"),
        ("find", {"q": "x"}, "retried"),
        ("add", {"a": "one", "b": 2}, "failed"),
        ("add", {"a": 1, "b": 2}, "mended"),
        ("pay", {"to": "ann"}, "refused"),
        ("pay", {"to": "bob"}, "approved"),
    )

    result = await Runner.run(doing, "go", run_config=QUIET)
    state = result.to_state()
    state.reject(result.interruptions[0])
    result = await Runner.run(doing, state, run_config=QUIET)
    state = result.to_state()
    state.approve(result.interruptions[0])
    result = await Runner.run(doing, state, run_config=QUIET)

    assert {key: said[:15] for key, said in outputs_of(result).items()} == {
        "retried": "found x",
        "failed": "Error: argument",
        "mended": "3",
        "refused": "Tool execution ",
        "approved": "paid bob",
    }
    assert (result.final_output, trade.runs) == ("done", ["x", "x", "bob"])


async def test_a_tool_goes_to_the_model_under_a_name_that_providers_take() -> None:
    trade = Trade()
    pay = seawall.tool(trade.pay, name="pay.all", risk=Risk.HIGH)
    paying = agent(to_openai_agents([pay], approvals="framework"), ("pay_all", {"to": "ann"}, "c1"))

    paused = await Runner.run(paying, "go", run_config=QUIET)
    state = paused.to_state()
    state.approve(paused.interruptions[0])
    found = outputs_of(await Runner.run(paying, state, run_config=QUIET))

    assert [one.name for one in paying.tools] == ["pay_all"]
    assert (found["c1"], trade.runs) == ("paid ann", ["ann"])
