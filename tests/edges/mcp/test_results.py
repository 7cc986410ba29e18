from typing import Any

import msgspec
import pytest

from seawall import FailureCode, Pipeline, TextContent, Tool, ToolResult
from seawall.contract.failure import Failure
from seawall.edges.mcp.results import FAILURE_KEY, result_from_mcp, result_to_mcp

TEXT = {"type": "text", "text": "hello"}
ANSWERS: list[dict[str, Any]] = [
    {"content": []},
    {"content": [TEXT], "isError": False},
    {"content": [TEXT], "isError": True},
    {"content": [TEXT], "structuredContent": {"a": [1, None]}, "_meta": {"vendor/k": {"x": 1}}},
    {"content": [TEXT], "structuredContent": None, "resultType": "complete"},
    {"content": [{**TEXT, "annotations": {"audience": ["user"]}, "_meta": {"k": 1}}]},
    {"content": [{"type": "image", "data": "AA==", "mimeType": "image/png"}]},
    {"content": [{"type": "audio", "data": "AA==", "mimeType": "audio/wav"}]},
    {"content": [{"type": "resource", "resource": {"uri": "a:b", "text": "t", "_meta": {}}}]},
    {"content": [{"type": "resource_link", "uri": "a:b", "name": "n", "icons": [{"src": "i"}]}]},
    {"content": [{"type": "hologram", "points": [1, 2]}, TEXT, {**TEXT, "later": True}]},
]


@pytest.mark.parametrize("said", ANSWERS)
def test_what_a_server_answered_is_said_again_without_loss(said: dict[str, Any]) -> None:
    assert result_to_mcp(result_from_mcp(said)) == said


@pytest.mark.parametrize("said", ANSWERS)
async def test_it_is_said_so_after_the_pipeline_too(said: dict[str, Any]) -> None:
    async def run(arguments: dict[str, Any], context: Any) -> ToolResult:
        return result_from_mcp(said)

    result = await Pipeline([Tool("t", "", {}, run)]).call("t")

    assert result_to_mcp(result) == said


def test_an_error_result_is_the_tools_answer_and_not_worth_another_try() -> None:
    result = result_from_mcp({"content": [TEXT], "isError": True})

    assert result.failure is not None
    assert result.failure.message == "hello"
    assert result.failure.retryable is False


def test_a_block_of_an_unknown_kind_is_read_as_its_json() -> None:
    result = result_from_mcp({"content": [{"type": "hologram", "points": [1]}]})

    assert result.text == '{"type": "hologram", "points": [1]}'


@pytest.mark.parametrize("content", ["text", [1], {"type": "text"}, None])
def test_content_that_is_no_list_of_blocks_is_refused(content: Any) -> None:
    with pytest.raises(ValueError, match="list of blocks"):
        result_from_mcp({"content": content})


def refused() -> ToolResult:
    return ToolResult.failed(
        FailureCode.RATE_LIMITED,
        "too many calls",
        tool="t",
        layer="rate_limit",
        retry_after_s=2.5,
        may_have_run=False,
    )


def test_a_refusal_says_its_reason_and_delay_as_data() -> None:
    said = result_to_mcp(refused())

    assert said["isError"] is True
    assert said["_meta"][FAILURE_KEY] == said["structuredContent"]
    assert said["structuredContent"]["reason"] == "rate_limited"
    assert said["structuredContent"]["retry_after_s"] == 2.5
    assert said["structuredContent"]["may_have_run"] is False
    assert "too many calls" in said["content"][0]["text"]


def test_a_tool_with_an_output_schema_has_no_foreign_structured_content() -> None:
    async def run(arguments: dict[str, Any], context: Any) -> None:
        """Do nothing."""

    said = result_to_mcp(refused(), Tool("t", "", {}, run, output_schema={"type": "object"}))

    assert "structuredContent" not in said
    assert said["_meta"][FAILURE_KEY]["code"] == "rate_limited"


def test_a_success_that_lost_what_its_schema_promised_is_an_error_that_says_it_ran() -> None:
    async def run(arguments: dict[str, Any], context: Any) -> None:
        """Do nothing."""

    tool = Tool("t", "", {}, run, output_schema={"type": "object"})
    came = result_from_mcp({"content": [TEXT], "structuredContent": {"a": 1}, "isError": False})
    cut = msgspec.structs.replace(came, structured_content=None)

    said = result_to_mcp(cut, tool)

    assert result_to_mcp(came, tool) == result_to_mcp(came)
    assert said["isError"] is True
    assert said["content"][0]["text"].startswith("Error: output invalid: t ran")
    assert said["content"][1:] == [TEXT]
    assert "structuredContent" not in said
    assert said["_meta"][FAILURE_KEY]["may_have_run"] is True


def test_a_refusal_is_read_back_as_the_same_failure() -> None:
    result = refused()

    assert result_from_mcp(result_to_mcp(result)).failure == result.failure


@pytest.mark.parametrize("odd", [{"code": "nonsense", "message": "m"}, {"message": 3}, "text"])
def test_a_failure_of_unknown_form_leaves_the_text(odd: Any) -> None:
    said = {"content": [TEXT], "isError": True, "_meta": {FAILURE_KEY: odd}}

    failure = result_from_mcp(said).failure

    assert failure is not None
    assert failure.message == "hello"


def test_a_server_answer_that_was_replaced_is_no_error_any_more() -> None:
    result = result_from_mcp({"content": [TEXT], "isError": True})
    mended = msgspec.structs.replace(
        result, is_error=False, failure=None, content=(TextContent(text="fine"),)
    )

    assert result_to_mcp(mended)["isError"] is False
    assert result_to_mcp(mended)["content"] == [{"type": "text", "text": "fine"}]


def test_an_error_without_content_says_its_failure() -> None:
    failure = Failure(code=FailureCode.TIMEOUT, message="no answer", layer="timeout")

    said = result_to_mcp(ToolResult(is_error=True, failure=failure))

    assert said["content"][0]["text"] == failure.render()
