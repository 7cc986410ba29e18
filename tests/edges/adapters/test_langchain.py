"""LangChain and LangGraph as installed: their tools in a pipeline, its tools in their agents."""

import asyncio
import threading
from collections.abc import Sequence
from typing import Annotated, Any

import pytest
from langchain.agents import create_agent, middleware
from langchain.agents.middleware import AgentMiddleware
from langchain.tools import ToolRuntime
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import (
    BaseTool,
    InjectedToolArg,
    InjectedToolCallId,
    StructuredTool,
    ToolException,
    tool,
)
from langchain_core.tools import Tool as TextTool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import InjectedState, ToolNode
from langgraph.types import Command, interrupt
from pydantic import BaseModel, field_validator
from tests.edges.adapters.trade import Trade

import seawall
from seawall import (
    Annotations,
    Answer,
    BreakerPolicy,
    ConfigurationError,
    FailureCode,
    ImageContent,
    Pipeline,
    Policies,
    Replace,
    Risk,
    RunPolicy,
    Session,
    TextContent,
    ToolContext,
    ToolResult,
    to_langchain,
    wrap,
)
from seawall.testing import FixedChance

READS = Annotations.for_reading()
AT_ONCE = FixedChance(0.0)
"""Retries wait for nothing."""


class Sum(BaseModel):
    """Two numbers."""

    a: int
    b: int

    @field_validator("b")
    @classmethod
    def not_seven(cls, value: int) -> int:
        if value == 7:
            raise ValueError("no sevens")
        return value


