"""Reading on in results that were cut, with the pipelines, limits and states of real use."""

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seawall import (
    Annotations,
    ConfigurationError,
    FailureCode,
    Pipeline,
    Policies,
    Registry,
    RunPolicy,
    Session,
    State,
    ToolResult,
    open_state,
)
from seawall.contract.content import TextContent
from seawall.layers.result_sizes import size_of
from seawall.layers.result_spill import NOT_KEPT, RESULT_READ
from seawall.pipeline.recorder import Finished, ToolRecorder
from seawall.testing import FakeClock, scripted

KEY = bytes(range(32))
TEXT = "".join(f"{number:05} Grüße 🙂\n" for number in range(2_000))


def piped(state: State | None, text: str = TEXT, **options: Any) -> Pipeline:
    policy = RunPolicy(max_result_bytes=2_000, spill=True)
    options = {"policies": Policies(default=policy), **options}
    search = scripted(
        ToolResult.of_text(text), name="search", annotations=Annotations.for_reading()
    )
    return Pipeline([search], state=state, **options)


def spill_id(result: ToolResult) -> str:
    found = re.search(rf'{RESULT_READ} {{"id": "(\w+)"', result.text)
    assert found, result.text[-300:]
    return found[1]


async def read_all(
    pipeline: Pipeline, name: str, session: Session | None = None, most: int = 2_000
) -> str:
    """Read page by page, as the lines below the pages say."""
    arguments: dict[str, Any] | None = {"id": name}
    pages = []
    while arguments is not None:
        result = await pipeline.call(RESULT_READ, arguments, session=session)
        assert not result.is_error, result.text
        assert size_of(result) <= most
        page, line = result.content
        assert isinstance(page, TextContent)
        assert isinstance(line, TextContent)
        pages.append(page.text)
        following = re.search(r'"page": (\d+)}', line.text)
        arguments = {"id": name, "page": int(following[1])} if following else None
    return "".join(pages)


@pytest.fixture
def session() -> Session:
    return Session("one", caller="ada")


async def test_what_was_cut_is_read_page_by_page_by_its_session(
    state_url: str, session: Session
) -> None:
    async with open_state(state_url, key=KEY) as state:
        cut = await piped(state).call("search", session=session)
    async with open_state(state_url, key=KEY) as state:
        pipeline = piped(state)

        assert await read_all(pipeline, spill_id(cut), Session("one", caller="ada")) == TEXT
        assert size_of(cut) <= 2_000


@pytest.mark.parametrize(
    "other",
    [Session("two", caller="ada"), Session("one", caller="eve"), Session("one"), Session(), None],
)
async def test_to_any_other_session_it_is_not_there(
    session: Session, other: Session | None
) -> None:
    async with open_state("memory:") as state:
        pipeline = piped(state)
        name = spill_id(await pipeline.call("search", session=session))
        result = await pipeline.call(RESULT_READ, {"id": name}, session=other)

    assert result.failure is not None
    assert result.failure.code is FailureCode.NOT_FOUND
    assert "this session" in result.text


async def test_calls_without_a_session_read_their_own_in_one_pipeline_alone() -> None:
    async with open_state("memory:") as state:
        pipeline, other = piped(state), piped(state)
        name = spill_id(await pipeline.call("search"))

        assert await read_all(pipeline, name) == TEXT
        assert (await other.call(RESULT_READ, {"id": name})).is_error


async def test_it_is_gone_when_its_time_is_over(session: Session) -> None:
    clock = FakeClock()
    policies = Policies(RunPolicy(max_result_bytes=2_000, spill=True, spill_keep_s=60))
    async with open_state("memory:", clock=clock) as state:
        pipeline = piped(state, policies=policies, clock=clock)
        name = spill_id(await pipeline.call("search", session=session))
        await clock.advance(61)
        result = await pipeline.call(RESULT_READ, {"id": name}, session=session)

    assert result.failure is not None
    assert result.failure.code is FailureCode.NOT_FOUND


@pytest.mark.parametrize("most", [256, 300, 1_024, 5_000])
async def test_pages_are_no_longer_than_the_limit_of_the_cut_call_or_of_the_reader(
    most: int, session: Session
) -> None:
    policies = Policies(
        RunPolicy(max_result_bytes=3_000, spill=True),
        tools={RESULT_READ: RunPolicy(max_result_bytes=most)},
    )
    async with open_state("memory:") as state:
        pipeline = piped(state, policies=policies)
        name = spill_id(await pipeline.call("search", session=session))

        assert await read_all(pipeline, name, session, min(most, 3_000)) == TEXT


