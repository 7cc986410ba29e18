"""What a cut result says, and what is kept of it."""

from typing import Any

import pytest

from seawall.contract.content import (
    Content,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
)
from seawall.contract.errors import StoreUnavailable
from seawall.contract.failure import Failure, FailureCode
from seawall.contract.policy import RunPolicy
from seawall.contract.result import ToolResult
from seawall.contract.spill import MAX_SPILL_BYTES, SpillPart
from seawall.layers.result_limit import ResultLimit
from seawall.layers.result_sizes import size_of
from seawall.layers.result_spill import (
    NOT_KEPT,
    RESULT_READ,
    SpillStore,
    owner_of,
    page_bytes,
    whole_text,
)
from seawall.pipeline.layer import compose
from seawall.pipeline.session import Session
from seawall.testing import LayerBench, scripted


class Kept:
    """A store that keeps all, or raises."""

    def __init__(self, error: BaseException | None = None) -> None:
        self.texts: list[tuple[str, str, bytes, int, float]] = []
        self._error = error

    async def keep(
        self, spill_id: str, owner: str, data: bytes, page_bytes: int, keep_s: float
    ) -> None:
        if self._error is not None:
            raise self._error
        self.texts.append((spill_id, owner, data, page_bytes, keep_s))

    async def part(self, spill_id: str, owner: str, start: int, size: int) -> SpillPart | None:
        raise NotImplementedError


def bench_of(store: SpillStore | None, name: str = "search", **policy: Any) -> LayerBench:
    values = {"max_result_bytes": 2048, "spill": True, **policy}
    parts: dict[type, Any] = {} if store is None else {SpillStore: store}
    return LayerBench(policy=RunPolicy(**values), tool=scripted(None, name=name), parts=parts)


async def run(bench: LayerBench, answer: Any) -> ToolResult:
    limit = ResultLimit.for_tool(bench.context)
    assert limit is not None
    return await bench.call(compose([limit], bench.answering(answer)))


async def test_what_is_cut_is_kept_and_the_result_says_how_to_read_it() -> None:
    store = Kept()
    bench = bench_of(store, spill_keep_s=600)
    text = "x" * 100_000
    result = await run(bench, ToolResult.of_text(text))

    ((spill_id, _, data, page, keep_s),) = store.texts
    assert data == text.encode()
    assert (page, keep_s) == (page_bytes(2048), 600)
    assert result.text.endswith(
        f"[Its whole text, 100,000 bytes, is kept for 10 minutes; read it with {RESULT_READ}"
        f' {{"id": "{spill_id}", "page": 1}}]'
    )
    assert size_of(result) <= 2048
    assert bench.events == [("result_limit", "cut"), ("result_limit", "spilled")]


async def test_what_is_small_enough_is_not_kept() -> None:
    store = Kept()
    result = ToolResult.of_text("x" * 2048)

    assert (await run(bench_of(store), result)).content == result.content
    assert store.texts == []


@pytest.mark.parametrize("error", [StoreUnavailable("state", "locked"), RuntimeError("defect")])
async def test_a_store_that_fails_costs_the_rest_of_the_text_alone(error: BaseException) -> None:
    bench = bench_of(Kept(error))
    result = await run(bench, ToolResult.of_text("x" * 100_000))

    assert not result.is_error
    assert result.text.startswith("xxx")
    assert result.text.endswith(NOT_KEPT)
    assert bench.events == [("result_limit", "cut"), ("result_limit", "store_not_kept")]


@pytest.mark.parametrize(
    "bench",
    [
        bench_of(None),
        bench_of(Kept(), spill=False),
        bench_of(Kept(), name=RESULT_READ),
    ],
    ids=["no store", "not asked for", "the tool that reads"],
)
async def test_nothing_is_kept_where_it_is_off(bench: LayerBench) -> None:
    limit = ResultLimit.for_tool(bench.context)

    assert limit is not None
    assert limit.spill is None


async def test_more_than_is_kept_of_one_result_is_said() -> None:
    store = Kept()
    result = await run(bench_of(store), ToolResult.of_text("x" * (MAX_SPILL_BYTES + 10)))

    assert len(store.texts[0][2]) == MAX_SPILL_BYTES
    assert "the first 4,194,304 of 4,194,314 bytes" in result.text


@pytest.mark.parametrize(
    ("content", "structured", "text"),
    [
        ((TextContent(text="a"), TextContent(text="b")), None, "a\nb"),
        ((TextContent(text='{"x":  1}'),), {"x": 1}, '{"x":  1}'),
        ((TextContent(text="other"),), {"x": 1}, 'other\n{"x":1}'),
        ((), [1 << 70], "[1180591620717411303424]"),
        ((ImageContent(data="QUJD", mime_type="image/png"), TextContent(text="a")), None, "a"),
        ((EmbeddedResource(resource={"uri": "f:/a", "text": "of a"}),), None, "of a"),
        ((EmbeddedResource(resource={"uri": "f:/a", "blob": "QUJD"}),), None, ""),
        ((ResourceLink(uri="f:/a", name="a"),), None, "a: f:/a"),
    ],
)
def test_all_that_is_text_is_kept_once_and_in_order(
    content: tuple[Content, ...], structured: Any, text: str
) -> None:
    assert whole_text(ToolResult(content=content, structured_content=structured)) == text


def test_a_failure_is_kept_once_whether_the_content_says_it_or_not() -> None:
    failure = Failure(code=FailureCode.EXECUTION_FAILED, message="it broke")
    said = ToolResult.of_failure(failure)
    unsaid = ToolResult(content=(TextContent(text="trace"),), is_error=True, failure=failure)

    assert whole_text(said) == failure.render()
    assert whole_text(unsaid) == f"{failure.render()}\ntrace"


def test_nameless_sessions_are_told_apart_and_named_ones_are_not() -> None:
    drawn = iter("abc")

    def owner(session: Session) -> str:
        return owner_of(session, lambda _: next(drawn))

    nameless, other = Session(), Session()
    assert owner(nameless) == owner(nameless) == owner(nameless.offering({})) != owner(other)
    assert owner(Session("a")) == owner(Session("a")) != owner(Session("b"))
    assert owner(Session(caller="x")) == owner(Session(caller="x")) != owner(Session("x"))
    assert owner(Session("a", caller="x")) != owner(Session("a", caller="y"))
    assert owner(Session("a:b", caller="c")) != owner(Session("a", caller="b:c"))
