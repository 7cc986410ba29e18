"""Whose answers are given again, for how long, and what equal calls at one time do."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seawall import (
    Annotations,
    EmbeddedResource,
    Failure,
    FailureCode,
    Pipeline,
    Policies,
    ResourceLink,
    RunPolicy,
    Session,
    TextContent,
    Tool,
    ToolFailed,
    ToolResult,
)
from seawall.contract.errors import ConfigurationError
from seawall.contract.optional_policies import CachePolicy
from seawall.layers.cache import ENTRY_BYTES, MAX_WAITING
from seawall.testing import FakeClock, scripted

READING = Annotations.for_reading()


class Source:
    """A tool that counts its runs; a run takes `seconds` and gives its number or a script's end."""

    def __init__(self, *script: Any, seconds: float = 0.0) -> None:
        self.script = script
        self.seconds = seconds
        self.clock = FakeClock()
        self.runs: list[Any] = []

    async def __call__(self, arguments: dict[str, Any], context: Any) -> Any:
        self.runs.append(arguments)
        number = len(self.runs)
        if self.seconds:
            await self.clock.sleep(self.seconds)
        answer = self.script[min(number, len(self.script)) - 1] if self.script else f"run {number}"
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def tool(self, annotations: Annotations = READING) -> Tool:
        return Tool("t", "", {"type": "object"}, self, annotations=annotations)

    def pipeline(
        self, annotations: Annotations = READING, policy: dict[str, Any] | None = None, **cache: Any
    ) -> Pipeline:
        run = RunPolicy(cache=CachePolicy(**{"ttl_s": 10, **cache}), **(policy or {}))
        return Pipeline([self.tool(annotations)], policies=Policies(run), clock=self.clock)


async def text(source: Source, pipeline: Pipeline, arguments: Any = None, **fields: Any) -> str:
    return (await source.clock.run(pipeline.call("t", arguments, **fields))).text


async def test_an_answer_is_given_again_until_it_is_too_old() -> None:
    source = Source()
    pipeline = source.pipeline(ttl_s=10)

    seen = []
    for wait_s in (0, 9.9, 0.1, 0):
        await source.clock.advance(wait_s)
        seen.append(await text(source, pipeline, {"a": 1}))

    assert seen == ["run 1", "run 1", "run 2", "run 2"]


async def test_an_answer_given_again_says_how_old_it_is() -> None:
    source = Source()
    pipeline = source.pipeline()
    await text(source, pipeline)
    await source.clock.advance(4)

    result = await source.clock.run(pipeline.call("t", call_id="c9"))

    assert result.metadata == {"cache": {"age_s": 4.0}}
    assert (result.call_id, result.attempts, result.duration_ms) == ("c9", 0, None)
    span = pipeline.trace.spans()[0]
    assert (span.attempt, span.outcome.value, span.verdicts) == (0, "success", ("cache:hit",))


async def test_other_arguments_are_another_question_and_their_order_is_not() -> None:
    source = Source()
    pipeline = source.pipeline()

    seen = [
        await text(source, pipeline, arguments)
        for arguments in ({"a": 1, "b": 2}, '{"b": 2, "a": 1}', {"a": 1, "b": 3}, {})
    ]

    assert seen == ["run 1", "run 1", "run 2", "run 3"]


@pytest.mark.parametrize(
    "annotations", [Annotations(), Annotations.for_changing(), Annotations(idempotent=True)]
)
async def test_a_tool_that_does_more_than_read_is_never_cached(annotations: Annotations) -> None:
    source = Source()
    pipeline = source.pipeline(annotations)

    assert [await text(source, pipeline) for _ in range(2)] == ["run 1", "run 2"]


@pytest.mark.parametrize(
    "failure",
    [
        ConnectionError("reset"),
        ToolFailed(Failure(code=FailureCode.NOT_FOUND, message="no")),
        ToolFailed("no"),
    ],
)
async def test_errors_are_not_kept(failure: Exception) -> None:
    source = Source(failure, "good", "never")
    pipeline = source.pipeline()

    results = [await source.clock.run(pipeline.call("t")) for _ in range(3)]

    assert [result.is_error for result in results] == [True, False, False]
    assert len(source.runs) == 2


SESSIONS = {
    "one": Session("1", caller="ann"),
    "same": Session("1", caller="ann"),
    "other": Session("2", caller="ann"),
    "stranger": Session("1", caller="bob"),
    "nameless": Session(),
    "nameless too": Session(),
    "none": None,
}


