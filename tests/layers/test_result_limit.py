"""Results that are too large, and those that only look so."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seawall.contract.content import (
    AudioContent,
    Content,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
)
from seawall.contract.failure import Failure, FailureCode, Issue
from seawall.contract.policy import RunPolicy
from seawall.contract.result import ToolResult
from seawall.layers.result_limit import ResultLimit, limited
from seawall.layers.result_sizes import size_of
from seawall.pipeline.layer import compose
from seawall.testing import LayerBench

TESTS = Path(__file__).parents[1]
CASES = {
    case["id"]: case for case in json.loads((TESTS / "cases" / "result_limit.json").read_text())
}


def image(size: int) -> ImageContent:
    return ImageContent(data="A" * size, mime_type="image/png")


async def run(policy: dict[str, Any], answer: Any) -> tuple[ToolResult, LayerBench]:
    bench = LayerBench(RunPolicy(**policy))
    limit = ResultLimit.for_tool(bench.context)
    assert limit is not None
    return await bench.call(compose([limit], bench.answering(answer))), bench


def shown_bytes(result: ToolResult) -> int:
    return sum(len(block.text.encode()) for block in result.content if hasattr(block, "text"))


# Cases.


async def test_case_result_size_01_a_long_text_keeps_both_ends_and_says_so() -> None:
    case = CASES["result-size-01"]
    expect = case["expect"]
    text = "head" + "x" * (5_000_000 - 8) + "tail"

    result, bench = await run(case["given"]["policy"], text)

    assert shown_bytes(result) <= expect["result_bytes_max"]
    assert shown_bytes(result) > 0.98 * case["given"]["policy"]["max_result_bytes"]
    assert result.text.startswith("head")
    assert result.text.endswith("tail")
    assert "of 5,000,000 bytes were cut here" in result.text
    assert not result.is_error
    assert bench.events == [("result_limit", "cut")]


async def test_case_result_size_04_an_image_stays_intact_or_is_removed() -> None:
    case = CASES["result-size-04"]
    data = base64.b64encode(b"x" * 200_000).decode()
    answer = [ImageContent(data=data, mime_type="image/png"), TextContent(text="y" * 100)]

    result, _ = await run(case["given"]["policy"], answer)

    assert result.content == (
        TextContent(text="y" * 100),
        TextContent(text="[Left out, as a result may have 65,536 bytes: 1 image.]"),
    )


# What is small enough.


@pytest.mark.parametrize(
    "result",
    [
        ToolResult.of_text("x" * 1_000),
        ToolResult.of_text("ä" * 500),
        ToolResult.of_text(""),
        ToolResult(),
        ToolResult(content=(image(900), TextContent(text="x" * 50))),
        ToolResult(content=(TextContent(text="x" * 400),), structured_content=["x" * 500]),
        ToolResult.failed(FailureCode.TIMEOUT, "x" * 800),
        ToolResult(content=(TextContent(text="x" * 900, meta={"a": 1}),)),
    ],
)
def test_a_result_that_fits_is_handed_on_as_it_is(result: ToolResult) -> None:
    assert limited(result, 1_000) is result


@pytest.mark.parametrize("text", ["x" * 1_001, "ä" * 501, "€" * 334, "😀" * 251])
def test_bytes_are_counted_and_not_characters(text: str) -> None:
    assert limited(ToolResult.of_text(text), 1_000).text != text


async def test_a_small_result_counts_nothing() -> None:
    result, bench = await run({"max_result_bytes": 1_000}, "done")

    assert result.text == "done"
    assert bench.events == []


def test_without_a_bound_there_is_no_such_layer() -> None:
    assert ResultLimit.for_tool(LayerBench().context) is None


# What stays whole.


def test_text_goes_first_and_parts_stay_where_they_fit_beside_it() -> None:
    text = TextContent(text="x" * 5_000)
    small, large = image(3_000), image(6_000)

    result = limited(ToolResult(content=(large, text, small)), 10_000)

    assert result.content[:2] == (text, small)
    assert "1 image" in result.text


def test_a_text_that_is_cut_anyway_leaves_half_of_the_room_to_parts() -> None:
    small = image(4_000)

    result = limited(ToolResult(content=(TextContent(text="x" * 50_000), small)), 10_000)

    assert small in result.content
    assert 5_000 < shown_bytes(result) < 6_000
    assert "Left out" not in result.text


def test_structured_content_is_removed_and_never_cut() -> None:
    result = limited(
        ToolResult(content=(TextContent(text="x" * 5_000),), structured_content={"a": "x" * 8_000}),
        10_000,
    )

    assert result.structured_content is None
    assert result.content[0] == TextContent(text="x" * 5_000)
    assert result.content[1] == TextContent(
        text="[Left out, as a result may have 10,000 bytes: structured content.]"
    )


def test_structured_content_stays_if_it_fits_beside_the_text() -> None:
    result = limited(
        ToolResult(content=(image(50_000),), structured_content={"a": "x" * 8_000}), 10_000
    )

    assert result.structured_content == {"a": "x" * 8_000}


def test_structured_content_that_json_cannot_say_is_removed() -> None:
    cyclic: list[Any] = []
    cyclic.append(cyclic)

    result = limited(
        ToolResult(content=(TextContent(text="fine"),), structured_content=cyclic), 10_000
    )

    assert result.structured_content is None
    assert result.text.startswith("fine\n[Left out")


def test_the_line_names_every_kind_that_was_left_out() -> None:
    large = "x" * 20_000
    content: tuple[Content, ...] = (
        image(20_000),
        AudioContent(data=large, mime_type="audio/wav"),
        EmbeddedResource(resource={"uri": "a:b", "blob": large}),
        EmbeddedResource(resource={"uri": "a:b", "text": large}),
        ResourceLink(uri=large, name="n"),
    )

    result = limited(ToolResult(content=content), 10_000)

    assert result.text == (
        "[Left out, as a result may have 10,000 bytes: 1 image, 1 sound, 2 resources, 1 link.]"
    )


def test_what_the_model_never_sees_is_left_alone() -> None:
    result = limited(
        ToolResult(
            call_id="c",
            tool="t",
            content=(TextContent(text="x" * 50_000),),
            details="d" * 50_000,
            metadata={"m": "x" * 50_000},
            terminate=True,
            attempts=2,
        ),
        1_000,
    )

    assert (result.call_id, result.tool, result.terminate, result.attempts) == ("c", "t", True, 2)
    assert result.details == "d" * 50_000
    assert result.metadata == {"m": "x" * 50_000}


# Failures.


def test_a_long_failure_is_shortened_and_still_says_what_to_do() -> None:
    result = limited(
        ToolResult.failed(FailureCode.TIMEOUT, "x" * 50_000, guidance="Wait. " * 10_000), 2_000
    )

    assert result.failure is not None
    assert result.text == result.render() == result.failure.render()
    assert len(result.text.encode()) <= 2_000
    assert result.text.startswith("Error: timeout: xxx")
    assert "Wait. Wait." in result.text


def test_many_issues_of_a_failure_are_bounded() -> None:
    issues = tuple(Issue(f"/a/{n}", "is wrong") for n in range(10_000))
    result = limited(
        ToolResult.failed(FailureCode.INVALID_ARGUMENT, "all wrong", issues=issues), 4_000
    )

    assert result.failure is not None
    assert result.failure.message == "all wrong"
    assert result.failure.issues == issues[:8]


def test_a_failure_with_content_of_its_own_leaves_room_to_it() -> None:
    failure = Failure(code=FailureCode.EXECUTION_FAILED, message="m" * 50_000)
    content = (TextContent(text="x" * 50_000),)

    result = limited(ToolResult(content=content, is_error=True, failure=failure), 4_000)

    assert len(result.render().encode()) <= 4_000
    assert result.text.count("x") > 1_000
    assert result.render().count("m") > 800


def test_a_short_failure_is_left_alone_beside_a_long_content() -> None:
    failure = Failure(code=FailureCode.EXECUTION_FAILED, message="the disk is full")
    content = (TextContent(text="x" * 50_000),)

    result = limited(ToolResult(content=content, is_error=True, failure=failure), 4_000)

    assert result.failure == failure


# Anything at all.

TEXTS = st.builds(
    lambda unit, times: unit * times, st.text(st.characters(), max_size=5), st.integers(0, 500)
)
BLOCKS = st.one_of(
    TEXTS.map(lambda text: TextContent(text=text)),
    st.integers(0, 2_000).map(image),
    TEXTS.map(lambda text: EmbeddedResource(resource={"uri": "a:b", "text": text})),
    TEXTS.map(lambda text: TextContent(text="t", meta={"note": text})),
)
FAILURES = st.builds(
    lambda message, guidance, issues, hints: Failure(
        code=FailureCode.EXECUTION_FAILED,
        message=message,
        guidance=guidance,
        issues=tuple(Issue(f"/{text}", text) for text in issues),
        hints=tuple(hints),
    ),
    TEXTS,
    TEXTS,
    st.lists(TEXTS, max_size=10),
    st.lists(TEXTS, max_size=3),
)
RESULTS = st.builds(
    lambda content, structured, failure: ToolResult(
        content=tuple(content),
        structured_content=structured,
        failure=failure,
        is_error=failure is not None,
    ),
    st.lists(BLOCKS, max_size=6),
    st.none() | st.lists(TEXTS, max_size=3),
    st.none() | FAILURES,
) | FAILURES.map(ToolResult.of_failure)


@settings(max_examples=200, deadline=None)
@given(result=RESULTS, max_bytes=st.integers(256, 3_000))
def test_any_result_is_bounded_and_its_parts_are_whole(result: ToolResult, max_bytes: int) -> None:
    fine = limited(result, max_bytes)

    assert size_of(fine) <= (max_bytes if max_bytes >= 1_024 else max_bytes + 512)
    if size_of(result) <= max_bytes:
        assert fine is result
    if max_bytes >= 1_024:
        assert limited(fine, max_bytes) is fine
    whole = [block for block in fine.content if not isinstance(block, TextContent)]
    blocks = iter(result.content)
    assert all(any(block == one for block in blocks) for one in whole)
    assert fine.structured_content in (None, result.structured_content)
    assert fine.is_error == result.is_error
    assert (fine.failure is None) == (result.failure is None)


@settings(max_examples=50, deadline=None)
@given(result=RESULTS)
def test_what_was_cut_is_valid_utf8(result: ToolResult) -> None:
    fine = limited(result, 256)

    for before, after in zip(result.content, fine.content, strict=False):
        if before != after and isinstance(after, TextContent) and after not in result.content:
            after.text.encode()
