"""Which pairs are found in spans, and what definition they are suggested with."""

from __future__ import annotations

import random
from typing import Any

import pytest

from seawall.contract.span import Outcome, Span
from seawall.orchestration.mining import mine, skeleton, skeleton_id
from seawall.orchestration.shortcut_definition import read_shortcut
from seawall.registry.registry import Registry
from seawall.testing import scripted


class Tape:
    """Spans of calls one second apart, each of half a second."""

    def __init__(self) -> None:
        self.now = 1_700_000_000.0
        self.spans: list[Span] = []

    def call(
        self, tool: str, outcome: Outcome = Outcome.SUCCESS, *, attempt: int = 1, call_id: str = ""
    ) -> Tape:
        self.spans.append(
            Span(
                call_id=call_id or f"c{len(self.spans)}",
                tool=tool,
                attempt=attempt,
                started=self.now,
                duration_ms=500.0,
                outcome=outcome,
            )
        )
        self.now += 1
        return self

    def pause(self, seconds: float = 1_000) -> Tape:
        self.now += seconds
        return self

    def pairs(self, **options: Any) -> list[tuple[tuple[str, str], int]]:
        return [(one.tools, one.count) for one in mine(self.spans, **options)]


def times(count: int, *tools: str) -> Tape:
    tape = Tape()
    for _ in range(count):
        for tool in tools:
            tape.call(tool)
        tape.pause()
    return tape


@pytest.mark.parametrize(("count", "found"), [(2, []), (3, [(("a", "b"), 3)])])
def test_a_pair_must_occur_three_times(count: int, found: Any) -> None:
    assert times(count, "a", "b").pairs() == found


def test_the_most_frequent_comes_first() -> None:
    tape = times(3, "a", "b")
    for _ in range(4):
        tape.call("c").call("d").pause()

    assert tape.pairs() == [(("c", "d"), 4), (("a", "b"), 3)]
    assert tape.pairs(at_least=4) == [(("c", "d"), 4)]


def test_the_order_in_which_spans_are_given_does_not_matter() -> None:
    tape = times(3, "a", "b")
    random.Random(1).shuffle(tape.spans)

    assert tape.pairs() == [(("a", "b"), 3)]


@pytest.mark.parametrize("outcome", [Outcome.FAILED, Outcome.DENIED, Outcome.SKIPPED])
def test_whatever_did_not_succeed_ends_the_chain(outcome: Outcome) -> None:
    tape = Tape()
    for _ in range(3):
        tape.call("a").call("x", outcome).call("b").pause()

    assert tape.pairs() == []


def test_the_same_tool_twice_is_no_pair() -> None:
    assert times(5, "a", "a").pairs() == []


def test_calls_too_far_apart_are_no_pair() -> None:
    tape = Tape()
    for _ in range(3):
        tape.call("a").pause(100).call("b").pause()

    assert tape.pairs() == []
    assert tape.pairs(window_s=200) == [(("a", "b"), 3)]


def test_calls_that_overlap_are_no_pair() -> None:
    tape = Tape()
    for _ in range(3):
        tape.call("a").pause(-0.9).call("b").pause()

    assert tape.pairs() == []


def test_the_attempts_of_a_call_are_one_call() -> None:
    tape = Tape()
    for number in range(3):
        tape.call("a").call("b", Outcome.FAILED, call_id=f"b{number}")
        tape.call("b", attempt=2, call_id=f"b{number}").pause()

    assert tape.pairs() == [(("a", "b"), 3)]


@pytest.mark.parametrize("around", ["tool_batch_run", "shortcut_run", "shortcut.ab"])
def test_what_runs_other_tools_is_seen_through(around: str) -> None:
    assert times(3, "a", around, "b").pairs() == [(("a", "b"), 3)]


def test_what_is_a_shortcut_already_is_not_suggested() -> None:
    assert times(3, "a", "b").pairs(known=[("a", "b")]) == []


def test_no_more_are_suggested_than_asked_for() -> None:
    assert len(times(3, "a", "b", "c").pairs(most=1)) == 1


# Definitions.


@pytest.mark.parametrize(
    "tools",
    [
        ("a", "b"),
        ("notification_read_all", "clipboard_write_text"),
        ("Häkchen.setzen", "日本"),
        ("server-one/" + "x" * 200, "server-one/" + "y" * 200),
        ("!", "?"),
    ],
)
def test_every_skeleton_obeys_the_rules(tools: tuple[str, str]) -> None:
    assert read_shortcut(skeleton(tools)).shortcut.id == skeleton_id(tools)


def test_ids_that_are_cut_differ_if_the_tools_do() -> None:
    long = "x" * 60

    assert skeleton_id((long, "a")) != skeleton_id((long, "b"))


def test_a_skeleton_has_a_param_for_what_its_tools_require() -> None:
    def tool(name: str, *required: str, **properties: Any) -> Any:
        schema = {"type": "object", "properties": properties, "required": list(required)}
        return scripted(name=name, input_schema=schema)

    registry = Registry(
        [
            tool("a", "path", path={"type": "string"}, more={"type": "string"}),
            tool("b", "path", "n", "odd-name", path={}, n={"type": ["integer", "null"]}),
        ]
    )

    compiled = read_shortcut(skeleton(("a", "b"), registry))

    assert [(one.name, one.type, one.required) for one in compiled.shortcut.params] == [
        ("path", "string", True),
        ("path_2", "string", True),
        ("n", "string", True),
    ]
    assert compiled.plan[1].template.shown() == {"path": "{path_2}", "n": "{n}"}


def test_a_skeleton_has_no_more_params_than_are_allowed() -> None:
    names = [f"p{number}" for number in range(12)]
    schema = {"type": "object", "properties": {name: {} for name in names}, "required": names}
    registry = Registry([scripted(name="a", input_schema=schema), scripted(name="b")])

    assert len(read_shortcut(skeleton(("a", "b"), registry)).shortcut.params) == 8