@pytest.mark.parametrize(
    ("scope", "shared"),
    [
        ("session", [{"one", "same"}, {"other"}, {"stranger"}]),
        ("caller", [{"one", "same", "other"}, {"stranger"}]),
        ("all", [set(SESSIONS)]),
    ],
)
async def test_an_answer_is_given_to_nobody_else_unless_the_policy_says_so(
    scope: str, shared: list[set[str]]
) -> None:
    source = Source()
    pipeline = source.pipeline(scope=scope)
    answers: dict[str, set[str]] = {}
    for _ in range(2):
        for name, session in SESSIONS.items():
            answers.setdefault(name, set()).add(await text(source, pipeline, session=session))

    assert all(len(found) == 1 for found in answers.values())
    groups = [{n for n, a in answers.items() if a == answer} for answer in answers.values()]
    for name, group in zip(answers, groups, strict=True):
        assert group == next((one for one in shared if name in one), {name})


async def test_answers_of_a_sensitive_tool_stay_in_their_session_whatever_the_policy_says() -> None:
    source = Source()
    sensitive = Annotations(read_only=True, sensitive=True)
    pipeline = source.pipeline(sensitive, scope="all")
    pipeline = Pipeline(
        [source.tool(sensitive)],
        policies=pipeline.policies,
        clock=source.clock,
        layers=["argument_check", "cache"],
    )

    seen = [await text(source, pipeline, session=SESSIONS[n]) for n in ("one", "other", "same")]

    assert seen == ["run 1", "run 2", "run 1"]


async def test_equal_calls_at_one_time_are_one_run() -> None:
    source = Source(seconds=5)
    pipeline = source.pipeline(policy={"rate": "1/hour"})

    results = await source.clock.run(asyncio.gather(*(pipeline.call("t") for _ in range(50))))

    assert {result.text for result in results} == {"run 1"}
    assert len(source.runs) == 1
    assert sorted(result.attempts for result in results) == [0] * 49 + [1]


async def test_when_the_run_is_cancelled_the_next_who_waits_runs_and_the_others_wait_on() -> None:
    source = Source(seconds=5)
    pipeline = source.pipeline()
    calls = [asyncio.ensure_future(pipeline.call("t")) for _ in range(3)]
    await source.clock.advance(2)

    calls[0].cancel()
    await source.clock.advance(4.9)
    assert len(source.runs) == 2
    assert not any(call.done() for call in calls[1:])
    await source.clock.advance(0.2)

    assert calls[0].cancelled()
    assert [call.result().text for call in calls[1:]] == ["run 2", "run 2"]


async def test_who_waits_may_be_cancelled_alone() -> None:
    source = Source(seconds=5)
    pipeline = source.pipeline()
    calls = [asyncio.ensure_future(pipeline.call("t")) for _ in range(3)]
    await source.clock.advance(2)

    calls[1].cancel()
    await source.clock.advance(3)

    assert calls[1].cancelled()
    assert [calls[n].result().text for n in (0, 2)] == ["run 1", "run 1"]


async def test_a_run_that_fails_is_not_shared_and_never_more_than_one_is_under_way() -> None:
    down = ConnectionError("reset")
    source = Source(down, down, "good", seconds=5)
    pipeline = source.pipeline()
    calls = [asyncio.ensure_future(pipeline.call("t")) for _ in range(4)]

    for seconds, runs in ((4, 1), (5, 2), (5, 3), (5, 3)):
        await source.clock.advance(seconds)
        assert len(source.runs) == runs

    assert [call.result().is_error for call in calls] == [True, True, False, False]


async def test_who_waits_is_bound_by_its_own_deadline() -> None:
    source = Source(seconds=50)
    pipeline = source.pipeline()
    first = asyncio.ensure_future(pipeline.call("t"))
    await source.clock.advance(1)

    late = await source.clock.run(pipeline.call("t", deadline_s=5))

    assert late.failure is not None
    assert late.failure.reason == "deadline_exceeded"
    assert (late.failure.may_have_run, source.clock.now()) == (False, 6)
    assert (await source.clock.run(first)).text == "run 1"


async def test_the_first_ones_deadline_is_not_that_of_the_others() -> None:
    source = Source(seconds=10)
    pipeline = source.pipeline()
    hurried = asyncio.ensure_future(pipeline.call("t", deadline_s=5))
    patient = asyncio.ensure_future(pipeline.call("t"))
    await source.clock.advance(20)

    assert hurried.result().is_error
    assert patient.result().text == "run 2"


