"""What counts of a result."""

from __future__ import annotations

import math
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
from seawall.contract.failure import FailureCode, Issue
from seawall.contract.result import ToolResult
from seawall.layers.result_sizes import FRAME_BYTES, json_size, size_of


@pytest.mark.parametrize(
    ("block", "size"),
    [
        (TextContent(text="abc"), 3),
        (TextContent(text="äöü€😀"), 13),
        (TextContent(text="\ud800"), 3),
        (TextContent(text="abc", annotations={"a": 1}), 3 + len('[{"a":1},null]')),
        (TextContent(text="abc", meta={"a": 1}), 3 + len('[null,{"a":1}]')),
        (ImageContent(data="QUJD", mime_type="image/png"), 4 + 9),
        (AudioContent(data="QUJD", mime_type="audio/wav"), 4 + 9),
        (
            EmbeddedResource(resource={"uri": "a:b", "text": "ä"}),
            len('{"type":"resource","resource":{"uri":"a:b","text":"ä"}}'.encode()),
        ),
        (
            ResourceLink(uri="a:b", name="n"),
            len('{"type":"resource_link","uri":"a:b","name":"n"}'),
        ),
    ],
)
def test_a_block_counts_what_the_model_gets_of_it(block: Content, size: int) -> None:
    assert size_of(ToolResult(content=(block,))) == size
    assert size_of(ToolResult(content=(block, block))) == 2 * size + FRAME_BYTES


def test_structured_content_counts_as_json_and_what_is_hidden_does_not() -> None:
    result = ToolResult(
        structured_content={"a": [1, 2]}, details="x" * 100, metadata={"b": "x" * 100}
    )

    assert size_of(result) == len('{"a":[1,2]}')


def test_the_text_of_a_failure_counts_once() -> None:
    refusal = ToolResult.failed(FailureCode.TIMEOUT, "too late")
    own = ToolResult(content=(TextContent(text="more"),), is_error=True, failure=refusal.failure)

    assert size_of(refusal) == len(refusal.text)
    assert size_of(own) == len(refusal.text) + len("more")


def test_issues_and_hints_of_a_failure_count() -> None:
    plain = ToolResult.failed(FailureCode.INVALID_ARGUMENT, "no")
    full = ToolResult.failed(
        FailureCode.INVALID_ARGUMENT, "no", issues=(Issue("", "x" * 100),), hints=("y" * 50,)
    )

    assert size_of(full) == size_of(plain) + 150


def deep(levels: int) -> Any:
    value: Any = []
    for _ in range(levels):
        value = [value]
    return value


cyclic: list[Any] = []
cyclic.append(cyclic)


@pytest.mark.parametrize(
    ("value", "size"),
    [
        (2**80, 25),
        (-(2**80), 26),
        ("\ud800", len('"\\ud800"')),
        (object(), len('"<object>"')),
        ({1, 2}, 5),
        (deep(100_000), math.inf),
        (cyclic, math.inf),
    ],
)
def test_data_that_json_can_hardly_say_is_counted_or_infinite(value: Any, size: float) -> None:
    assert json_size(value) == size