@given(text=st.text(min_size=300, max_size=3_000))
async def test_pages_put_together_are_the_text(text: str) -> None:
    whole = text + "." * 1_000
    policies = Policies(RunPolicy(max_result_bytes=300, spill=True))
    async with open_state("memory:") as state:
        pipeline = piped(state, whole, policies=policies)
        session = Session("s")
        name = spill_id(await pipeline.call("search", session=session))

        assert await read_all(pipeline, name, session, 300) == whole


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"id": "nothing"}, FailureCode.NOT_FOUND),
        ({"id": "KNOWN", "page": 1_000}, FailureCode.INVALID_ARGUMENT),
        ({"id": "KNOWN", "page": 0}, FailureCode.INVALID_ARGUMENT),
        ({"id": ""}, FailureCode.INVALID_ARGUMENT),
        ({}, FailureCode.INVALID_ARGUMENT),
    ],
)
async def test_a_page_that_is_not_there_is_refused(
    arguments: dict[str, Any], code: FailureCode, session: Session
) -> None:
    async with open_state("memory:") as state:
        pipeline = piped(state)
        name = spill_id(await pipeline.call("search", session=session))
        given = {key: name if value == "KNOWN" else value for key, value in arguments.items()}
        result = await pipeline.call(RESULT_READ, given, session=session)

    assert result.failure is not None
    assert result.failure.code is code


async def test_a_state_that_is_down_leaves_the_cut_result(tmp_path: Path) -> None:
    async with open_state(f"sqlite:///{tmp_path}/state.db", timeout_s=0.5) as state:
        pipeline = piped(state)
        known = spill_id(await pipeline.call("search"))
        await state.aclose()
        (tmp_path / "state.db").unlink()
        (tmp_path / "state.db").mkdir()
        cut = await pipeline.call("search")
        read = await pipeline.call(RESULT_READ, {"id": known})

    assert not cut.is_error
    assert cut.text.startswith(TEXT[:100])
    assert cut.text.endswith(NOT_KEPT)
    assert read.failure is not None
    assert read.failure.code is FailureCode.EXECUTION_FAILED
    assert read.failure.retryable


async def test_turns_keep_what_they_cut_too(session: Session) -> None:
    async with open_state("memory:") as state:
        pipeline = piped(state)
        outcome = await pipeline.turn([("search", {}), ("search", {"a": 1})], session=session)

        names = {spill_id(result) for result in outcome.results}
        assert len(names) == 2
        for name in names:
            assert await read_all(pipeline, name, session) == TEXT


class Books:
    """Keeps the ends of calls."""

    def __init__(self) -> None:
        self.ended: list[Finished] = []

    def for_tool(self, tool: str) -> ToolRecorder:
        return ToolRecorder(on_call=self.ended.append)

    def unknown(self) -> None: ...


async def test_the_books_of_a_call_are_closed_once_with_what_was_handed_on() -> None:
    books = Books()
    async with open_state("memory:") as state:
        pipeline = piped(state, recorders=[books])
        result = await pipeline.call("search")

    assert [ended.result for ended in books.ended] == [result]
    assert [span.outcome for span in pipeline.trace.spans()] == ["success"]


async def test_a_caller_that_goes_while_it_is_kept_leaves_closed_books() -> None:
    books = Books()
    async with open_state("memory:") as state:
        pipeline = piped(state, recorders=[books])
        reached = asyncio.Event()

        async def never(*_: object) -> None:
            reached.set()
            await asyncio.Event().wait()

        state.spills.keep = never  # type: ignore[union-attr, method-assign]  # the one way to hold it
        call = asyncio.create_task(pipeline.call("search"))
        await reached.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

    (ended,) = books.ended
    assert ended.outcome == "success"
    assert ended.result is not None
    assert size_of(ended.result) <= 2_000


@pytest.mark.parametrize("state", [None, "memory:"])
def test_the_tool_is_there_where_something_may_be_kept(state: str | None) -> None:
    opened = None if state is None else open_state(state)
    kept = RunPolicy(max_result_bytes=2_000, spill=True)

    asking = piped(opened)
    assert (RESULT_READ in asking.registry) is (state is not None)
    for policy in (RunPolicy(spill=True), RunPolicy(max_result_bytes=2_000)):
        assert RESULT_READ not in piped(opened, policies=Policies(policy)).registry
    late = piped(opened, policies=Policies(RunPolicy()))
    late.replace_policies(Policies(kept))
    assert (RESULT_READ in late.registry) is (state is not None)
    empty = Pipeline([], policies=Policies(kept), state=opened)
    empty.registry.register(scripted(1))
    assert (RESULT_READ in empty.registry) is (state is not None)


def test_pipelines_may_share_a_registry_and_a_state() -> None:
    registry, state = Registry([scripted(1)]), open_state("memory:")
    policies = Policies(RunPolicy(max_result_bytes=2_000, spill=True))
    for shared in (registry, registry, registry.copy()):
        pipeline = Pipeline(shared, policies=policies, state=state)
        assert pipeline.registry.names() == ("scripted", RESULT_READ)


def test_another_tool_of_its_name_is_refused() -> None:
    policies = Policies(RunPolicy(max_result_bytes=2_000, spill=True))
    with pytest.raises(ConfigurationError, match="named result_read of your own"):
        Pipeline(
            [scripted(1), scripted(1, name=RESULT_READ)],
            policies=policies,
            state=open_state("memory:"),
        )


def test_the_tool_reads_only_and_asks_nobody() -> None:
    pipeline = piped(open_state("memory:"))
    tool = pipeline.registry.get(RESULT_READ)

    assert tool is not None
    assert tool.retry_safe
    assert pipeline.decision_for(tool).action == "allow"
