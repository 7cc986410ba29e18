"""What a model is told about names that cannot be called."""

from __future__ import annotations

from typing import Any

import pytest

from seawall import FailureCode, Pipeline, Registry, Session, Tool, ToolResult
from seawall.layers.risk_policies import AllowlistPolicy
from seawall.orchestration.unknown import (
    MAX_CATEGORIES,
    MAX_SHOWN,
    no_such_tool,
    quarantined,
    shown,
)
from seawall.testing import scripted


def make(name: str, **fields: Any) -> Tool:
    return Tool(name=name, description="", input_schema={}, executor=print, **fields)


def said(name: Any, *tools: Tool) -> Any:
    return no_such_tool(Registry(tools), name, "c1")


def test_near_names_are_hints_and_the_number_of_tools_is_told() -> None:
    result = said("serch", make("search"), make("calc"))

    failure = result.failure
    assert (failure.code, failure.reason, failure.layer) == (
        FailureCode.NOT_FOUND,
        "tool_not_found",
        "registry",
    )
    assert failure.hints == ("search",)
    assert '"serch"' in failure.message
    assert "2 tools" in failure.message
    assert "Near names: search" in failure.guidance
    assert (failure.may_have_run, failure.retryable) == (False, False)
    assert (result.call_id, result.tool, result.attempts) == ("c1", "serch", 0)


def test_where_nothing_is_near_the_categories_are_told_and_never_the_list() -> None:
    tools = [make(f"tool_{n}", category=f"kind {n % 30:02}") for n in range(300)]

    failure = said("zzz", *tools).failure

    assert failure.hints == ()
    assert "kind 00" in failure.guidance
    assert failure.guidance.count("kind") == MAX_CATEGORIES
    assert ", …" in failure.guidance
    assert "tool_" not in failure.guidance


def test_where_there_are_no_tools_that_is_told() -> None:
    failure = said("x").failure

    assert "there are no tools" in failure.message
    assert "without tools" in failure.guidance


@pytest.mark.parametrize("name", ["", None, 5, ["a"], {"a": 1}])
def test_a_call_without_a_name_is_told_so(name: Any) -> None:
    failure = said(name, make("a")).failure

    assert "the call names no tool" in failure.message


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a b", '"a b"'),
        ("a\nb\x00", '"a?b?"'),
        ("\ud800", '"?"'),
        ("sk-live-abcdef123456", '"…"'),
        ("x" * 200_000, f'"{"x" * MAX_SHOWN}…"'),
    ],
)
def test_an_invented_name_is_shown_within_bounds(name: str, text: str) -> None:
    assert shown(name) == text
    assert len(said(name, make("a")).render()) < 1_000


def test_a_tool_that_is_set_aside_says_why() -> None:
    failure = quarantined("t", "its schema " + "x" * 5_000, "c1").failure

    assert failure is not None
    assert (failure.code, failure.reason) == (FailureCode.UNSUPPORTED, "tool_quarantined")
    assert "its schema" in failure.message
    assert len(failure.message) < 500


async def test_hints_are_only_of_tools_that_the_caller_may_use() -> None:
    session = Session("s")
    session.permissions.deny("read_file_1")
    registry = Registry([make("read_file_1"), make("read_file_2"), make("read_file_3")])
    registry.register(
        Tool(name="read_file_4", description="", input_schema={"type": "string"}, executor=print),
        on_invalid="quarantine",
    )
    policy = AllowlistPolicy(allow=["read_file_1", "read_file_2"])
    pipeline = Pipeline(registry, risk=policy)

    result = await pipeline.call("read_file", session=session)
    prepared = pipeline.prepare("read_file", session=session)

    assert result.failure is not None
    assert result.failure.hints == ("read_file_2",)
    assert isinstance(prepared, ToolResult)
    assert prepared.failure == result.failure


# --- tools that are set aside


def _odd(name: str) -> Tool:
    return Tool(name=name, description="", input_schema={"type": "odd"}, executor=lambda *_: None)


def _aside(pipeline: Pipeline, name: str) -> None:
    pipeline.registry.register(_odd(name), on_invalid="quarantine", on_duplicate="replace")


async def test_a_call_of_a_tool_that_is_set_aside_is_on_all_books() -> None:
    pipeline = Pipeline([])
    _aside(pipeline, "odd")

    result = await pipeline.call("odd", {"a": 1}, call_id="c1")

    assert result.call_id == "c1"
    assert [
        (span.tool, span.call_id, span.attempt, span.outcome.value, span.reason)
        for span in pipeline.trace.spans()
    ] == [("odd", "c1", 0, "denied", "tool_quarantined")]
    assert pipeline.usage.snapshot()["odd"].refusals == 1
    text = pipeline.metrics.text().decode()
    assert 'seawall_calls_total{outcome="denied",tool="odd"} 1.0' in text
    assert 'tool="_OTHER"} 0.0' in text


async def test_books_of_tools_that_are_set_aside_no_longer_go() -> None:
    pipeline = Pipeline([])
    for number in range(20):
        _aside(pipeline, f"odd{number}")
        await pipeline.call(f"odd{number}")
        pipeline.registry.unregister(f"odd{number}")

    assert len(pipeline.usage.snapshot()) <= 1


async def test_a_mended_tool_goes_on_with_the_books_of_its_name() -> None:
    pipeline = Pipeline([])
    _aside(pipeline, "odd")
    await pipeline.call("odd")

    pipeline.registry.register(scripted("fine", name="odd"), on_duplicate="replace")
    await pipeline.call("odd")

    counts = pipeline.usage.snapshot()["odd"]
    assert (counts.refusals, counts.successes) == (1, 1)


async def test_arguments_of_any_size_for_a_tool_set_aside_cost_little() -> None:
    value: Any = [1]
    for _ in range(60):
        value = [value, value]
    pipeline = Pipeline([])
    _aside(pipeline, "odd")

    result = await pipeline.call("odd", {"v": value})

    assert result.failure is not None
    assert result.failure.reason == "tool_quarantined"
