import io
import json
from typing import Any

import pytest

from seawall.edges.cli.demo_view import JsonView, LineView
from seawall.edges.cli.paper import Paper


def _lines(*events: tuple[str, dict[str, Any]]) -> list[str]:
    stream = io.StringIO()
    view = LineView(Paper(stream))
    for event, fields in events:
        view.show(event, **fields)
    return stream.getvalue().splitlines()


def _result(**fields: Any) -> tuple[str, dict[str, Any]]:
    refused = {
        "call": "c1",
        "tool": "t",
        "ok": False,
        "reason": "rate_limited",
        "layer": "rate_limit",
        "message": "too often",
        "text": "Error: rate limited: too often. Wait.",
        "attempts": 0,
        "duration_ms": None,
    }
    return "result", {**refused, **fields}


def test_json_is_one_object_a_line_as_it_happens() -> None:
    stream = io.StringIO()

    JsonView(Paper(stream)).show("call", call="c1", arguments='{"a":\n1}')

    assert json.loads(stream.getvalue()) == {
        "event": "call",
        "call": "c1",
        "arguments": '{"a":\n1}',
    }
    assert stream.getvalue().count("\n") == 1


@pytest.mark.parametrize(
    ("event", "fields", "expected"),
    [
        (
            "call",
            {"call": "c1", "tool": "t", "arguments": '{"a":\n 1}'},
            '    c1  calls            t {"a": 1}',
        ),
        ("happens", {"what": "it rains"}, "    (it rains)"),
        (
            "attempt",
            {"call": "c1", "attempt": 1, "reason": "transport", "duration_ms": 2.34}
            | {"waited_ms": None},
            "    c1  executor         attempt 1 failed: transport, after 2.3 ms",
        ),
        (
            "attempt",
            {"call": "c1", "attempt": 2, "reason": "", "duration_ms": 1.0, "waited_ms": 93.2},
            "    c1  retry            waited 93 ms, tried again",
        ),
        ("answered", {"call": "c1", "answer": "allow_once"}, "    c1  person           allow once"),
        (
            "layer",
            {"tool": "t", "layer": "breaker", "did": "open"},
            "        breaker          the circuit of t opens",
        ),
        (
            "mended",
            {"call": "c1", "mended": ["/n text to integer"]},
            "    c1  argument check   mended: /n text to integer",
        ),
    ],
)
def test_each_event_is_a_line(event: str, fields: dict[str, Any], expected: str) -> None:
    assert _lines((event, fields)) == [expected]


def test_a_first_attempt_that_succeeds_needs_no_line_of_its_own() -> None:
    fields = {"call": "c1", "attempt": 1, "reason": "", "duration_ms": 1.0, "waited_ms": None}

    assert _lines(("attempt", fields)) == []


def test_an_event_that_other_lines_say_is_left_out() -> None:
    assert _lines(("layer", {"tool": "t", "layer": "retry", "did": "retried"})) == []
    assert _lines(("report", {"usage": []})) == []


def test_an_answer_says_how_often_it_was_tried() -> None:
    (line,) = _lines(_result(ok=True, text="done", attempts=3, duration_ms=2.5))

    assert line == "    c1  answers          done  3 attempts, 2.5 ms"


def test_guidance_is_shown_the_first_time_only() -> None:
    first, second = _lines(_result(), _result(call="c2"))

    assert first == "    c1  rate limit       Error: rate limited: too often. Wait."
    assert second == "    c2  rate limit       Error: rate limited: too often."


def test_a_long_refusal_is_cut_and_says_so() -> None:
    lines = _lines(_result(text="\n".join(f"line {n}" for n in range(9)) + "x" * 400))

    assert len(lines) == 5
    assert lines[-1].endswith("… and 5 lines more")


def test_a_long_answer_is_cut() -> None:
    (line,) = _lines(_result(ok=True, text="x" * 1000, attempts=1, duration_ms=1.0))

    assert len(line) < 350
    assert "…" in line