async def test_an_answer_too_large_to_be_kept_is_still_given_to_who_waited() -> None:
    source = Source("x" * 1000, seconds=5)
    pipeline = source.pipeline(max_bytes=500)

    results = await source.clock.run(asyncio.gather(*(pipeline.call("t") for _ in range(3))))
    await text(source, pipeline)

    assert {len(result.text) for result in results} == {1000}
    assert len(source.runs) == 2


async def test_too_many_who_wait_are_refused() -> None:
    source = Source(seconds=5)
    pipeline = source.pipeline()
    calls = [asyncio.ensure_future(pipeline.call("t")) for _ in range(MAX_WAITING + 2)]
    await source.clock.settle()

    refused = calls[-1].result()

    assert refused.failure is not None
    assert refused.failure.reason == "overloaded"
    await source.clock.advance(5)
    assert sum(call.result().is_error for call in calls) == 1


async def test_a_tool_that_calls_itself_does_not_wait_for_itself() -> None:
    clock = FakeClock()
    depths: list[int] = []

    async def nested(arguments: dict[str, Any], context: Any) -> str:
        depths.append(len(depths))
        if len(depths) < 3:
            await context.call_tool("t", arguments)
        return "done"

    tool = Tool("t", "", {"type": "object"}, nested, annotations=READING)
    pipeline = Pipeline([tool], policies=Policies(RunPolicy(cache=CachePolicy())), clock=clock)

    assert (await clock.run(pipeline.call("t"))).text == "done"
    assert len(depths) == 3


async def test_what_somebody_does_to_an_answer_changes_it_for_nobody_else() -> None:
    source = Source({"rows": [1, 2]})
    pipeline = source.pipeline()
    for _ in range(3):
        result = await source.clock.run(pipeline.call("t"))
        assert result.structured_content == {"rows": [1, 2]}
        result.structured_content["rows"].append("mine")


def rich(said: str = "original") -> ToolResult:
    """Build a result with all that can be changed in place."""
    return ToolResult(
        content=(
            TextContent(text="t", meta={"who": {"is": said}}, annotations={"audience": [said]}),
            EmbeddedResource(resource={"uri": "doc:1", "text": said}, meta={"who": said}),
            ResourceLink(uri="doc:2", name="x", meta={"who": [said]}),
        ),
        structured_content={"a": [said]},
        metadata={"m": {"k": [said]}, "set": {said}, "pair": ({"k": said},)},
    )


def spoil(value: Any) -> None:
    """Change all that can be changed in a value, in place."""
    if isinstance(value, msgspec.Struct):
        for part in msgspec.structs.astuple(value):
            spoil(part)
    elif isinstance(value, dict):
        for part in list(value.values()):
            spoil(part)
        value.update(dict.fromkeys(value, "spoilt"))
    elif isinstance(value, (list, tuple)):
        for part in value:
            spoil(part)
        if isinstance(value, list):
            value[:] = ["spoilt"]
    elif isinstance(value, set):
        value.add("spoilt")


async def test_whatever_somebody_changes_in_an_answer_reaches_nobody_else() -> None:
    source = Source(rich())
    pipeline = source.pipeline(scope="all")
    wanted = rich()

    for name in ("mallory", "alice", "carol"):
        result = await source.clock.run(pipeline.call("t", session=Session(name)))

        assert result.content == wanted.content
        assert result.structured_content == wanted.structured_content
        said = {key: value for key, value in (result.metadata or {}).items() if key != "cache"}
        assert said == wanted.metadata
        spoil((result.content, result.structured_content, result.metadata))


async def test_what_waiting_calls_are_given_is_each_ones_own() -> None:
    source = Source(rich(), seconds=5)
    pipeline = source.pipeline()

    results = await source.clock.run(asyncio.gather(*(pipeline.call("t") for _ in range(3))))
    spoil((results[0].content, results[0].structured_content))
    spoil((results[1].content, results[1].structured_content))

    assert results[2].content == rich().content
    assert results[2].structured_content == rich().structured_content


@pytest.mark.parametrize("kind", ["ring", "deep", "wide"])
async def test_metadata_without_an_end_is_not_given_again(kind: str) -> None:
    odd: dict[str, Any] = {}
    if kind == "ring":
        odd["self"] = odd
    inner: Any = []
    for _ in range(200 if kind == "deep" else 30):
        inner = [inner] if kind == "deep" else [inner, inner]
    odd["inner"] = inner
    source = Source(msgspec.structs.replace(ToolResult.of_text("x"), metadata=odd))
    pipeline = source.pipeline()
    await source.clock.run(pipeline.call("t"))

    again = await source.clock.run(pipeline.call("t"))

    assert again.text == "x"
    assert list(again.metadata or {}) == ["cache"]


