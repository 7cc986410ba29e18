"""Any value becomes a valid result, and anything raised a bounded failure."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import json
import math
import uuid
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

import msgspec
import pydantic
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from seawall.contract.content import EmbeddedResource, ImageContent, TextContent
from seawall.contract.failure import Failure, FailureCode, Issue, ToolFailed
from seawall.contract.result import ToolResult
from seawall.pipeline.convert import (
    MAX_MESSAGE,
    data_of,
    failure_of,
    is_infrastructure,
    parts_of,
    result_of,
)
from seawall.pipeline.extent import MAX_CHARACTERS, MAX_ITEMS, Extent, extent_of
from seawall.testing import LayerBench

if TYPE_CHECKING:
    from collections.abc import Iterator

IMAGE = ImageContent(data="aGk=", mime_type="image/png")


class Model(pydantic.BaseModel):
    name: str
    when: datetime.date


@dataclasses.dataclass
class Point:
    x: int
    y: int


class Opaque:
    pass


class Unsayable:
    def __repr__(self) -> str:
        raise TypeError("no")


def text_of(value: Any) -> str:
    return ToolResult(content=parts_of(value)[0]).text


def deep(levels: int) -> Any:
    value: Any = "bottom"
    for _ in range(levels):
        value = [value]
    return value


def cycle(branches: int) -> Any:
    """A value that holds itself, more than once: as nodes do that know their parent."""
    value: dict[str, Any] = {}
    for number in range(branches):
        value[str(number)] = {"parent": value, "value": 2**70}
    return value


@pytest.mark.parametrize(
    ("value", "structured"),
    [
        (5, 5),
        (True, True),
        (2.5, 2.5),
        ([1, "a", None], [1, "a", None]),
        ({"a": {"b": 1}}, {"a": {"b": 1}}),
        ((1, 2), [1, 2]),
        ({"s": {1}}, {"s": [1]}),
        ({"x": math.nan, "y": math.inf}, {"x": None, "y": None}),
        ({1: "x"}, {"1": "x"}),
        ({("a", 1): 1, ("a", 2): 2}, {"('a', 1)": 1, "('a', 2)": 2}),
        ({PurePosixPath("a"): PurePosixPath("b")}, {"a": "b"}),
        ({"it": iter([1]), "o": Opaque()}, {"it": [1], "o": "<Opaque>"}),
        (2**80, 2**80),
        ([2**80], [2**80]),
        (datetime.date(2026, 1, 2), "2026-01-02"),
        (uuid.UUID(int=0), "00000000-0000-0000-0000-000000000000"),
        (Model(name="a", when=datetime.date(2026, 1, 2)), {"name": "a", "when": "2026-01-02"}),
        ([Model(name="a", when=datetime.date(2026, 1, 2))], [{"name": "a", "when": "2026-01-02"}]),
        (Model, "<ModelMetaclass>"),
        (Point(1, 2), {"x": 1, "y": 2}),
        (range(3), [0, 1, 2]),
        (iter([1, 2]), [1, 2]),
        ({"it": iter([1])}, {"it": [1]}),
        (Opaque(), "<Opaque>"),
        ({"o": Opaque()}, {"o": "<Opaque>"}),
        ({2**70: Opaque()}, {str(2**70): "<Opaque>"}),
        ({"a": "\ud800"}, {"a": "?"}),
        ({"\ud800": 1}, {"?": 1}),
        ([], []),
        ({}, {}),
    ],
    ids=lambda value: type(value).__name__,
)
def test_data_becomes_text_and_structured_content(value: Any, structured: Any) -> None:
    content, found = parts_of(value)

    assert found == structured
    (block,) = content
    assert isinstance(block, TextContent)
    assert json.loads(block.text) == structured


@pytest.mark.parametrize(
    ("value", "content"),
    [
        ("text", (TextContent(text="text"),)),
        ("a\ud800", (TextContent(text="a?"),)),
        (None, ()),
        (IMAGE, (IMAGE,)),
        ([IMAGE, TextContent(text="x")], (IMAGE, TextContent(text="x"))),
        (b"bytes", (TextContent(text="bytes"),)),
        (bytearray(b"bytes"), (TextContent(text="bytes"),)),
        (memoryview(b"bytes"), (TextContent(text="bytes"),)),
    ],
)
def test_text_bytes_and_blocks_stay_what_they_are(value: Any, content: Any) -> None:
    assert parts_of(value) == (content, None)


def test_bytes_that_are_no_text_become_a_resource() -> None:
    ((block,), structured) = parts_of(b"\xff\x00")

    assert isinstance(block, EmbeddedResource)
    assert block.resource["blob"] == "/wA="
    assert structured is None


@pytest.mark.parametrize("levels", [501, 900, 5_000, 100_000])
def test_depth_is_bounded(levels: int) -> None:
    assert len(text_of(deep(levels))) < 1_000


@pytest.mark.parametrize("branches", [1, 2, 20])
def test_a_value_that_holds_itself_ends_there(branches: int) -> None:
    _, structured = parts_of(cycle(branches))

    assert structured == {
        str(number): {"parent": "<itself>", "value": 2**70} for number in range(branches)
    }


def test_of_a_value_without_end_a_bounded_part_is_given() -> None:
    value: Any = {"surrogate": "\ud800"}
    for _ in range(40):
        value = [value, value]

    assert len(json.dumps(parts_of((2**70, {(1,): value}))[1])) < 5_000_000


def test_a_generator_without_end_is_cut_and_closed() -> None:
    closed: list[bool] = []

    def numbers() -> Iterator[int]:
        n = 0
        try:
            while True:
                yield n
                n += 1
        finally:
            closed.append(True)

    _, structured = parts_of(numbers())

    assert len(structured) == MAX_ITEMS
    assert closed == [True]


def test_what_cannot_be_data_at_all_stands_as_its_type() -> None:
    assert text_of({(Unsayable(),): 1}) == "<dict>"


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.integers(), inner),
        max_leaves=20,
    )
)
def test_whatever_comes_the_result_is_strict_json(value: Any) -> None:
    content, structured = parts_of(value)

    json.dumps(structured, allow_nan=False).encode()
    msgspec.json.encode(content)


SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text()


class Whole(int):
    pass


class Real(float):
    pass


class Table(dict[str, Any]):
    pass


@given(
    st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner))
    | st.builds(Whole, st.integers())
    | st.builds(Real, st.floats())
    | st.builds(Table, st.dictionaries(st.text(), SCALARS))
    | st.dictionaries(st.integers(), SCALARS)
)
@example(-0.0)
@example(math.nan)
@example(-math.inf)
@example(2**64)
@example(-(2**63) - 1)
@example({"a": 2**70, "ä": "\ud800"})
def test_what_is_plainly_data_becomes_what_any_value_becomes(value: Any) -> None:
    result = result_of(value, LayerBench().invocation())

    # repr: `True` is not `1`, and `-0.0` not `0.0`
    assert repr((result.content, result.structured_content)) == repr(parts_of(value))


# --- results that a tool makes itself


def own(result: ToolResult) -> ToolResult:
    call = LayerBench().invocation()
    call.attempt, call.executed_s = 2, 0.5
    return result_of(result, call)


def test_an_own_result_is_completed_with_what_the_pipeline_knows() -> None:
    result = own(ToolResult(call_id="x", tool="y", details={"d": 1}, terminate=True, attempts=9))

    assert (result.call_id, result.tool, result.attempts, result.duration_ms) == (
        "1",
        "tool",
        2,
        500.0,
    )
    assert (result.details, result.terminate, result.is_error) == ({"d": 1}, True, False)


@pytest.mark.parametrize(
    ("content", "text"),
    [("plain", "plain"), ([TextContent(text="a")], "a"), ((1, 2), "[1,2]"), ((), ""), ([], "")],
)
def test_content_of_the_wrong_kind_is_mended(content: Any, text: str) -> None:
    result = own(ToolResult(content=content))

    assert result.text == text
    assert isinstance(result.content, tuple)


def test_structured_content_is_made_json() -> None:
    assert own(ToolResult(structured_content={"s": {1}, "n": math.nan})).structured_content == {
        "s": [1],
        "n": None,
    }


def test_an_error_without_a_failure_gets_one_from_its_text() -> None:
    result = own(
        ToolResult(content=(IMAGE, TextContent(text="\nno such row\nmore")), is_error=True)
    )

    assert result.failure is not None
    assert (result.failure.code, result.failure.message) == (
        FailureCode.EXECUTION_FAILED,
        "no such row",
    )
    long = own(ToolResult(content=(TextContent(text="x" * 5_000_000),), is_error=True))
    assert long.failure is not None
    assert len(long.failure.message) == 500
    silent = own(ToolResult(is_error=True)).failure
    assert silent is not None
    assert "without a text" in silent.message


def test_a_failure_makes_a_result_an_error() -> None:
    failure = Failure(code=FailureCode.NOT_FOUND, message="no")

    result = own(ToolResult(failure=failure, is_error=False))

    assert result.is_error
    assert result.failure is not None
    assert result.failure.layer == "executor"


# --- failures


@pytest.mark.parametrize(
    ("error", "code", "reason", "retryable"),
    [
        (ValueError("x"), FailureCode.EXECUTION_FAILED, "tool_failed", True),
        (OSError("x"), FailureCode.EXECUTION_FAILED, "tool_failed", True),
        (TimeoutError(), FailureCode.EXECUTION_FAILED, "tool_timeout", True),
        (FileNotFoundError("x"), FailureCode.EXECUTION_FAILED, "tool_failed", False),
        (SystemExit(1), FailureCode.EXECUTION_FAILED, "tool_failed", False),
        # Mistakes in the code do not pass by themselves.
        (KeyError("x"), FailureCode.EXECUTION_FAILED, "tool_failed", False),
        (TypeError("x"), FailureCode.EXECUTION_FAILED, "tool_failed", False),
        (AttributeError("x"), FailureCode.EXECUTION_FAILED, "tool_failed", False),
        (ZeroDivisionError(), FailureCode.EXECUTION_FAILED, "tool_failed", False),
        (RecursionError(), FailureCode.EXECUTION_FAILED, "tool_failed", False),
        # A decoder raises it for an answer that was cut off.
        (json.JSONDecodeError("x", "", 0), FailureCode.EXECUTION_FAILED, "tool_failed", True),
        (RuntimeError("x"), FailureCode.EXECUTION_FAILED, "tool_failed", True),
        (PermissionError("x"), FailureCode.PERMISSION_DENIED, "permission_denied", False),
        (NotImplementedError(), FailureCode.UNSUPPORTED, "unsupported", False),
        (
            ExceptionGroup("g", [ExceptionGroup("h", [PermissionError("x")])]),
            FailureCode.PERMISSION_DENIED,
            "permission_denied",
            False,
        ),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else None,
)
def test_what_is_raised_becomes_a_failure_by_its_type(
    error: BaseException, code: FailureCode, reason: str, retryable: bool
) -> None:
    failure = failure_of(error)

    assert (failure.code, failure.reason, failure.retryable) == (code, reason, retryable)
    assert failure.cause[0] == type(error).__name__
    assert failure.may_have_run is None


def test_a_tools_own_failure_is_kept_and_said_to_be_its_own() -> None:
    mine = Failure(
        code=FailureCode.RATE_LIMITED,
        message="busy",
        reason="shop_busy",
        guidance="come back",
        layer="pretends",
        retry_after_s=5,
        issues=(Issue("/a", "b"),),
        hints=("x",),
    )

    failure = failure_of(ToolFailed(mine), retry_after_s=99)

    assert failure == msgspec.structs.replace(mine, layer="executor", retry_after_s=5.0)


@pytest.mark.parametrize("reason", ["Free text!", "sk-live-1234", "UPPER", "x" * 65, ""])
def test_a_reason_that_is_no_slug_is_not_kept(reason: str) -> None:
    mine = Failure(code=FailureCode.NOT_FOUND, message="m", reason=reason)

    assert failure_of(ToolFailed(mine)).reason == "not_found"


@pytest.mark.parametrize(
    ("given_s", "kept"), [(-5, 0.0), (math.nan, None), (math.inf, None), (None, None), (3, 3.0)]
)
def test_a_wait_that_makes_no_sense_is_not_kept(given_s: Any, kept: float | None) -> None:
    mine = Failure(code=FailureCode.NOT_FOUND, message="m", retry_after_s=given_s)

    assert failure_of(ToolFailed(mine)).retry_after_s == kept


def test_an_own_failure_of_any_size_is_bounded() -> None:
    huge = "x" * 5_000_000
    mine = Failure(
        code=FailureCode.NOT_FOUND,
        message=huge,
        guidance=huge,
        hints=("h",) * 10_000,
        issues=(Issue("", "i"),) * 10_000,
        cause=("c",) * 10_000,
    )

    failure = failure_of(ToolFailed(mine))

    assert len(failure.message) == MAX_MESSAGE
    assert len(msgspec.json.encode(failure)) < 20_000
    assert "\ud800" not in failure_of(ToolFailed(Failure(code=mine.code, message="\ud800"))).message


@pytest.mark.parametrize(
    "fields", [{"retry_after_s": "5"}, {"message": None}, {"hints": 5}, {"issues": [Opaque()]}]
)
def test_an_own_failure_of_the_wrong_kinds_is_a_failure_all_the_same(fields: Any) -> None:
    mine = Failure(**{"code": FailureCode.RATE_LIMITED, "message": "m", **fields})

    failure = failure_of(ToolFailed(mine))

    assert failure.code is FailureCode.EXECUTION_FAILED
    assert "cannot be read" in failure.message


def test_a_code_given_as_text_is_that_code() -> None:
    text: Any = "timeout"

    mine = Failure(code=text, message="m", reason="slow")

    assert failure_of(ToolFailed(mine)).code is FailureCode.TIMEOUT


@pytest.mark.parametrize(
    ("failure", "error", "infrastructure"),
    [
        (Failure(code=FailureCode.TIMEOUT, message=""), None, True),
        (Failure(code=FailureCode.NOT_FOUND, message=""), None, False),
        (Failure(code=FailureCode.RATE_LIMITED, message=""), OSError(), False),
        (Failure(code=FailureCode.EXECUTION_FAILED, message="", reason="transport"), None, True),
        (Failure(code=FailureCode.EXECUTION_FAILED, message="", reason="tool_timeout"), None, True),
        (Failure(code=FailureCode.EXECUTION_FAILED, message=""), None, False),
        (Failure(code=FailureCode.EXECUTION_FAILED, message=""), OSError(), True),
        (Failure(code=FailureCode.EXECUTION_FAILED, message=""), ValueError(), True),
        (Failure(code=FailureCode.EXECUTION_FAILED, message=""), FileNotFoundError(), False),
        (
            Failure(code=FailureCode.EXECUTION_FAILED, message=""),
            ToolFailed(Failure(code=FailureCode.EXECUTION_FAILED, message="")),
            False,
        ),
        (
            Failure(code=FailureCode.EXECUTION_FAILED, message=""),
            ExceptionGroup("g", [FileNotFoundError()]),
            False,
        ),
    ],
)
def test_only_what_speaks_of_the_tools_health_is_infrastructure(
    failure: Failure, error: BaseException | None, infrastructure: bool
) -> None:
    assert is_infrastructure(failure, error) is infrastructure


@pytest.mark.parametrize(
    ("block", "sound"),
    [
        (TextContent(text="a\ud800"), TextContent(text="a?")),
        (TextContent(text=None), TextContent(text="")),  # type: ignore[arg-type]  # a mistake
        (TextContent(text=5), TextContent(text="5")),  # type: ignore[arg-type]  # a mistake
        (
            TextContent(text="x", meta={"a": Opaque()}),
            TextContent(text="x", meta={"a": "<Opaque>"}),
        ),
        (TextContent(text="x", meta={"a": "\udfff"}), TextContent(text="x", meta={"a": "?"})),
        (
            ImageContent(data=b"hi", mime_type="image/png"),  # type: ignore[arg-type]  # a mistake
            IMAGE,
        ),
        (
            ImageContent(data=None, mime_type="a/b"),  # type: ignore[arg-type]  # a mistake
            TextContent(text='{"data":null,"mime_type":"a/b","annotations":null,"meta":null}'),
        ),
        (
            EmbeddedResource(resource={"uri": "x", "text": "\ud800", "o": Opaque()}),
            EmbeddedResource(resource={"uri": "x", "text": "?", "o": "<Opaque>"}),
        ),
    ],
)
def test_a_block_that_json_cannot_say_is_made_sound(block: Any, sound: Any) -> None:
    call = LayerBench().invocation({})

    for value in (block, [block], ToolResult(content=(block,))):
        result = result_of(value, call)
        assert result.content == (sound,)
        msgspec.json.encode(result)


def test_a_sound_block_of_text_stays_itself() -> None:
    block = TextContent(text="as it is")

    assert parts_of(block)[0][0] is block


def test_a_tool_failed_without_a_failure_is_an_exception_like_others() -> None:
    class Short(ToolFailed):
        def __init__(self) -> None:
            Exception.__init__(self, "no failure")

    failure = failure_of(Short())

    assert failure.code is FailureCode.EXECUTION_FAILED
    assert failure.cause == ("Short",)
    assert is_infrastructure(failure, Short())


def test_a_failure_of_a_tool_is_said_without_the_secrets_of_the_call() -> None:
    own = Failure(
        code=FailureCode.NOT_FOUND,
        message="none for hunter2",
        guidance="Do not use hunter2.",
        issues=(Issue("/a", "hunter2 is bad"),),
        hints=("hunter2",),
    )

    assert "hunter2" not in repr(failure_of(ToolFailed(own), secrets=["hunter2"]))
    assert "hunter2" not in failure_of(KeyError("hunter2"), secrets=["hunter2"]).message


class Markup(str):
    """A text of a class of its own, as those of templates and parsers are."""

    __slots__ = ()

    def __str__(self) -> str:
        raise AssertionError("the class has no say in it")


class Count(int):
    pass


class Share(float):
    pass


class Row(dict[Any, Any]):
    def items(self) -> Any:
        raise AssertionError("the class has no say in it")

    values = keys = __iter__ = items


class Rows(list[Any]):
    def __iter__(self) -> Any:
        raise AssertionError("the class has no say in it")


class Raw(bytes):
    pass


class Kind(enum.StrEnum):
    ONE = "one"


ODD = 2**70
"""More than the encoder takes: what holds it is made plain in the other way."""


def types_in(value: Any) -> set[type]:
    if isinstance(value, dict):
        return {dict}.union(*map(types_in, [*value, *value.values()]))
    return {list}.union(*map(types_in, value)) if isinstance(value, list) else {type(value)}


@pytest.mark.parametrize("odd", [0, ODD])
@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (Markup("a <b> é"), "a <b> é"),
        (Markup("\ud800"), "?"),
        (Count(3), 3),
        (Share(0.5), 0.5),
        (Share("nan"), None),
        (Row(a=Markup("b")), {"a": "b"}),
        ({Markup("a"): [Count(1), Share(2.5)]}, {"a": [1, 2.5]}),
        (Rows([Row(a=1), Markup("b")]), [{"a": 1}, "b"]),
        (Kind.ONE, "one"),
        ({Kind.ONE: Kind.ONE}, {"one": "one"}),
    ],
)
def test_a_class_of_its_own_becomes_its_plain_base(value: Any, plain: Any, odd: int) -> None:
    found = data_of({"value": value, "odd": odd})

    assert found == {"value": plain, "odd": odd}
    assert types_in(found) <= {dict, list, str, int, float, type(None)}


@pytest.mark.parametrize("value", [Markup("receipt"), Kind.ONE, Raw(b"raw")])
def test_a_text_of_a_class_of_its_own_is_a_plain_text_and_can_be_kept(value: Any) -> None:
    call = LayerBench().invocation({})

    for returned in (
        value,
        ToolResult(content=(TextContent(text=value),)),
        [TextContent(text=value)],
    ):
        result = result_of(returned, call)

        assert type(result.text) is str
        assert result.text == {"Raw": "raw", "Kind": "one"}.get(type(value).__name__, "receipt")
        assert msgspec.json.decode(msgspec.json.encode(result), type=ToolResult) == result


def test_a_failure_said_in_texts_of_a_class_of_its_own_can_be_read() -> None:
    error = ToolFailed(Failure(code=FailureCode.NOT_FOUND, message=Markup("no such card")))

    failure = failure_of(error)

    assert (failure.code, failure.message) == (FailureCode.NOT_FOUND, "no such card")
    assert type(failure.message) is str


def test_texts_of_a_class_of_its_own_are_bounded_as_others_are() -> None:
    text = Markup("x" * 1_000_000)

    assert extent_of([text] * 300) is Extent.EXCESSIVE
    assert len(text_of([text] * 300)) < MAX_CHARACTERS // 5
