"""Pydantic AI as installed: its toolsets in a pipeline, and a pipeline as a toolset of an agent."""

import asyncio
import json
from typing import Any

import pytest
from pydantic import BaseModel, field_validator
from pydantic_ai import (
    Agent,
    ApprovalRequired,
    BinaryContent,
    CallDeferred,
    DeferredToolRequests,
    DeferredToolResults,
    DocumentUrl,
    ImageUrl,
    ModelRetry,
    RunContext,
    ToolReturn,
    UsageLimitExceeded,
    exceptions,
    messages,
)
from pydantic_ai import Tool as FunctionTool
from pydantic_ai.exceptions import UnexpectedModelBehavior
from pydantic_ai.messages import (
    ModelMessage,
    ModelResponse,
    RetryPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
)
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.models.test import TestModel
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import ExternalToolset, FunctionToolset
from tests.edges.adapters.trade import Trade

import seawall
from seawall import (
    Annotations,
    Answer,
    AudioContent,
    BreakerPolicy,
    ConfigurationError,
    EmbeddedResource,
    FailureCode,
    ImageContent,
    Pipeline,
    Policies,
    Replace,
    ResourceLink,
    Risk,
    RunPolicy,
    Session,
    TextContent,
    ToolContext,
    ToolResult,
    to_pydantic_ai,
    wrap,
)
from seawall.testing import FixedChance

READS = Annotations.for_reading()
FAILS = hasattr(exceptions, "ToolFailed")
"""Whether this version has failed tool returns."""
EVENTS = hasattr(messages, "CustomEvent")
"""Whether this version has events of applications."""


class Item(BaseModel):
    name: str

    @field_validator("name")
    @classmethod
    def known(cls, value: str) -> str:
        if value == "nothing":
            raise ValueError("no such item")
        return value


class Shop(Trade):
    """A toolset whose tools do all that tools may do."""

    def __init__(self, **options: Any) -> None:
        super().__init__()
        self.toolset: FunctionToolset[Any] = FunctionToolset(**options)
        self.lows: list[int] = []
        for one in (self.find, self.price, self.whose, self.low, self.draw, self.wait):
            self.toolset.add_function(one)
        self.toolset.add_function(self.pay, requires_approval=True)
        self.toolset.add_function(self.maybe)

    async def price(self, item: Item) -> dict[str, Any]:
        """Tell a price."""
        return {"item": item.name, "price": 5}

    async def whose(self, ctx: RunContext[Any], of: str) -> str:
        """Whose is it?"""
        return f"{of} of {ctx.deps} in {ctx.tool_call_id}"

    async def low(self, n: int) -> int:
        """Take a low number."""
        self.lows.append(n)
        if n > 5:
            raise ModelRetry("n must be at most 5")
        return n

    async def draw(self) -> ToolReturn:
        """Draw."""
        picture = BinaryContent(data=b"\x00\x00\x00", media_type="image/png")
        return ToolReturn(return_value=["a", picture], content="look", metadata={"n": 1})

    async def maybe(self, ctx: RunContext[Any], how: str) -> str:
        """Ask, defer, or end the run."""
        if how == "ask" and not ctx.tool_call_approved:
            raise ApprovalRequired(metadata={"why": "because"})
        if how == "defer":
            raise CallDeferred(metadata={"job": 7})
        if how == "limit":
            raise UsageLimitExceeded("too much")
        return "did"


class Page(BaseModel):
    """Data that has an address, as much data has."""

    url: str
    title: str


PAGE = Page(url="https://shop.test/x", title="Bolts")
PICTURE = BinaryContent(data=b"\x00\x00\x00", media_type="image/png")