@pytest.mark.parametrize("scope", ["session", "caller"])
async def test_names_that_run_into_each_other_are_told_apart(scope: str) -> None:
    source = Source()
    pipeline = source.pipeline(scope=scope)
    sessions = [Session("c", caller="a\0b"), Session("b\0c", caller="a")]

    assert [await text(source, pipeline, session=one) for one in sessions] == ["run 1", "run 2"]


async def test_details_and_usage_are_not_given_again() -> None:
    answer = ToolResult.of_text("x")
    own = msgspec.structs.replace(answer, details=object(), usage={"tokens": 5}, metadata={"a": 1})
    source = Source(own)
    pipeline = source.pipeline()
    first = await source.clock.run(pipeline.call("t"))

    again = await source.clock.run(pipeline.call("t"))

    assert first.usage == {"tokens": 5}
    assert (again.details, again.usage) == (None, None)
    assert again.metadata == {"a": 1, "cache": {"age_s": 0.0}}


async def test_answers_of_a_tool_that_was_replaced_are_forgotten() -> None:
    source = Source(seconds=5)
    pipeline = source.pipeline()
    await text(source, pipeline, {"a": 1})
    running = asyncio.ensure_future(pipeline.call("t", {"a": 2}))
    await source.clock.advance(1)

    pipeline.registry.register(
        scripted("new", name="t", annotations=READING), on_duplicate="replace"
    )
    await source.clock.advance(5)

    assert running.result().text == "run 2"
    assert [await text(source, pipeline, {"a": n}) for n in (1, 2)] == ["new", "new"]


async def test_answers_outlive_a_reload_and_go_with_the_policy() -> None:
    source = Source()
    pipeline = source.pipeline()
    await text(source, pipeline)

    pipeline.replace_policies(Policies(RunPolicy(cache=CachePolicy(ttl_s=100))))
    assert await text(source, pipeline) == "run 1"
    pipeline.replace_policies(Policies(RunPolicy()))
    assert await text(source, pipeline) == "run 2"
    pipeline.replace_policies(Policies(RunPolicy(cache=CachePolicy())))
    assert await text(source, pipeline) == "run 3"


STEPS = st.lists(
    st.tuples(st.integers(0, 6), st.integers(0, 300), st.sampled_from([0.0, 1.0, 4.0, 11.0])),
    max_size=40,
)


@settings(deadline=None)
@given(steps=STEPS, entries=st.integers(1, 4), room=st.sampled_from([600, 1500, 10_000]))
def test_it_keeps_what_a_plain_model_keeps(steps: Any, entries: int, room: int) -> None:
    asyncio.run(_against_model(steps, entries, room))


async def _against_model(steps: Any, entries: int, room: int) -> None:
    """Recently used last, `entries` of them and `room` bytes at most, ten seconds long."""
    sizes: list[int] = []

    class Sized(Source):
        async def __call__(self, arguments: dict[str, Any], context: Any) -> Any:
            self.runs.append(arguments)
            return "x" * sizes[-1]

    source = Sized()
    pipeline = source.pipeline(max_entries=entries, max_bytes=room)
    kept: dict[int, tuple[float, int]] = {}
    runs = 0
    for key, size, wait_s in steps:
        await source.clock.advance(wait_s)
        now = source.clock.now()
        sizes.append(size)
        got = await text(source, pipeline, {"k": key})

        if key in kept and now - kept[key][0] < 10:
            kept[key] = kept.pop(key)
            assert len(got) == kept[key][1]
        else:
            kept.pop(key, None)
            runs += 1
            if size + ENTRY_BYTES <= room:
                kept[key] = (now, size)
        while len(kept) > entries or sum(s + ENTRY_BYTES for _, s in kept.values()) > room:
            del kept[next(iter(kept))]
        held = pipeline.states.of_tool("t").find("cache")
        assert len(source.runs) == runs
        assert (len(held), held.size) == (len(kept), sum(s + ENTRY_BYTES for _, s in kept.values()))
        assert not held.flights


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"ttl_s": 0}, "cache.ttl_s: must be above 0; leave it out for no limit (got 0)"),
        ({"max_entries": 0}, "cache.max_entries: must be at least 1 (got 0)"),
        ({"max_bytes": 1}, "cache.max_bytes: must be at least 256 (got 1)"),
        ({"scope": "us"}, "cache.scope: is 'us'; use one of session, caller, all"),
    ],
)
def test_settings_that_cannot_be_are_refused(values: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        CachePolicy(**values)

    assert str(caught.value) == said