@tool(args_schema=Sum)
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@tool(args_schema={"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]})
async def look(q: str) -> str:
    """Look."""
    return f"seen {q}"


class Ready(BaseTool):
    name: str = "ready"
    description: str = "Says that it is ready."

    def _run(self) -> str:
        return threading.current_thread().name


@tool(response_format="content_and_artifact")
async def chart(n: int) -> tuple[list[Any], dict[str, int]]:
    """Draw."""
    image = {"type": "image", "base64": "AAAA", "mime_type": "image/png"}
    return ["a chart", image], {"n": n}


def pipeline_of(*tools: Any, **options: Any) -> Pipeline:
    return Pipeline(wrap(list(tools)), chance=AT_ONCE, **options)


def asked(name: str, arguments: dict[str, Any] | None = None, call_id: str = "c1") -> Any:
    return {"type": "tool_call", "name": name, "args": arguments or {}, "id": call_id}


def hardened(pipeline: Any, name: str | None = None, **options: Any) -> BaseTool:
    tools = to_langchain(pipeline, **options)
    return next(one for one in tools if name in (None, one.name))


class Model(GenericFakeChatModel):
    """Says what it was told to say, whatever tools it is given."""

    def bind_tools(self, tools: Sequence[Any], **_: Any) -> Any:
        return self


def model_that(*says: Any) -> Model:
    return Model(messages=iter([AIMessage("", tool_calls=[call]) for call in says] + [_DONE]))


_DONE = AIMessage("done")


async def answers(agent: Any, given: Any, thread: str = "t") -> dict[str, ToolMessage]:
    config = {"configurable": {"thread_id": thread}}
    found = await agent.ainvoke(given, config)
    messages = [one for one in found["messages"] if isinstance(one, ToolMessage)]
    return {str(one.tool_call_id): one for one in messages}


GO = {"messages": [("user", "go")]}


@pytest.mark.parametrize(
    ("given", "properties", "required"),
    [
        (add, {"a", "b"}, ["a", "b"]),
        (look, {"q"}, ["q"]),
        (Ready(), set(), []),
        (TextTool(name="say", description="Says.", func=str.upper), {"tool_input"}, ["tool_input"]),
    ],
)
def test_name_description_and_schema_come_through_both_ways(
    given: BaseTool, properties: set[str], required: list[str]
) -> None:
    registry = wrap(given)

    (ours,) = registry
    (back,) = to_langchain(registry)

    assert (ours.name, ours.description) == (given.name, given.description)
    assert (back.name, back.description) == (given.name, given.description)
    assert set(ours.input_schema["properties"]) == set(back.args) == properties
    assert list(ours.input_schema.get("required", [])) == required
    schema: Any = back.tool_call_schema
    assert schema["properties"] == ours.input_schema["properties"]


def test_what_else_a_tool_says_comes_through_both_ways() -> None:
    given = StructuredTool.from_function(
        coroutine=add.coroutine,  # type: ignore[attr-defined]  # it has one
        name="sum",
        description="Sums.",
        return_direct=True,
        tags=["maths"],
        metadata={"readOnlyHint": True, "team": "a"},
    )

    (ours,) = wrap(given)
    (back,) = to_langchain([ours])

    assert ours.annotations.read_only
    assert ours.tags == ("maths",)
    assert (back.return_direct, back.tags, back.metadata) == (True, ["maths"], given.metadata)


async def test_text_blocks_and_artifact_come_through_both_ways() -> None:
    pipeline = pipeline_of(chart)

    result = await pipeline.call("chart", {"n": 3})
    message = await hardened(pipeline).ainvoke(asked("chart", {"n": 3}))

    assert result.content[0] == TextContent(text="a chart")
    assert isinstance(result.content[1], ImageContent)
    assert result.details == message.artifact == {"n": 3}
    assert message.content[1] == {"type": "image", "base64": "AAAA", "mime_type": "image/png"}
    assert message.status == "success"


async def test_structured_content_of_a_tool_of_ours_is_the_artifact() -> None:
    async def price(item: str) -> dict[str, Any]:
        return {"item": item, "price": 5}

    message = await hardened([price]).ainvoke(asked("price", {"item": "x"}))

    assert message.artifact == {"item": "x", "price": 5}
    assert message.content == '{"item":"x","price":5}'


async def test_a_call_without_an_id_gives_the_content_or_raises() -> None:
    pipeline = pipeline_of(add)

    assert await hardened(pipeline).ainvoke({"a": 1, "b": 2}) == "3"
    with pytest.raises(ToolException, match="argument missing"):
        await hardened(pipeline).ainvoke({"a": 1})


async def test_an_exception_meant_for_the_model_is_an_answer_and_not_tried_again() -> None:
    calls = []

    @tool
    async def find(q: str) -> str:
        """Find."""
        calls.append(q)
        raise ToolException("nothing of that name")

    pipeline = Pipeline(
        wrap(find, annotations={"find": READS}),
        policies=Policies(default=RunPolicy(max_retries=3, breaker=BreakerPolicy(threshold=1))),
        chance=AT_ONCE,
    )

    message = await hardened(pipeline).ainvoke(asked("find", {"q": "x"}))

    assert (message.status, calls) == ("error", ["x"])
    assert "nothing of that name" in message.content
    assert pipeline.breakers.state("find") == "closed"


async def test_an_error_that_the_tool_handles_itself_is_an_error_for_us_too() -> None:
    @tool
    async def find(q: str) -> str:
        """Find."""
        raise ToolException(q)

    find.handle_tool_error = "try a shorter query"

    result = await pipeline_of(find).call("find", {"q": "x"})

    assert result.is_error
    assert "try a shorter query" in result.render()


@pytest.mark.parametrize(
    ("arguments", "path"), [({"a": "x", "b": 1}, "/a"), ({"a": 1, "b": 7}, "/b")]
)
async def test_what_schema_or_model_refuse_is_an_invalid_argument_at_its_path(
    arguments: dict[str, Any], path: str
) -> None:
    result = await pipeline_of(add).call("add", arguments)

    assert result.failure is not None
    assert result.failure.code is FailureCode.INVALID_ARGUMENT
    assert [issue.path for issue in result.failure.issues] == [path]


async def test_a_failure_says_what_programs_need_in_the_metadata_of_the_message() -> None:
    message = await hardened(pipeline_of(add)).ainvoke(asked("add", {"a": 1}))

    said = message.response_metadata["seawall"]
    assert (said["code"], said["reason"]) == ("invalid_argument", "argument_missing")


async def test_the_models_call_id_is_ours_and_the_tools() -> None:
    @tool
    async def which(own: Annotated[str, InjectedToolCallId]) -> str:
        """Which."""
        return own

    pipeline = pipeline_of(which)

    message = await hardened(pipeline).ainvoke(asked("which", {"own": "forged"}, "call-9"))

    assert (message.content, message.tool_call_id) == ("call-9", "call-9")
    assert [span.call_id for span in pipeline.trace.spans()] == ["call-9"]


async def test_an_argument_may_have_any_name() -> None:
    async def odd(config: str, runtime: str, run_manager: str) -> str:
        return config + runtime + run_manager

    back = hardened([odd])
    given = {"config": "a", "runtime": "b", "run_manager": "c"}

    assert (await back.ainvoke(asked("odd", given))).content == "abc"


async def test_a_tool_that_is_not_async_runs_in_a_thread_of_the_pipeline() -> None:
    result = await pipeline_of(Ready()).call("ready")

    assert result.text.startswith("seawall-tool-")


async def test_hardened_tools_serve_code_that_is_not_async() -> None:
    async with pipeline_of(add) as pipeline:
        message = await asyncio.to_thread(hardened(pipeline).invoke, asked("add", {"a": 1, "b": 2}))

    assert message.content == "3"


@pytest.mark.parametrize("by", ["caller", "pipeline"])
async def test_a_cancel_reaches_the_tool_whoever_gives_up(by: str) -> None:
    trade = Trade()
    limit = RunPolicy(timeout_s=0.05 if by == "pipeline" else None)
    back = hardened(pipeline_of(tool(trade.wait), policies=Policies(default=limit)))

    calling = asyncio.ensure_future(back.ainvoke(asked("wait")))
    await trade.begun.wait()
    if by == "caller":
        calling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await calling
    else:
        assert "attempt timeout" in (await calling).content
    assert trade.cancelled.is_set()


def graph_of(node: Any, **options: Any) -> Any:
    graph = StateGraph(MessagesState)
    graph.add_node("tools", node)
    graph.add_edge(START, "tools")
    return graph.compile(**options)


def calling(*calls: Any) -> dict[str, Any]:
    return {"messages": [AIMessage("", tool_calls=list(calls))]}


async def test_state_of_a_graph_reaches_a_tool_and_no_model_may_forge_it() -> None:
    @tool
    async def count(of: str, state: Annotated[dict[str, Any], InjectedState]) -> str:
        """Count."""
        return f"{len(state['messages'])} {of}"

    pipeline = pipeline_of(count)
    (ours,) = wrap(count)
    assert set(ours.input_schema["properties"]) == {"of"}

    forged = asked("count", {"of": "x", "state": {"messages": [1, 2, 3]}})
    found = await answers(graph_of(ToolNode(to_langchain(pipeline))), calling(forged))

    assert found["c1"].content == "1 x"


async def test_without_a_graph_the_session_is_the_state_and_its_services_the_rest() -> None:
    @tool
    async def who(
        user: Annotated[str, InjectedState("user")], db: Annotated[Any, InjectedToolArg]
    ) -> str:
        """Who."""
        return f"{user} {db}"

    session = Session(state={"user": "ann"}, services={"db": "sql"})

    assert (await pipeline_of(who).call("who", session=session)).text == "ann sql"


async def test_progress_of_a_tool_is_in_the_custom_stream_of_the_graph() -> None:
    async def slow(n: int, context: ToolContext) -> str:
        context.progress("half", 1, 2)
        return "done"

    graph = graph_of(ToolNode(to_langchain([slow])))

    news = [
        one async for one in graph.astream(calling(asked("slow", {"n": 1})), stream_mode="custom")
    ]

    assert news == [{"tool": "slow", "tool_call_id": "c1", "text": "half", "done": 1, "total": 2}]


@tool
async def writes(runtime: ToolRuntime) -> str:
    """Write."""
    runtime.stream_writer("half")
    return str(runtime.tool_call_id)


async def test_what_a_tool_writes_is_in_the_stream_of_a_graph_and_progress_without_one() -> None:
    pipeline = pipeline_of(writes)
    graph = graph_of(ToolNode(to_langchain(pipeline)))
    heard: list[Any] = []

    news = [one async for one in graph.astream(calling(asked("writes")), stream_mode="custom")]
    result = await pipeline.call(
        "writes", call_id="own", on_progress=lambda report, *_: heard.append(report)
    )

    assert news == heard == ["half"]
    assert result.text == "own"


async def test_a_command_goes_back_to_the_graph_as_it_is() -> None:
    @tool
    async def rename(to: str, own: Annotated[str, InjectedToolCallId]) -> Any:
        """Rename."""
        said = ToolMessage(f"renamed to {to}", tool_call_id=own)
        return Command(update={"name": to, "messages": [said]})

    pipeline = pipeline_of(rename)

    command: Any = await hardened(pipeline).ainvoke(asked("rename", {"to": "b"}))

    assert isinstance(command, Command)
    assert (command.update or {})["name"] == "b"
    assert (await pipeline.call("rename", {"to": "b"}, call_id="c")).text == "renamed to b"


class Redacts:
    def after(self, context: Any) -> Replace:
        return Replace(content=(TextContent(text="redacted"),))


async def test_what_a_hook_replaced_does_not_come_back() -> None:
    @tool
    async def key(own: Annotated[str, InjectedToolCallId]) -> Any:
        """Key."""
        return Command(update={"messages": [ToolMessage("sk-secret", tool_call_id=own)]})

    message = await hardened(pipeline_of(key, hooks=[Redacts()])).ainvoke(asked("key"))

    assert message.content == "redacted"


async def test_an_interrupt_passes_through_is_resumed_and_charged_to_no_breaker() -> None:
    runs = []

    @tool
    async def ask(question: str) -> str:
        """Ask."""
        runs.append(question)
        return f"said {interrupt(question)}"

    strict = RunPolicy(max_retries=3, breaker=BreakerPolicy(threshold=1))
    pipeline = Pipeline(
        wrap(ask, annotations={"ask": READS}), policies=Policies(default=strict), chance=AT_ONCE
    )
    graph = graph_of(ToolNode(to_langchain(pipeline)), checkpointer=InMemorySaver())

    await answers(graph, calling(asked("ask", {"question": "why"})))
    assert runs == ["why"]
    assert [(one.outcome, one.reason) for one in pipeline.trace.spans()] == [
        ("skipped", "handed_back")
    ]
    found = await answers(graph, Command(resume="because"))

    assert found["c1"].content == "said because"
    assert pipeline.breakers.state("ask") == "closed"


def finder(trade: Trade) -> BaseTool:
    return StructuredTool.from_function(coroutine=trade.find)


class RetriesTwice(AgentMiddleware):
    """What LangChain's `ToolRetryMiddleware` does, without its waits."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    async def awrap_tool_call(self, request: Any, handler: Any) -> Any:
        for _ in range(3):
            self.calls += 1
            try:
                return await handler(request)
            except Exception as error:  # noqa: BLE001  # as it does
                last = error
        raise last


async def test_retries_of_the_framework_are_not_multiplied_with_ours() -> None:
    trade = Trade(100)
    pipeline = Pipeline(
        wrap(finder(trade), annotations={"find": READS}),
        policies=Policies(default=RunPolicy(max_retries=2, breaker=None)),
        chance=AT_ONCE,
    )
    theirs = RetriesTwice()
    agent = create_agent(
        model_that(asked("find", {"q": "x"})), to_langchain(pipeline), middleware=[theirs]
    )

    found = await answers(agent, GO)

    assert found["c1"].status == "error"
    assert (trade.runs, theirs.calls) == (["x"] * 3, 1)


@pytest.mark.skipif(not hasattr(middleware, "ToolRetryMiddleware"), reason="this version has none")
async def test_the_frameworks_own_retries_have_nothing_to_repeat() -> None:
    trade = Trade(100)
    pipeline = Pipeline(
        wrap(finder(trade), annotations={"find": READS}),
        policies=Policies(default=RunPolicy(max_retries=1, breaker=None)),
        chance=AT_ONCE,
    )
    theirs = middleware.ToolRetryMiddleware(max_retries=3, initial_delay=0.0)
    agent = create_agent(
        model_that(asked("find", {"q": "x"})), to_langchain(pipeline), middleware=[theirs]
    )

    found = await answers(agent, GO)

    assert (found["c1"].status, trade.runs) == ("error", ["x"] * 2)


async def test_a_thread_is_one_session_and_another_thread_another() -> None:
    asked_about: list[str] = []

    def confirm(prepared: Any, _: Any) -> Answer:
        asked_about.append(prepared.session_id)
        return Answer.ALLOW_SESSION

    async def pay(to: str) -> str:
        return f"paid {to}"

    pipeline = Pipeline([seawall.tool(pay, risk=Risk.HIGH)], confirm=confirm)
    graph = graph_of(ToolNode(to_langchain(pipeline)), checkpointer=InMemorySaver())

    for thread in ("one", "one", "two"):
        await answers(graph, calling(asked("pay", {"to": "ann"})), thread)

    assert asked_about == ["one", "two"]


def paying(trade: Trade) -> Any:
    return seawall.tool(trade.pay, risk=Risk.HIGH)


@pytest.mark.parametrize(
    ("answer", "said", "paid"),
    [
        ({"decisions": [{"type": "approve"}]}, "paid ann", ["ann"]),
        (True, "paid ann", ["ann"]),
        ({"decisions": [{"type": "reject", "message": "too much"}]}, "denied this call: too", []),
        ({"decisions": []}, "a person denied this call", []),
        (False, "a person denied this call", []),
        (
            {
                "decisions": [
                    {"type": "edit", "edited_action": {"name": "pay", "args": {"to": "b"}}}
                ]
            },
            "paid b",
            ["b"],
        ),
        (
            {"decisions": [{"type": "edit", "edited_action": {"name": "rm", "args": {"to": "b"}}}]},
            "another tool was put in its place",
            [],
        ),
        (
            {"decisions": [{"type": "edit", "edited_action": {"name": "pay", "args": {}}}]},
            "argument missing",
            [],
        ),
    ],
)
async def test_a_call_that_needs_a_person_interrupts_the_graph(
    answer: Any, said: str, paid: list[str]
) -> None:
    trade = Trade()
    tools = to_langchain([paying(trade)], approvals="framework")
    graph = graph_of(ToolNode(tools), checkpointer=InMemorySaver())
    config: Any = {"configurable": {"thread_id": "t"}}

    paused = await graph.ainvoke(calling(asked("pay", {"to": "ann"})), config)
    question = paused["__interrupt__"][0].value
    assert (trade.runs, question["action_requests"][0]["args"]) == ([], {"to": "ann"})
    found = await answers(graph, Command(resume=answer))

    assert said in str(found["c1"].content)
    assert trade.runs == paid


async def test_a_denial_of_the_session_beats_an_approval_of_the_framework() -> None:
    trade = Trade()
    session = Session()
    tools = to_langchain([paying(trade)], approvals="framework", session=session)
    graph = graph_of(ToolNode(tools), checkpointer=InMemorySaver())
    await graph.ainvoke(calling(asked("pay", {"to": "ann"})), {"configurable": {"thread_id": "t"}})
    session.permissions.deny("pay")

    found = await answers(graph, Command(resume=True))

    assert (found["c1"].status, trade.runs) == ("error", [])


async def test_an_agent_does_its_task_through_failure_retry_refusal_and_approval() -> None:
    trade = Trade(1)
    pipeline = Pipeline(
        wrap([finder(trade), add, paying(trade)], annotations={"find": READS}), chance=AT_ONCE
    )
    agent = create_agent(
        model_that(
            asked("find", {"q": "x"}, "retried"),
            asked("add", {"a": 1, "b": 7}, "failed"),
            asked("add", {"a": 1, "b": 2}, "mended"),
            asked("pay", {"to": "ann"}, "refused"),
            asked("pay", {"to": "bob"}, "approved"),
        ),
        to_langchain(pipeline, approvals="framework"),
        checkpointer=InMemorySaver(),
    )

    await answers(agent, GO)
    await answers(agent, Command(resume={"decisions": [{"type": "reject"}]}))
    found = await answers(agent, Command(resume={"decisions": [{"type": "approve"}]}))

    assert {key: (one.status, str(one.content)[:20]) for key, one in found.items()} == {
        "retried": ("success", "found x"),
        "failed": ("error", "Error: argument inva"),
        "mended": ("success", "3"),
        "refused": ("error", "Error: approval deni"),
        "approved": ("success", "paid bob"),
    }
    assert trade.runs == ["x", "x", "bob"]


def test_who_asks_is_one_of_two() -> None:
    with pytest.raises(ConfigurationError, match="must be 'pipeline' or 'framework'"):
        to_langchain([add], approvals="nobody")  # type: ignore[arg-type]  # what a user may write


async def test_a_result_that_a_program_made_is_shown_as_it_is() -> None:
    async def both() -> ToolResult:
        return ToolResult(content=(TextContent(text="a"), TextContent(text="b")), details={"n": 1})

    message = await hardened([both]).ainvoke(asked("both"))

    assert message.content == [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    assert message.artifact == {"n": 1}


@pytest.mark.parametrize("approvals", ["pipeline", "framework"])
async def test_a_tool_goes_to_the_model_under_a_name_that_providers_take(approvals: Any) -> None:
    trade = Trade()
    pay = seawall.tool(trade.pay, name="pay.all", risk=Risk.LOW)
    tools = to_langchain([pay], approvals=approvals)
    call = {"name": "pay_all", "args": {"to": "ann"}, "id": "c1", "type": "tool_call"}

    said = await tools[0].ainvoke(call)

    assert [one.name for one in tools] == ["pay_all"]
    assert (said.name, said.content, trade.runs) == ("pay_all", "paid ann", ["ann"])


async def test_a_synchronous_call_inside_of_a_running_loop_says_how_to_wait_instead() -> None:
    with pytest.raises(RuntimeError, match=r"await tool\.ainvoke"):
        hardened(pipeline_of(add)).invoke(asked("add", {"a": 1, "b": 2}))


def test_a_synchronous_call_outside_of_a_loop_is_made() -> None:
    message = hardened(pipeline_of(add)).invoke(asked("add", {"a": 1, "b": 2}))

    assert message.content == "3"