class Gives:
    """Tools that say what they return, and how often they ran."""

    def __init__(self) -> None:
        self.ran = 0
        self.toolset = FunctionToolset([self.page, self.pages, self.mixed])
        for one in (self.picture, self.address, self.document):
            self.toolset.add_function(one)

    def page(self) -> Page:
        """Publish a page."""
        self.ran += 1
        return PAGE

    def pages(self) -> list[Page]:
        """List pages."""
        return [PAGE]

    def mixed(self) -> list[Any]:
        """Give data and a picture."""
        return [PAGE, PICTURE]

    def picture(self) -> BinaryContent:
        """Draw."""
        return PICTURE

    def address(self) -> ImageUrl:
        """Say where a picture is."""
        return ImageUrl(url="https://x.test/a.png")

    def document(self) -> DocumentUrl:
        """Say where a document is."""
        return DocumentUrl(url="https://x.test/a.pdf")


DATA: Any = {"url": "https://shop.test/x", "title": "Bolts"}
DRAWN = ImageContent(data="AAAA", mime_type="image/png")


@pytest.mark.parametrize(
    ("name", "content", "structured"),
    [
        ("page", json.dumps(DATA, separators=(",", ":")), DATA),
        ("pages", json.dumps([DATA], separators=(",", ":")), [DATA]),
        ("mixed", [TextContent(text=json.dumps(DATA, separators=(",", ":"))), DRAWN], None),
        ("picture", [DRAWN], None),
        ("address", [ResourceLink(uri="https://x.test/a.png", name="image-url")], None),
        ("document", [ResourceLink(uri="https://x.test/a.pdf", name="document-url")], None),
    ],
)
async def test_media_are_known_by_what_they_are_and_not_by_an_address_in_them(
    name: str, content: Any, structured: Any
) -> None:
    result = await pipeline_of(Gives().toolset, annotations={}).call(name)

    expected = [TextContent(text=content)] if isinstance(content, str) else content
    assert not result.is_error
    assert result.content == tuple(expected)
    assert result.structured_content == structured


async def test_a_medium_that_cannot_be_read_does_not_end_the_run() -> None:
    unreadable: list[Any] = [
        ImageContent(data="no base64!", mime_type="image/png"),
        AudioContent(data="A", mime_type="audio/wav"),
        EmbeddedResource(resource={"uri": "file:a", "mimeType": "application/pdf", "blob": "A"}),
    ]

    async def odd(*_: Any) -> ToolResult:
        return ToolResult(content=tuple(unreadable))

    found = await agent_of(Pipeline([seawall.Tool("odd", "", {}, odd)]), ("odd", {}, "c1")).run(
        "go"
    )

    said = str(returns(found)["c1"].content)
    assert [kind for kind in ("image/png", "audio/wav", "application/pdf") if kind in said] == [
        "image/png",
        "audio/wav",
        "application/pdf",
    ]


async def test_an_agent_gets_data_with_an_address_as_its_tool_gave_it() -> None:
    gives = Gives()

    found = await agent_of(pipeline_of(gives.toolset, annotations={}), ("page", {}, "c1")).run("go")

    assert returns(found)["c1"].content == PAGE
    assert gives.ran == 1


def pipeline_of(source: Any, **options: Any) -> Pipeline:
    annotations = options.pop("annotations", {"find": READS})
    return Pipeline(wrap(source, annotations=annotations), chance=FixedChance(0.0), **options)


def agent_of(pipeline: Any, *calls: tuple[str, Any, str], **options: Any) -> Agent[Any, Any]:
    approvals = options.pop("approvals", "pipeline")
    session = options.pop("session", None)

    def script(history: list[ModelMessage], _: Any) -> ModelResponse:
        said = sum(isinstance(one, ModelResponse) for one in history)
        if said < len(calls):
            name, arguments, call_id = calls[said]
            return ModelResponse(parts=[ToolCallPart(name, arguments, tool_call_id=call_id)])
        return ModelResponse(parts=[TextPart("done")])

    toolset = to_pydantic_ai(pipeline, approvals=approvals, session=session)
    options.setdefault("output_type", [str, DeferredToolRequests])
    return Agent(FunctionModel(script), toolsets=[toolset], **options)


