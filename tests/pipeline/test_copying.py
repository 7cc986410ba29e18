"""Copies share no container with what they were made of."""

from __future__ import annotations

from typing import Any

import pytest

from seawall import Annotations, Pipeline, Policies, RunPolicy, Tool
from seawall.pipeline.copying import copied


def test_all_containers_are_copied_and_nothing_else_changes() -> None:
    value: dict[str, Any] = {"a": [1, {"b": [2]}], "c": "x", "d": ({"e": 1},), "f": None}

    copy = copied(value)

    assert copy == value
    for one, other in (
        (copy, value),
        (copy["a"], value["a"]),
        (copy["a"][1], value["a"][1]),
        (copy["a"][1]["b"], value["a"][1]["b"]),
        (copy["d"][0], value["d"][0]),
    ):
        assert one is not other


def spoiling(tool_fails: bool, seen: list[Any]) -> Tool:
    async def spoil(arguments: dict[str, Any], context: Any) -> str:
        seen.append((arguments.pop("limit", None), dict(arguments["inside"])))
        arguments["inside"]["spoilt"] = True
        if tool_fails:
            raise ConnectionError
        return "done"

    return Tool("spoil", "Spoils.", {}, spoil, annotations=Annotations.for_reading())


@pytest.mark.parametrize("given", [{"limit": 5, "inside": {}}, '{"limit": 5, "inside": {}}'])
async def test_each_attempt_begins_with_the_same_arguments(given: Any) -> None:
    seen: list[Any] = []
    policies = Policies(default=RunPolicy(max_retries=2))

    async with Pipeline([spoiling(True, seen)], policies=policies) as pipeline:
        await pipeline.call("spoil", given)
        spans = pipeline.trace.spans()

    assert seen == [(5, {})] * 3
    assert len({str(span.digest) for span in spans}) == 1


async def test_what_the_caller_holds_is_never_changed() -> None:
    given = {"limit": 5, "inside": {}}

    async with Pipeline([spoiling(False, [])]) as pipeline:
        await pipeline.call("spoil", given)

    assert given == {"limit": 5, "inside": {}}


async def test_the_digest_is_that_of_what_was_asked_for() -> None:
    async with Pipeline([spoiling(False, [])]) as pipeline:
        prepared = pipeline.prepare("spoil", {"limit": 5, "inside": {}})
        await pipeline.call("spoil", {"limit": 5, "inside": {}})

    assert pipeline.trace.spans()[-1].digest == getattr(prepared, "digest", None)


async def test_a_shim_is_not_given_more_than_can_be_copied() -> None:
    bomb: Any = "leaf"
    for _ in range(40):
        bomb = [bomb] * 10
    tool = Tool("t", "d", {}, spoiling(False, []).executor, prepare_arguments=lambda value: value)

    async with Pipeline([tool]) as pipeline:
        result = await pipeline.call("t", {"a": bomb})

    assert result.failure is not None
    assert result.failure.reason == "too_large"
