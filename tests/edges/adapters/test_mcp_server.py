"""A pipeline as an MCP server, asked by the SDK's own client."""

import asyncio
import contextlib
from typing import Any

import pytest
from mcp import Client, MCPError
from pydantic import BaseModel
from tests.edges.adapters.trade import Trade

import seawall
from seawall import (
    Annotations,
    Answer,
    EmbeddedResource,
    ImageContent,
    Pipeline,
    Policies,
    Risk,
    RunPolicy,
    TextContent,
    Tool,
    ToolContext,
    ToolResult,
    to_mcp_server,
)
from seawall.testing import FixedChance

READS = Annotations.for_reading()


class Served(Trade):
    """A pipeline of tools that do all that tools may do."""

    def __init__(self, **options: Any) -> None:
        super().__init__()
        tools = [
            seawall.tool(self.search, name="find", annotations=READS, title="Find"),
            seawall.tool(self.draw),
            seawall.tool(self.slow),
            seawall.tool(self.wait),
            seawall.tool(self.pay, risk=Risk.HIGH),
        ]
        self.pipeline = Pipeline(tools, chance=FixedChance(0.0), **options)
        self.server = to_mcp_server(self.pipeline, version="1.0")

    async def search(self, q: str) -> dict[str, str]:
        """Find an article."""
        await self.find(q)
        return {"found": q}

    async def draw(self) -> list[Any]:
        """Draw."""
        return [TextContent(text="a"), ImageContent(data="AAAA", mime_type="image/png")]

    async def slow(self, context: ToolContext) -> str:
        """Report progress."""
        context.progress("one", 1, 2)
        context.progress("two", 2, 2)
        return "done"


async def test_tools_are_listed_as_they_are() -> None:
    async with Client(Served().server) as client:
        listed = (await client.list_tools()).tools

    assert [tool.name for tool in listed] == ["find", "draw", "slow", "wait", "pay"]
    found = listed[0]
    assert (found.title, found.description) == ("Find", "Find an article.")
    assert found.input_schema["required"] == ["q"]
    assert found.annotations is not None
    assert (found.annotations.read_only_hint, found.annotations.destructive_hint) == (True, False)


async def test_text_structured_content_and_pictures_arrive() -> None:
    async with Client(Served().server) as client:
        found = await client.call_tool("find", {"q": "x"})
        drawn = await client.call_tool("draw", {})

    assert found.structured_content == {"found": "x"}
    assert [block.type for block in drawn.content] == ["text", "image"]
    assert not found.is_error


class Report(BaseModel):
    rows: list[str]


async def report(n: int) -> Report:
    """Give rows."""
    return Report(rows=["a row of many"] * n)


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_a_result_that_lost_its_structured_content_is_an_error_that_says_it_ran(
    mode: str,
) -> None:
    policies = Policies(RunPolicy(max_result_bytes=1_000))
    server = to_mcp_server(Pipeline([report], policies=policies))

    async with Client(server, mode=mode) as client:
        small = await client.call_tool("report", {"n": 2})
        large = await client.call_tool("report", {"n": 200})

    (text,) = [block.text for block in large.content if block.type == "text"]
    assert small.structured_content == {"rows": ["a row of many"] * 2}
    assert (large.is_error, large.structured_content) == (True, None)
    assert text.startswith("Error: output invalid: report ran")
    assert "Do not repeat this call" in text
    assert '{"rows":["a row of many"' in text
    assert (large.meta or {})["seawall/failure"]["may_have_run"] is True


LIST = {"type": "array", "items": {"type": "string"}}


@pytest.mark.parametrize(
    ("mode", "declared", "sent"), [("legacy", None, None), ("auto", LIST, ["a", "b"])]
)
async def test_what_is_no_object_is_promised_to_those_alone_who_can_take_it(
    mode: str, declared: Any, sent: Any
) -> None:
    async def names(*_: Any) -> list[str]:
        return ["a", "b"]

    pipeline = Pipeline([Tool("names", "Names.", {}, names, output_schema=LIST)])

    async with Client(to_mcp_server(pipeline), mode=mode) as client:
        (listed,) = (await client.list_tools()).tools
        found = await client.call_tool("names", {})

    assert listed.output_schema == declared
    assert (found.is_error, found.structured_content) == (False, sent)


@pytest.mark.parametrize(
    "given",
    [
        ToolResult(content=(EmbeddedResource(resource={"text": "t"}),)),
        ToolResult(content=(TextContent(text="t", annotations={"priority": "high"}),)),
        ToolResult(content=(TextContent(text="t"),), metadata={"o": object()}),
    ],
    ids=["resource", "annotations", "metadata"],
)
@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_what_the_protocol_does_not_take_makes_no_error_of_a_call_that_ran(
    given: ToolResult, mode: str
) -> None:
    async def odd(*_: Any) -> ToolResult:
        return given

    pipeline = Pipeline([Tool("odd", "Odd.", {}, odd)])

    async with Client(to_mcp_server(pipeline), mode=mode) as client:
        found = await client.call_tool("odd", {})

    assert [block.text for block in found.content if block.type == "text"] == ["t"]
    assert not found.is_error


async def test_progress_arrives_in_order_before_the_result() -> None:
    heard: list[Any] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append((progress, total, message))

    async with Client(Served().server) as client:
        await client.call_tool("slow", {}, progress_callback=hear)

    assert heard == [(1.0, 2.0, "one"), (2.0, 2.0, "two")]


async def test_an_unknown_name_is_an_error_of_the_protocol_with_near_names() -> None:
    async with Client(Served().server) as client:
        with pytest.raises(MCPError) as error:
            await client.call_tool("fnd", {})

    assert error.value.error.code == -32602
    assert error.value.error.data["hints"] == ["find"]


async def test_a_cancelled_request_cancels_the_tool() -> None:
    served = Served()

    async with Client(served.server) as client:
        calling = asyncio.ensure_future(client.call_tool("wait", {}))
        await served.begun.wait()
        calling.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await calling
        await asyncio.wait_for(served.cancelled.wait(), 5)


async def test_a_client_does_its_task_through_failure_retry_refusal_and_approval() -> None:
    answers = iter([Answer.DENY_ONCE, Answer.ALLOW_ONCE])
    served = Served(confirm=lambda *_: next(answers))
    served.failures = 1
    calls: list[tuple[str, dict[str, Any]]] = [
        ("find", {"q": "x"}),
        ("find", {"query": "x"}),
        ("pay", {"to": "ann"}),
        ("pay", {"to": "bob"}),
    ]

    async with Client(served.server) as client:
        found = [await client.call_tool(*call) for call in calls]

    texts = [one.content[0].text[:20] for one in found]  # type: ignore[union-attr]  # all are text
    assert texts == ['{"found":"x"}', "Error: argument miss", "Error: approval deni", "paid bob"]
    assert [one.is_error for one in found] == [False, True, True, False]
    assert (found[2].meta or {})["seawall/failure"]["reason"] == "approval_denied"
    assert served.runs == ["x", "x", "bob"]