def returns(result: Any) -> dict[str, Any]:
    """The tool returns and the wishes for another try, by call id."""
    parts = [part for message in result.all_messages() for part in message.parts]
    kinds = (ToolReturnPart, RetryPromptPart)
    return {part.tool_call_id: part for part in parts if isinstance(part, kinds)}


def failed(part: Any) -> bool:
    return getattr(part, "outcome", None) == "failed" or not FAILS


async def test_name_description_and_schema_come_through_both_ways() -> None:
    shop = Shop()
    registry = wrap(shop.toolset)
    theirs = TestModel(call_tools=[])
    ours = TestModel(call_tools=[])

    await Agent(theirs, toolsets=[shop.toolset]).run("go")
    await Agent(ours, toolsets=[to_pydantic_ai(registry)]).run("go")

    def said(model: TestModel) -> Any:
        assert model.last_model_request_parameters is not None
        tools = model.last_model_request_parameters.function_tools
        return [(one.name, one.description, one.parameters_json_schema) for one in tools]

    assert said(ours) == said(theirs)
    assert [tool.name for tool in registry] == [name for name, *_ in said(ours)]


@pytest.mark.parametrize("how", ["tool", "prefixed", "filtered"])
async def test_any_toolset_and_a_single_tool_can_be_taken(how: str) -> None:
    shop = Shop()
    sources: dict[str, Any] = {
        "tool": FunctionTool(shop.find),
        "prefixed": shop.toolset.prefixed("a"),
        "filtered": shop.toolset.filtered(lambda _, tool: tool.name == "find"),
    }
    name = "a_find" if how == "prefixed" else "find"

    registry = wrap(sources[how])
    result = await Pipeline(registry).call(name, {"q": "x"})

    assert result.text == "found x"
    assert len(registry.names()) == (8 if how == "prefixed" else 1)


def test_a_toolset_that_cannot_be_listed_is_said_at_once() -> None:
    def no(*_: Any) -> bool:
        raise RuntimeError("no")

    with pytest.raises(ConfigurationError, match="cannot be listed: RuntimeError: no"):
        wrap(Shop().toolset.filtered(no))


async def test_a_toolset_can_be_taken_while_a_loop_runs() -> None:
    assert "find" in wrap(Shop().toolset).names()


async def test_results_call_ids_and_dependencies_come_through() -> None:
    pipeline = pipeline_of(Shop().toolset)
    calls: list[tuple[str, Any, str]] = [
        ("find", {"q": "x"}, "c1"),
        ("price", {"name": "a"}, "c2"),
        ("whose", {"of": "x"}, "c3"),
    ]

    found = returns(await agent_of(pipeline, *calls).run("go", deps="ann"))
    alone = await pipeline.call(
        "whose", {"of": "y"}, call_id="own", session=Session(services={"deps": "bob"})
    )

    assert [found[key].content for key in ("c1", "c2", "c3")] == [
        "found x",
        {"item": "a", "price": 5},
        "x of ann in c3",
    ]
    assert {span.call_id for span in pipeline.trace.spans()} == {"c1", "c2", "c3", "own"}
    assert alone.text == "y of bob in own"


async def test_what_a_tool_returns_beside_its_value_comes_back_unharmed() -> None:
    pipeline = pipeline_of(Shop().toolset)

    result = await pipeline.call("draw")
    run = await agent_of(pipeline, ("draw", {}, "c1")).run("go")

    assert [type(block) for block in result.content] == [TextContent, ImageContent]
    assert returns(run)["c1"].metadata == {"n": 1}
    assert "look" in str(run.all_messages())


