"""What is bound without pydantic is what pydantic would have given."""

from __future__ import annotations

import enum
import json
from datetime import date  # noqa: TC003  # read as a hint
from typing import Annotated, Any, Literal

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field, WithJsonSchema

from seawall import Pipeline, RunPolicy, Session, Tool, tool
from seawall.contract.tool import ImpliedCheck
from seawall.pipeline.arguments.prepare import Preparing, preparing
from seawall.pipeline.context import ToolContext  # noqa: TC001  # read as a hint
from seawall.pipeline.execute import _own
from seawall.pipeline.invocation import Invocation
from seawall.registry.implied import Bound


class Colour(enum.StrEnum):
    RED = "red"


class Point(BaseModel):
    x: int


class Node(BaseModel):
    next: Node | None = None


async def search(
    query: Annotated[str, Field(min_length=1, max_length=5, description="What to find.")],
    limit: Annotated[int, Field(ge=1, lt=50, multiple_of=2)] = 10,
    mode: Literal["fast", "deep"] = "fast",
    near: float | None = None,
    exact: bool = False,
    *,
    tags: Annotated[list[str], Field(max_length=2)],
) -> Any:
    """Search."""
    return query, limit, mode, near, exact, tags


async def scale(by: float, rows: list[list[int]], name: str | None = None) -> Any:
    return by, rows, name


async def nothing() -> str:
    return "done"


async def located(query: str, context: ToolContext) -> str:
    return f"{query} {context.attempt}"


ASK_NO_MORE = [search, scale, nothing, located]


@pytest.mark.parametrize("function", ASK_NO_MORE)
def test_functions_of_what_a_schema_can_say_ask_no_more(function: Any) -> None:
    made = tool(function)

    assert isinstance(made.check, ImpliedCheck)
    assert made.check.schema is made.input_schema


async def of_date(day: date) -> None: ...
async def of_enum(colour: Colour) -> None: ...
async def of_model(point: Point) -> None: ...
async def of_nodes(node: Node, other: Node) -> None: ...
async def of_floats(shares: list[float]) -> None: ...
async def of_any(value: Any) -> None: ...
async def of_pattern(code: Annotated[str, Field(pattern="^a")]) -> None: ...
async def of_strict(count: Annotated[int, Field(strict=True)]) -> None: ...
async def of_literals(level: Literal[1, 2]) -> None: ...
async def of_bounded_float(share: Annotated[float, Field(ge=0)]) -> None: ...
async def of_others(**others: int) -> None: ...
async def of_a_list(tags: list[str] = []) -> None: ...  # noqa: B006  # pydantic gives each call one
async def of_an_enum_by_default(text: str = Colour.RED) -> None: ...
async def of_bare_list(items: list) -> None: ...  # type: ignore[type-arg]  # as people write it
async def of_schema(text: Annotated[int, WithJsonSchema({"type": "string"})]) -> None: ...
async def of_extra(text: Annotated[str, Field(json_schema_extra={"x": 1})]) -> None: ...


@pytest.mark.parametrize(
    "function",
    [
        of_date,
        of_enum,
        of_model,
        of_nodes,
        of_floats,
        of_any,
        of_pattern,
        of_strict,
        of_literals,
        of_bounded_float,
        of_others,
        of_a_list,
        of_an_enum_by_default,
        of_bare_list,
        of_schema,
        of_extra,
    ],
)
def test_pydantic_is_asked_where_there_is_more_to_it(function: Any) -> None:
    assert not isinstance(tool(function).check, ImpliedCheck)


def test_a_schema_of_ones_own_implies_nothing() -> None:
    loose = {"type": "object", "properties": {"count": {"type": "string"}}}

    async def take(count: int) -> None: ...

    made = tool(take, input_schema=loose)

    assert taken(warm(made), {"count": "5"}, made) == (["count"], "[5]")


def warm(made: Tool) -> Any:
    """Make what prepares, past its first call, when what is quick is there."""
    prepare = preparing(made, RunPolicy())
    Invocation(made, RunPolicy(), prepare, {}, "c", Session(), 0.0).prepared()
    return prepare


def taken(prepare: Any, given_: Any, made: Tool) -> Any:
    """What the function would get, or why it is not called."""
    call = Invocation(made, RunPolicy(), prepare, given_, "c", Session(), 0.0)
    refusal = call.prepared()
    if refusal is not None:
        assert refusal.failure is not None
        return refusal.failure.reason, refusal.failure.issues
    own = _own(call)
    assert type(own) is Bound
    assert _own(call) is not own
    return sorted(own), repr([own[name] for name in sorted(own)])


words = st.sampled_from(["", "a", "fast", "deep", "é", "abcdefgh", "5", "null", "\ud800"])
singles = words | st.sampled_from([0, 2, 3, 48, 50, 10**30, 1.0, 2.5, True, None, Colour.RED])
rows = st.lists(st.lists(st.sampled_from([1, 2, 3, 1.0]), max_size=2) | st.none(), max_size=2)
values = singles | st.lists(words, max_size=3) | rows
names = {
    "query": st.sampled_from(["a", "é", "ab"]) | values,
    "tags": st.lists(st.sampled_from(["a", "b"]), max_size=3) | values,
    "by": st.sampled_from([1, 2.5]) | values,
    "rows": rows,
}
others = dict.fromkeys(("limit", "mode", "near", "exact", "name", "more"), values)


@pytest.mark.parametrize("function", ASK_NO_MORE)
@settings(deadline=None)
@given(st.fixed_dictionaries({}, optional=names | others))
def test_what_the_function_gets_is_what_pydantic_gives(function: Any, value: Any) -> None:
    made = tool(function)
    known = {name: item for name, item in value.items() if name in _properties(made)}
    prepare, whole = warm(made), Preparing(made, RunPolicy())

    for arguments in (value, known, json.dumps(known)):
        assert taken(prepare, arguments, made) == taken(whole, arguments, made)


def _properties(made: Tool) -> Any:
    return made.input_schema["properties"]


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (search, {"query": "a", "tags": ["x"]}),
        (search, {"tags": [], "mode": "deep", "query": "é", "near": 3, "limit": 4}),
        (scale, {"rows": [[1], []], "by": 2}),
        (scale, {"rows": [], "by": 2.5, "name": None}),
        (nothing, {}),
        (located, {"query": "a"}),
    ],
)
def test_pydantic_is_not_asked_about_what_is_in_order(
    function: Any, arguments: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = tool(function)
    prepare, before = warm(made), taken(Preparing(made, RunPolicy()), arguments, made)
    asked = counting(made, monkeypatch)

    assert taken(prepare, arguments, made) == before
    assert not asked


def counting(made: Tool, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    asked: list[Any] = []
    signature = made.check.check.__self__  # type: ignore[union-attr]  # a bound method
    monkeypatch.setattr(signature, "_validate", asked.append)
    return asked


async def test_each_attempt_has_lists_of_its_own() -> None:
    seen: list[Any] = []

    async def spoil(names: list[str], depth: int = 3) -> str:
        seen.append((list(names), depth))
        names.append("spoilt")
        raise ConnectionError

    made = tool(spoil)
    made = msgspec.structs.replace(made, annotations=made.annotations.for_reading())
    given_ = {"names": ["a"]}
    async with Pipeline([made]) as pipeline:
        for _ in range(2):
            await pipeline.call("spoil", given_)

    assert len(seen) > 2
    assert all(one == (["a"], 3) for one in seen)
    assert given_ == {"names": ["a"]}
