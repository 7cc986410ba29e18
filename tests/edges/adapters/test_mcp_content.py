"""Results between our shape and the protocol's types."""

from __future__ import annotations

from typing import Any

import pytest

from seawall.contract.content import (
    AudioContent,
    Content,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
)
from seawall.contract.failure import FailureCode
from seawall.contract.result import ToolResult
from seawall.edges.adapters._mcp_content import (
    Counted,
    content_for,
    content_of,
    meta_for,
    structured_for,
)

BLOCKS: list[Content] = [
    TextContent(text="a", meta={"k": 1}),
    ImageContent(data="AAAA", mime_type="image/png"),
    AudioContent(data="AAAA", mime_type="audio/wav"),
    EmbeddedResource(resource={"uri": "file:///a", "mimeType": "text/plain", "text": "b"}),
    ResourceLink(uri="https://x.test/a", name="a"),
]


@pytest.mark.parametrize("block", BLOCKS)
def test_each_block_comes_back_as_it_was(block: Content) -> None:
    assert content_of(content_for(ToolResult(content=(block,)))) == (block,)


def test_a_failure_is_said_in_full_beside_pictures_of_the_tool() -> None:
    failed = ToolResult.failed(FailureCode.TIMEOUT, "too slow", retry_after_s=2.0)

    (said,) = content_of(content_for(failed))

    assert said == TextContent(text=failed.render())
    assert meta_for(failed) == {
        "seawall/failure": {
            "code": "timeout",
            "message": "too slow",
            "reason": "timeout",
            "guidance": "Ask for less at once, or go on without this and say so.",
            "retryable": True,
            "retry_after_s": 2.0,
        }
    }


@pytest.mark.parametrize(
    ("structured", "is_error", "said"),
    [({"a": 1}, False, {"a": 1}), ({"a": 1}, True, None), ([1], False, None)],
)
def test_structured_content_is_an_object_of_a_success(
    structured: Any, is_error: bool, said: Any
) -> None:
    assert structured_for(ToolResult(structured_content=structured, is_error=is_error)) == said


def test_a_success_without_metadata_has_no_meta() -> None:
    assert meta_for(ToolResult()) is None
    assert meta_for(ToolResult(metadata={"a": 1})) == {"a": 1}


async def test_progress_without_an_amount_is_counted() -> None:
    sent: list[Any] = []

    async def send(*news: Any) -> None:
        sent.append(news)

    async with Counted(send) as counted:
        counted("a", None, None)
        counted("b", None, None)
        counted("c", 7.5, 9.0)

    assert sent == [(1.0, None, "a"), (2.0, None, "b"), (7.5, 9.0, "c")]