async def test_structured_content_pictures_and_details_of_a_tool_of_ours_arrive() -> None:
    async def both() -> ToolResult:
        picture = ImageContent(data="AAAA", mime_type="image/png")
        return ToolResult(content=(TextContent(text="a"), picture), details={"n": 2})

    async def data() -> dict[str, int]:
        return {"n": 3}

    agent = agent_of([both, data], ("both", {}, "c1"), ("data", {}, "c2"))

    found = returns(await agent.run("go"))

    assert found["c1"].content[0] == "a"
    assert found["c1"].content[1].media_type == "image/png"
    assert found["c1"].metadata == {"n": 2}
    assert found["c2"].content == {"n": 3}


class Redacts:
    def after(self, context: Any) -> Replace:
        return Replace(content=(TextContent(text="redacted"),))


async def test_what_a_hook_replaced_does_not_come_back() -> None:
    pipeline = pipeline_of(Shop().toolset, hooks=[Redacts()])

    run = await agent_of(pipeline, ("draw", {}, "c1")).run("go")

    assert returns(run)["c1"].content == "redacted"
    assert "look" not in str(run.all_messages())


@pytest.mark.parametrize(
    ("name", "arguments", "code"),
    [
        ("price", {"name": "nothing"}, FailureCode.INVALID_ARGUMENT),
        ("price", {}, FailureCode.INVALID_ARGUMENT),
        ("low", {"n": 6}, FailureCode.EXECUTION_FAILED),
        ("maybe", {"how": "ask"}, FailureCode.PERMISSION_DENIED),
        ("maybe", {"how": "defer"}, FailureCode.UNSUPPORTED),
        ("maybe", {"how": "limit"}, FailureCode.EXECUTION_FAILED),
        ("pay", {"to": "ann"}, FailureCode.PERMISSION_DENIED),
    ],
)
async def test_without_an_agent_all_that_a_tool_may_raise_is_a_failure(
    name: str, arguments: dict[str, Any], code: FailureCode
) -> None:
    policy = RunPolicy(breaker=BreakerPolicy(threshold=1))
    pipeline = pipeline_of(Shop().toolset, policies=Policies(default=policy))

    result = await pipeline.call(name, arguments)

    assert result.failure is not None
    assert result.failure.code is code
    assert pipeline.breakers.state(name) == "closed"


async def test_a_wish_for_another_try_goes_to_the_model_and_to_no_breaker() -> None:
    shop = Shop()
    policy = RunPolicy(max_retries=3, breaker=BreakerPolicy(threshold=1))
    pipeline = pipeline_of(
        shop.toolset, annotations={"low": READS}, policies=Policies(default=policy)
    )

    found = returns(
        await agent_of(pipeline, ("low", {"n": 9}, "c1"), ("low", {"n": 3}, "c2")).run("go")
    )

    assert "at most 5" in str(found["c1"].content)
    assert found["c2"].content == 3
    assert shop.lows == [9, 3]
    assert pipeline.breakers.state("low") == "closed"
    assert [span.reason for span in pipeline.trace.spans()] == ["", "handed_back"]


async def test_wishes_for_another_try_count_in_the_agents_budget_and_failures_do_not() -> None:
    shop = Shop()
    shop.failures = 100
    pipeline = pipeline_of(shop.toolset)
    failing = [("find", {"q": "x"}, f"c{n}") for n in range(4)]
    wishing = [("low", {"n": 9}, f"c{n}") for n in range(4)]

    assert (await agent_of(pipeline, *failing).run("go")).output == "done"
    with pytest.raises(UnexpectedModelBehavior, match="exceeded max"):
        await agent_of(pipeline, *wishing).run("go")


async def test_a_limit_of_the_run_ends_the_run() -> None:
    with pytest.raises(UsageLimitExceeded):
        await agent_of(pipeline_of(Shop().toolset), ("maybe", {"how": "limit"}, "c1")).run("go")


async def test_a_deferred_call_ends_the_run_with_what_it_waits_for() -> None:
    pipeline = pipeline_of(Shop().toolset)

    result = await agent_of(pipeline, ("maybe", {"how": "defer"}, "c1")).run("go")

    assert isinstance(result.output, DeferredToolRequests)
    assert [call.tool_call_id for call in result.output.calls] == ["c1"]
    assert result.output.metadata["c1"] == {"job": 7}


