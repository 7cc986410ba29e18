"""Results between our shape and the protocol's types."""

from __future__ import annotations

import json
from datetime import date
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
from seawall.contract.tool import Tool
from seawall.edges.adapters._mcp_content import (
    Counted,
    content_for,
    content_of,
    meta_for,
    promised_by,
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


@pytest.mark.parametrize(
    ("block", "said"),
    [
        (EmbeddedResource(resource={"text": "t"}), TextContent(text="t")),
        (
            EmbeddedResource(resource={"blob": "AAAA"}),
            TextContent(text='{"type":"resource","resource":{"blob":"AAAA"}}'),
        ),
        (TextContent(text="t", annotations={"priority": "high"}), TextContent(text="t")),
        (
            ImageContent(data="AAAA", mime_type="image/png", annotations={"audience": [7]}),
            ImageContent(data="AAAA", mime_type="image/png"),
        ),
    ],
)
def test_a_block_that_the_protocol_does_not_take_is_said_as_well_as_it_can_be(
    block: Content, said: Content
) -> None:
    assert content_of(content_for(ToolResult(content=(block,)))) == (said,)


def test_metadata_is_plain_data() -> None:
    meta = meta_for(ToolResult(metadata={"when": date(2026, 1, 2), "n": float("nan")}))

    assert meta is not None
    assert (meta["when"], meta["n"]) == ("2026-01-02", None)
    json.dumps(meta_for(ToolResult(metadata={"o": object()})), allow_nan=False)


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
    ("structured", "is_error", "version", "said"),
    [
        ({"a": 1}, False, "2025-11-25", {"a": 1}),
        ({"a": 1}, True, "2025-11-25", None),
        ([1], False, "2025-11-25", None),
        ([1], False, "2026-07-28", [1]),
        ([1], True, "2026-07-28", None),
    ],
)
def test_structured_content_is_that_of_a_success_and_an_object_in_older_revisions(
    structured: Any, is_error: bool, version: str, said: Any
) -> None:
    result = ToolResult(structured_content=structured, is_error=is_error)

    assert structured_for(result, version) == said


@pytest.mark.parametrize(
    ("schema", "version", "told"),
    [
        (None, "2026-07-28", False),
        ({"type": "object"}, "2025-11-25", True),
        ({"type": "array"}, "2025-11-25", False),
        ({"properties": {}}, "2025-11-25", False),
        ({"type": "array"}, "2026-07-28", True),
        ({"type": ["object", "null"]}, "2026-07-28", False),
        ({"anyOf": [{"type": "object"}, {"type": "null"}]}, "2026-07-28", False),
        ({"anyOf": [{"type": "object"}, True]}, "2026-07-28", True),
    ],
)
def test_an_output_schema_is_told_to_those_who_can_take_what_it_promises(
    schema: Any, version: str, told: bool
) -> None:
    async def run(*_: Any) -> None:
        """Do nothing."""

    tool = Tool("t", "", {}, run, output_schema=schema)

    assert promised_by(tool, version) == (schema if told else None)
    assert promised_by(None, version) is None


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
