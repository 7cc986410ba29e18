"""Turns and nested calls against recorded runs of another agent loop; what differs says why."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from seawall import (
    Abort,
    Deny,
    Pipeline,
    Policies,
    Replace,
    RunPolicy,
    Tool,
    ToolCall,
    ToolResult,
    TurnOutcome,
    TurnStatus,
)
from seawall.contract.content import content_from_json, content_to_json
from seawall.testing import FakeClock

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "turns.json").read_text())

DEVIATIONS = {
    "scenario.order_duplicate_ids": "the same id, tool and arguments twice are one call, run once",
    "scenario.order_duplicate_tool_names": "a registry refuses a second tool of one name",
    "scenario.result_nothing": "a tool that gives nothing has succeeded",
    "scenario.result_is_error_truthy": "`is_error` is a boolean",
    "scenario.result_schema_uncompilable": "such a tool is refused when it is registered",
    "scenario.before_changes_args": "hooks see a copy; what they change is prepared anew",
    "scenario.update_slow_listener": "listeners are plain functions: over when they return",
    "scenario.update_listener_fails_parallel": "a listener that fails harms nobody",
    "scenario.terminate_steering": "whether a user's message goes on is the application's",
    "scenario.abort_by_first_parallel": "no signal: the caller cancels, and gets no results",
    "scenario.abort_before_start": "no signal: a turn that is cancelled does not start",
    "scenario.abort_ignored_by_tool": "no signal: a tool deaf to its cancel is let go",
    "scenario.error_stop": "calls of a broken answer are the application's to leave out",
    "nested.tools_override": "a tool may call what its pipeline has",
    "nested.tools_override_excludes": "a tool may call what its pipeline has",
    "nested.aborted": "no signal: a cancelled tool calls nothing",
    "nested.update_callback_throws": "a listener that fails harms nobody",
    "nested.update_callback_rejects": "a listener that fails harms nobody",
}

OWN_WORDS = {
    "scenario.after_throw": "what a check said about a result is not for the model",
    "scenario.prepare_invalid": "the model reads what it sent",
    "scenario.truncated": "our words",
    "scenario.abort_in_before_hook": "our words",
    "scenario.abort_beats_block": "our words",
    "scenario.terminate_block_mixed": "our words",
}

KINDS = ("start", "update", "end")

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}}


class Stage:
    """Plays the setup of a vector, and keeps its log."""

    def __init__(self, setup: dict[str, Any], nested: str | None = None) -> None:
        self.setup = setup
        self.nested = nested
        self.clock = FakeClock()
        self.log: list[str] = []
        self.aborts = "abort_run" in json.dumps(setup.get("before", []))

    def named(self, call_id: str) -> str:
        return self.nested or call_id

    def shown(self, arguments: Any) -> str:
        text = json.dumps(arguments, separators=(",", ":"))
        return f" {text}" if self.setup.get("log_args") else ""

    def tool(self, given: dict[str, Any]) -> Tool:
        async def execute(arguments: dict[str, Any], context: Any) -> Any:
            call_id = self.named(context.call_id)
            self.log.append(f"exec {call_id}{self.shown(arguments)}")
            value = await self.play(given["steps"], context)
            self.log.append(f"done {call_id}")
            return value

        prepare = given.get("prepare")
        return Tool(
            given["name"],
            "Plays its steps.",
            given.get("parameters", SCHEMA),
            execute,
            execution=given.get("executionMode", "parallel"),
            prepare_arguments=prepare and (lambda _: prepare["replace"]),
        )

    async def play(self, steps: list[list[Any]], context: Any = None) -> Any:
        for word, *values in steps:
            if word == "sleep":
                await self.clock.sleep(values[0] / 1000)
            elif word in ("throw", "throw_text"):
                raise RuntimeError(values[0])
            elif word == "update":
                context.progress(values[0])
            elif word == "return":
                return values[0] if context is None else result_of(values[0])
            elif word != "abort_run":
                raise AssertionError(f"the harness does not know {word}")
        return None

    async def hook(self, when: str, context: Any) -> dict[str, Any] | None:
        call_id = self.named(context.call_id)
        said = ""
        if self.setup.get("log_args"):
            given = json.dumps(context.given, separators=(",", ":"))
            said = f" raw={given} args={self.shown(context.arguments).strip()}"
            if when == "after":
                said += f" isError={str(context.result.is_error).lower()}"
        self.log.append(f"{when} {call_id}{said}")
        for one in self.setup[when]:
            if one["call"] in ("*", call_id):
                answer = await self.play(one["steps"])
                if answer is not None:
                    return dict(answer)
        self.log.append(f"{when}-end {call_id}")
        return None

    async def before(self, context: Any) -> Any:
        if "before" not in self.setup or (self.nested and not context.depth):
            return None
        answer = await self.hook("before", context)
        calls = [one["call"] for one in self.setup["before"] if ["abort_run"] in one["steps"]]
        if context.call_id in calls:
            return Abort("a hook wants it")
        if answer is not None and answer.get("block"):
            return Deny(answer.get("reason", ""), terminate=answer.get("terminate", False))
        return None

    async def after(self, context: Any) -> Any:
        if "after" not in self.setup or (self.nested and not context.depth):
            return None
        answer = await self.hook("after", context)
        if answer is None:
            return None
        return Replace(
            content=answer.get("content"),
            structured_content=answer.get("structuredContent"),
            details=answer.get("details"),
            is_error=answer.get("isError"),
            terminate=answer.get("terminate"),
            usage=answer.get("usage"),
        )

    def pipeline(self, *more: Tool, **options: Any) -> Pipeline:
        tools = [self.tool(given) for given in self.setup["tools"]]
        return Pipeline(
            [*tools, *more],
            policies=Policies(default=RunPolicy(coercion="lenient")),
            hooks=[self],
            clock=self.clock,
            **options,
        )


def result_of(given: dict[str, Any]) -> ToolResult:
    return ToolResult(
        content=tuple(content_from_json(block) for block in given.get("content", ())),
        details=given.get("details"),
        structured_content=given.get("structuredContent"),
        is_error=given.get("isError", False),
        terminate=given.get("terminate", False),
        usage=given.get("usage"),
    )


def same(result: ToolResult, expected: dict[str, Any], *, own_words: bool) -> None:
    """A result is what the vector says, but for how an error is put into words."""
    assert result.is_error is expected["isError"]
    assert (result.duration_ms is not None) is expected["has_duration"]
    content = [content_to_json(block) for block in result.content]
    if not result.is_error:
        assert content == expected["content"]
    elif not own_words:
        assert all(block["text"] in result.text for block in expected["content"])
    if expected.get("details") not in ({}, None):
        assert result.details == expected["details"]
    assert result.usage == expected.get("usage")


def of_group(group: str) -> list[Any]:
    return [
        pytest.param(vector, id=vector["id"])
        for vector in VECTORS
        if vector["group"] == group and vector["id"] not in DEVIATIONS
    ]


async def played(vector: dict[str, Any], told: list[Any]) -> tuple[Stage, TurnOutcome]:
    setup = vector["setup"]
    stage = Stage(setup)
    calls = [ToolCall(one["name"], one.get("arguments", {}), one["id"]) for one in setup["calls"]]
    outcome = await stage.clock.run(
        stage.pipeline().turn(
            calls,
            execution=setup.get("mode"),
            truncated=setup.get("stop_reason") == "length",
            on_event=told.append,
        )
    )
    return stage, outcome


@pytest.mark.parametrize("vector", of_group("scenario"))
async def test_a_turn_gives_what_the_recorded_run_gave(vector: dict[str, Any]) -> None:
    told: list[Any] = []

    stage, outcome = await played(vector, told)

    expected = vector["expect"]
    assert len(outcome.results) == len(expected["tool_results"])
    for result, one in zip(outcome.results, expected["tool_results"], strict=True):
        assert result.call_id == one["id"]
        same(result, one, own_words=vector["id"] in OWN_WORDS)
    ends = [event.result for event in told if event.kind == "end"]
    for result, one in zip(ends, expected["end_results"], strict=True):
        assert result.call_id == one["id"]
        assert result.structured_content == one["structuredContent"]
        assert (result.terminate is True) is (one["terminate"] is True)
    if stage.aborts:
        assert outcome.status is TurnStatus.ABORTED
    else:
        goes_on = expected["model_requests"] > 1
        assert outcome.status is (TurnStatus.DONE if goes_on else TurnStatus.TERMINATED)
    least, most = expected.get("duration_ms_at_least", 0), expected.get("duration_ms_below", 1e9)
    assert all(least <= (result.duration_ms or least) < most for result in outcome.results)


@pytest.mark.parametrize("vector", of_group("scenario"))
async def test_a_turn_goes_its_way_in_the_recorded_order(vector: dict[str, Any]) -> None:
    told: list[Any] = []

    stage, _ = await played(vector, told)

    expected = [event for event in vector["expect"]["trace"] if event["event"] in KINDS]
    assert [(event.kind, event.call_id) for event in told] == [
        (event["event"], event["id"]) for event in expected
    ]
    for event, one in zip(told, expected, strict=True):
        assert event.kind != "start" or event.arguments == one["args"]
    assert stage.log == vector["expect"]["log"]


@pytest.mark.parametrize("vector", of_group("nested"))
async def test_a_tools_call_of_a_tool_gives_what_the_recorded_one_gave(
    vector: dict[str, Any],
) -> None:
    setup, expected = vector["setup"], vector["expect"]
    asked, results = setup["call"], []
    stage = Stage(setup, nested=asked["id"])

    async def outer(arguments: dict[str, Any], context: Any) -> str:
        results.append(await context.call_tool(asked["name"], asked.get("arguments", {})))
        return "done"

    told: list[Any] = []
    pipeline = stage.pipeline(
        Tool("outer", "Calls another.", {"type": "object"}, outer),
        on_progress=lambda report, *_: stage.log.append(f"update {report}"),
    )
    outcome = await stage.clock.run(pipeline.turn([("outer", {})], on_event=told.append))

    assert outcome.status is TurnStatus.DONE
    [result] = results
    same(result, expected["outcome"], own_words=False)
    assert result.structured_content == expected["outcome"]["structuredContent"]
    assert result.terminate is (expected["outcome"]["terminate"] is True)
    assert stage.log == expected["log"]
    assert [event.kind for event in told] == ["start", "end"]
    assert len(outcome.messages) == expected["messages_added"]


def test_every_vector_is_played_or_named_with_its_reason() -> None:
    known = {vector["id"] for vector in VECTORS}

    assert known >= DEVIATIONS.keys()
    assert known >= OWN_WORDS.keys()
    assert not DEVIATIONS.keys() & OWN_WORDS.keys()
    assert len(known - DEVIATIONS.keys()) == 41