async def test_a_tool_that_is_run_elsewhere_stays_one() -> None:
    away = ExternalToolset([ToolDefinition(name="away")])
    pipeline = pipeline_of(away, annotations={})

    result = await agent_of(pipeline, ("away", {}, "c1")).run("go")
    alone = await pipeline.call("away")

    assert isinstance(result.output, DeferredToolRequests)
    assert alone.failure is not None
    assert alone.failure.code is FailureCode.UNSUPPORTED


@pytest.mark.parametrize("arguments", ['{"q": "x"', "[1]", {"q": 5}, {"q": "x", "r": 1}, {}])
async def test_arguments_are_checked_and_mended_by_the_pipeline(arguments: Any) -> None:
    agent = agent_of(pipeline_of(Shop().toolset), ("find", arguments, "c1"))

    found = returns(await agent.run("go"))

    if arguments == {"q": 5}:
        assert found["c1"].content == "found 5"
    else:
        assert "Error: argument" in str(found["c1"].content)
        assert failed(found["c1"])


async def test_the_tools_own_timeout_is_a_failure_that_may_be_tried_again() -> None:
    runs = []

    async def find(q: str) -> str:
        """Wait."""
        runs.append(q)
        await asyncio.Event().wait()
        return ""

    toolset = FunctionToolset([find], timeout=0.03)
    pipeline = pipeline_of(toolset, policies=Policies(default=RunPolicy(max_retries=1)))

    result = await pipeline.call("find", {"q": "x"})

    assert result.failure is not None
    assert result.failure.reason == "tool_timeout"
    assert runs == ["x", "x"]


@pytest.mark.parametrize("by", ["caller", "pipeline"])
async def test_a_cancel_reaches_the_tool_whoever_gives_up(by: str) -> None:
    shop = Shop()
    limit = RunPolicy(timeout_s=0.05 if by == "pipeline" else None)
    agent = agent_of(
        pipeline_of(shop.toolset, policies=Policies(default=limit)), ("wait", {}, "c1")
    )

    running = asyncio.ensure_future(agent.run("go"))
    await shop.begun.wait()
    if by == "caller":
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
    else:
        assert "attempt timeout" in str(returns(await running)["c1"].content)
    assert shop.cancelled.is_set()


@pytest.mark.skipif(not EVENTS, reason="this version has no events of applications")
async def test_progress_is_in_the_stream_of_events_before_the_result() -> None:
    async def slow(context: ToolContext) -> str:
        context.progress("half", 1, 2)
        context.progress("all", 2, 2)
        return "done"

    seen: list[Any] = []

    async def listen(_: Any, stream: Any) -> None:
        seen.extend([event async for event in stream])

    agent = Agent(TestModel(), toolsets=[to_pydantic_ai([slow])])
    await agent.run("go", event_stream_handler=listen)

    progress = [one for one in seen if getattr(one, "name", "") == "seawall.progress"]
    assert [(one.text, one.done, one.total, one.tool_name) for one in progress] == [
        ("half", 1, 2, "slow"),
        ("all", 2, 2, "slow"),
    ]
    kinds = [type(one).__name__ for one in seen]
    assert kinds.index("ToolProgress") < kinds.index("FunctionToolResultEvent")


async def test_a_conversation_is_one_session() -> None:
    seen: list[str] = []

    async def which(context: ToolContext) -> str:
        seen.append(context.session_id)
        return ""

    agent = agent_of([which], ("which", {}, "c1"), ("which", {}, "c2"))
    await agent.run("go", conversation_id="one")
    await agent.run("go", conversation_id="two")

    assert seen == ["one", "one", "two", "two"]


