"""The ring of spans: vectors and a case, then listeners, reading, and secrets."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seawall.contract.errors import ConfigurationError
from seawall.contract.span import Digest, Outcome, Span
from seawall.pipeline.digest import Digester
from seawall.recording.shown import slug
from seawall.recording.trace import MAX_CAPACITY, TraceRecorder
from seawall.testing import FakeClock

if TYPE_CHECKING:
    from collections.abc import Callable

TESTS = Path(__file__).parents[1]
VECTORS = {
    one["id"]: one for one in json.loads((TESTS / "vectors" / "trace.json").read_text())["cases"]
}
CASES = {one["id"]: one for one in json.loads((TESTS / "cases" / "trace.json").read_text())}

PIPELINE_VECTORS = {"tr-07", "tr-08", "tr-09"}


def span_of(
    tool: str = "t",
    outcome: Outcome = Outcome.SUCCESS,
    *,
    call_id: str = "1",
    attempt: int = 1,
    reason: str = "",
) -> Span:
    return Span(
        call_id=call_id,
        tool=tool,
        attempt=attempt,
        started=1_700_000_000.0,
        duration_ms=12.34,
        outcome=outcome,
        reason=reason,
        digest=Digest(21, 20, "ab" * 16),
    )


def keeper(trace: TraceRecorder, tool: str = "t") -> Callable[[Span], None]:
    keep = trace.for_tool(tool).on_attempt
    assert keep is not None
    return keep


# Vectors and the case.


def test_every_vector_is_played_here_or_needs_a_pipeline() -> None:
    played = {"tr-02", "tr-03", "tr-05", "tr-06", "tr-10", "tr-11"}

    assert set(VECTORS) == played | PIPELINE_VECTORS


def test_the_first_completion_of_a_span_wins_as_the_vector_says() -> None:
    vector = VECTORS["tr-02"]
    trace = TraceRecorder()

    handle = trace.begin(vector["steps"][0]["begin"])
    told = [handle.complete(step["complete"]) for step in vector["steps"][1:]]

    assert told == [True, False]
    assert len(trace) == vector["expect"]["spans"]
    assert trace.spans()[0].outcome == vector["expect"]["outcome"]


def test_of_arguments_only_a_digest_is_kept_as_the_vector_says() -> None:
    begun, completed = VECTORS["tr-03"]["steps"]
    expected = VECTORS["tr-03"]["expect"]
    trace = TraceRecorder()

    trace.begin(begun["begin"], arguments=begun["args"]).complete(completed["complete"])
    trace.begin(begun["begin"], arguments="  ").complete("success")

    without, filled = trace.spans()
    assert str(without.digest) == expected["empty_args_digest"]
    # The vector counts the trimmed text; here it is the canonical one, which has no blank.
    assert filled.digest is not None
    assert filled.digest.length == expected["digest"]["length"] - 1
    assert filled.digest.non_blank == expected["digest"]["non_space"]
    assert expected["digest_lacks"] not in str(filled.digest)
    assert expected["export_lacks"] not in trace.export_json() + trace.report()


def test_free_text_never_becomes_a_slug_as_the_vector_says() -> None:
    text = VECTORS["tr-05"]["steps"][0]["slug_of"]

    assert slug(text) == ""


def test_listeners_get_each_span_once_as_the_vector_says() -> None:
    saw: list[str] = []
    trace = TraceRecorder()

    def listener(span: Span) -> None:
        saw.append(span.tool)

    trace.listen(listener)
    for step in VECTORS["tr-06"]["steps"]:
        if "remove" in step:
            trace.unlisten(listener)
            continue
        if "add_twice_then_complete" in step:
            trace.listen(listener)
            trace.listen(listener)
        tool = step.get("complete") or step["add_twice_then_complete"]
        trace.begin(tool).complete(Outcome.SUCCESS)

    assert saw == VECTORS["tr-06"]["expect"]["L_saw"]


def test_histogram_export_and_filter_are_as_the_vector_says() -> None:
    vector = VECTORS["tr-10"]
    trace = TraceRecorder()
    for outcome, count in vector["given"]["spans"].items():
        for number in range(count):
            keeper(trace)(span_of("a", Outcome(outcome), call_id=f"{outcome}{number}"))
    keeper(trace)(span_of("b", Outcome.SUCCESS))

    exported = trace.export(vector["steps"][1]["export"]["limit"])

    assert [one["call_id"] for one in trace.export()] == ["1", "failed0", "success1", "success0"]
    assert len(exported) == vector["expect"]["export_count"]
    assert [span.tool for span in trace.spans(tool=vector["steps"][2]["spans_for"])] == ["a"] * 3
    histogram = trace.histogram()
    histogram["ok"] -= 1  # that of `b`
    assert histogram == vector["expect"]["histogram"]


@pytest.mark.parametrize(
    "capacity",
    [VECTORS["tr-11"]["steps"][0]["build"]["capacity"], True, 1.5, "9", None, MAX_CAPACITY + 1],
)
def test_a_capacity_that_cannot_be_is_refused(capacity: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"capacity: a trace keeps 0 to") as refused:
        TraceRecorder(capacity)

    assert refused.value.faults[0].key == "capacity"


def test_a_capacity_of_zero_keeps_nothing_but_still_tells() -> None:
    saw: list[Span] = []
    trace = TraceRecorder(VECTORS["tr-11"]["steps"][1]["build"]["capacity"])
    trace.listen(saw.append)

    keeper(trace)(span_of())

    assert trace.spans() == []
    assert trace.report() == "success 0, failed 0, denied 0, skipped 0"
    assert (trace.capacity, trace.dropped, len(saw)) == (0, 1, 1)


def test_the_ring_is_bounded_as_the_case_says() -> None:
    case = CASES["trace-memory-01"]
    trace = TraceRecorder(case["given"]["policy"]["trace_max_entries"])
    keep = keeper(trace)

    for number in range(case["call"]["timeline"][0]["count"]):
        keep(span_of(call_id=str(number)))

    assert len(trace) <= case["expect"]["trace_entries_max"]
    assert trace.dropped == case["expect"]["trace_dropped"]
    assert trace.spans(1)[0].call_id == "19999"


# Reading.


@given(
    capacity=st.integers(0, 8),
    tools=st.lists(st.sampled_from("abc"), max_size=30),
    limit=st.none() | st.integers(-1, 10),
    wanted=st.none() | st.sampled_from("abc"),
)
def test_the_newest_spans_are_read_in_any_amount(
    capacity: int, tools: list[str], limit: int | None, wanted: str | None
) -> None:
    trace = TraceRecorder(capacity)
    for number, tool in enumerate(tools):
        keeper(trace)(span_of(tool, call_id=str(number)))

    found = [int(span.call_id) for span in trace.spans(limit, tool=wanted)]

    newest = list(range(len(tools)))[::-1][:capacity]
    matching = [number for number in newest if wanted in (None, tools[number])]
    assert found == (matching if limit is None else matching[: max(limit, 0)])
    assert trace.dropped == max(len(tools) - capacity, 0)


def test_spans_of_one_call_are_found_by_its_id() -> None:
    trace = TraceRecorder()
    for call_id, attempt in [("x", 1), ("y", 1), ("x", 2)]:
        keeper(trace)(span_of(call_id=call_id, attempt=attempt))

    assert [span.attempt for span in trace.spans(call_id="x")] == [2, 1]
    assert trace.spans(call_id="x", tool="other") == []


def test_the_recorder_of_each_tool_fills_the_same_ring() -> None:
    trace = TraceRecorder()

    keeper(trace, "a")(span_of("a"))
    keeper(trace, "b")(span_of("b"))

    assert [span.tool for span in trace.spans()] == ["b", "a"]


def test_an_unknown_name_leaves_no_span() -> None:
    trace = TraceRecorder()

    trace.unknown()

    assert (len(trace), trace.dropped) == (0, 0)


def test_an_export_is_plain_json_and_equals_its_text() -> None:
    trace = TraceRecorder()
    keeper(trace)(span_of("\ud800", Outcome.FAILED, reason="tool_failed"))

    [exported] = trace.export()

    assert exported["outcome"] == "failed"
    assert exported["reason"] == "tool_failed"
    assert exported["digest"] == {"length": 21, "non_blank": 20, "mac": "ab" * 16}
    assert json.loads(trace.export_json()) == [exported]
    assert trace.export_json().isascii()


def test_free_text_that_a_tool_gave_as_its_reason_is_not_exported() -> None:
    trace = TraceRecorder()

    keeper(trace)(span_of(outcome=Outcome.FAILED, reason="Error: sk-live-1234"))

    assert "sk-live" not in trace.export_json() + trace.report()


def test_a_report_has_the_histogram_and_the_newest_spans() -> None:
    trace = TraceRecorder()
    for outcome, reason in [
        (Outcome.SUCCESS, ""),
        (Outcome.SKIPPED, "not_executed"),
        (Outcome.DENIED, "rate_limited"),
    ]:
        keeper(trace)(span_of(outcome=outcome, reason=reason))

    when, rest = "2023-11-14T22:13:20.000+00:00", f"12.3 ms  21/20:{'ab' * 16}  call 1"
    assert trace.report(2).splitlines() == [
        "success 1, failed 0, denied 1, skipped 1",
        f"{when}  t  denied  rate_limited  attempt 1  {rest}",
        f"{when}  t  skipped  not_executed  attempt 1  {rest}",
    ]


def test_outcomes_are_counted_in_the_words_of_spans() -> None:
    trace = TraceRecorder()
    for outcome in (Outcome.SUCCESS, Outcome.SUCCESS, Outcome.FAILED):
        keeper(trace)(span_of(outcome=outcome))

    assert trace.outcomes() == {"success": 2, "failed": 1, "denied": 0, "skipped": 0}
    assert trace.histogram() == {"ok": 2, "fail": 1, "denied": 0, "skipped": 0}


def test_the_id_a_client_chose_cannot_forge_a_line_of_the_report() -> None:
    trace = TraceRecorder()

    keeper(trace)(span_of(call_id="1\nsuccess 99, failed 0"))

    assert len(trace.report().splitlines()) == 2


# Spans of one's own.


async def test_a_span_of_ones_own_has_its_times_from_the_clock() -> None:
    clock = FakeClock(now=5.0, wall=1_700_000_000.0)
    trace = TraceRecorder(clock=clock)
    await clock.advance(2)

    handle = trace.begin("t", call_id="c", attempt=3)
    await clock.advance(1.5)
    handle.complete(Outcome.FAILED, "transport")

    [span] = trace.spans()
    assert (span.call_id, span.attempt, span.reason) == ("c", 3, "transport")
    assert (span.started, span.offset_s, span.duration_ms) == (1_700_000_002.0, 2.0, 1500.0)


def test_a_span_that_is_never_completed_is_never_kept() -> None:
    trace = TraceRecorder()

    trace.begin("t")

    assert trace.spans() == []


def test_an_outcome_that_does_not_exist_leaves_the_span_open() -> None:
    trace = TraceRecorder()
    handle = trace.begin("t")

    with pytest.raises(ValueError, match="fine"):
        handle.complete("fine")

    assert handle.complete("skipped")


def test_a_success_has_no_reason_and_a_failure_only_a_slug() -> None:
    trace = TraceRecorder()

    trace.begin("t").complete("success", "tool_failed")
    trace.begin("t").complete("failed", "Error: sk-live-1234")

    assert [span.reason for span in trace.spans()] == ["", ""]


@pytest.mark.parametrize("text", ['{"b": [1, 2.0], "a": "x"}', ' {"a":"x","b":[1,2]}\n'])
def test_text_and_value_of_the_same_arguments_have_the_same_digest(text: str) -> None:
    digester = Digester(b"k" * 32)
    trace = TraceRecorder(digester=digester)

    trace.begin("t", arguments=text).complete("success")

    assert trace.spans()[0].digest == digester.of("t", {"a": "x", "b": [1, 2]})


@pytest.mark.parametrize("text", ["{", "[" * 100_000, "plain words", "\ud800"])
def test_text_that_is_no_json_has_a_digest_too(text: str) -> None:
    trace = TraceRecorder()

    trace.begin("t", arguments=text).complete("success")

    digest = trace.spans()[0].digest
    assert digest is not None
    assert digest.length > 0


# Listeners.


def test_a_listener_that_raises_is_logged_and_harms_nobody(
    caplog: pytest.LogCaptureFixture,
) -> None:
    saw: list[Span] = []
    trace = TraceRecorder()

    def broken(_: Span) -> None:
        raise RuntimeError("no api_key=sk-live-1234567890")

    trace.listen(broken)
    trace.listen(saw.append)
    with caplog.at_level(logging.WARNING, "seawall"):
        keeper(trace)(span_of())

    assert (len(saw), len(trace)) == (1, 1)
    assert "RuntimeError" in caplog.text
    assert "sk-live" not in caplog.text


def test_a_listener_may_leave_while_it_is_told() -> None:
    saw: list[str] = []
    trace = TraceRecorder()

    def once(_: Span) -> None:
        saw.append("once")
        trace.unlisten(once)

    trace.listen(once)
    trace.listen(lambda _: saw.append("other"))
    keeper(trace)(span_of())
    keeper(trace)(span_of())

    assert saw == ["once", "other", "other"]


def test_taking_away_a_listener_that_is_not_there_does_nothing() -> None:
    saw: list[Span] = []
    trace = TraceRecorder()
    trace.listen(saw.append)

    trace.unlisten(print)
    keeper(trace)(span_of())

    assert len(saw) == 1


async def _coroutine(_: Span) -> None: ...


@pytest.mark.parametrize("listener", [_coroutine, None, "print"])
def test_what_cannot_listen_is_refused(listener: Any) -> None:
    with pytest.raises(ConfigurationError, match="a plain function"):
        TraceRecorder().listen(listener)


def test_a_listener_that_makes_spans_of_spans_ends_and_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    trace = TraceRecorder(10)
    trace.listen(keeper(trace))

    with caplog.at_level(logging.WARNING, "seawall"):
        keeper(trace)(span_of())

    assert len(trace) == 10
    assert "RecursionError" in caplog.text