async def test_a_session_may_be_given_for_what_the_run_says() -> None:
    seen: list[str] = []

    async def which(context: ToolContext) -> str:
        seen.append(context.session_id)
        return ""

    agent = agent_of([which], ("which", {}, "c1"), session=lambda run: Session(run.deps))
    await agent.run("go", deps="ann")

    assert seen == ["ann"]


@pytest.mark.parametrize("of", ["theirs", "ours", "conditional"])
@pytest.mark.parametrize("approve", [True, False])
async def test_a_call_that_needs_a_person_ends_the_run_with_a_request(
    of: str, *, approve: bool
) -> None:
    shop = Shop()

    async def pay(to: str) -> str:
        return await shop.pay(to)

    source: Any = [seawall.tool(pay, risk=Risk.HIGH)] if of == "ours" else shop.toolset
    call = ("maybe", {"how": "ask"}, "c1") if of == "conditional" else ("pay", {"to": "a"}, "c1")
    pipeline = pipeline_of(source, annotations={})
    agent = agent_of(pipeline, call, approvals="framework")

    paused = await agent.run("go")
    assert isinstance(paused.output, DeferredToolRequests)
    assert [one.tool_call_id for one in paused.output.approvals] == ["c1"]
    assert shop.runs == []
    done = await agent.run(
        message_history=paused.all_messages(),
        deferred_tool_results=DeferredToolResults(approvals={"c1": approve}),
    )

    said = str(returns(done)["c1"].content)
    assert said == {"conditional": "did"}.get(of, "paid a") if approve else "denied" in said


async def test_an_approval_is_not_for_what_the_approved_tool_calls() -> None:
    async def round_about(context: ToolContext) -> str:
        return (await context.call_tool("maybe", {"how": "ask"})).render()

    registry = wrap([Shop().toolset, seawall.tool(round_about, risk=Risk.HIGH)])
    agent = agent_of(Pipeline(registry), ("round_about", {}, "c1"), approvals="framework")

    paused = await agent.run("go")
    done = await agent.run(
        message_history=paused.all_messages(),
        deferred_tool_results=DeferredToolResults(approvals={"c1": True}),
    )

    assert "approval required" in str(returns(done)["c1"].content)


async def test_an_agent_does_its_task_through_failure_retry_refusal_and_approval() -> None:
    shop = Shop()
    shop.failures = 1
    answers = iter([Answer.DENY_ONCE, Answer.ALLOW_ONCE])
    pipeline = pipeline_of(shop.toolset, confirm=lambda *_: next(answers))
    agent = agent_of(
        pipeline,
        ("find", {"q": "x"}, "retried"),
        ("price", {"name": "nothing"}, "failed"),
        ("price", {"name": "a"}, "mended"),
        ("pay", {"to": "ann"}, "refused"),
        ("pay", {"to": "bob"}, "approved"),
    )

    result = await agent.run("go")

    assert {key: str(part.content)[:20] for key, part in returns(result).items()} == {
        "retried": "found x",
        "failed": "Error: argument inva",
        "mended": "{'item': 'a', 'price",
        "refused": "Error: approval deni",
        "approved": "paid bob",
    }
    assert failed(returns(result)["refused"])
    assert (result.output, shop.runs) == ("done", ["x", "x", "bob"])


async def test_a_tool_goes_to_the_model_under_a_name_that_providers_take() -> None:
    trade = Trade()
    pay = seawall.tool(trade.pay, name="pay.all", risk=Risk.HIGH)
    agent = agent_of(Pipeline([pay]), ("pay_all", {"to": "ann"}, "c1"), approvals="framework")

    paused = await agent.run("go")
    assert isinstance(paused.output, DeferredToolRequests)
    assert [one.tool_name for one in paused.output.approvals] == ["pay_all"]
    results = DeferredToolResults(approvals={"c1": True})
    await agent.run(message_history=paused.all_messages(), deferred_tool_results=results)

    assert trade.runs == ["ann"]
