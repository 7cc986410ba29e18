"""A typed function becomes a tool: schema, description, and a call with typed values."""

from __future__ import annotations

import dataclasses
import enum
from typing import TYPE_CHECKING, Annotated, Any, Literal

import pydantic
import pytest
from typing_extensions import TypedDict  # pydantic takes no other before Python 3.12

from seawall import (
    Annotations,
    ConfigurationError,
    Pipeline,
    Policies,
    RunPolicy,
    Tool,
    ToolContext,
    ToolResult,
    tool,
)
from seawall.contract.decision import Prepared
from seawall.contract.tool import ImpliedCheck
from seawall.registry.function import Doc
from seawall.testing import scripted

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Point(pydantic.BaseModel):
    x: int
    y: int = 0


class Answer(TypedDict):
    total: int


@dataclasses.dataclass
class Pair:
    a: int


class Range(pydantic.BaseModel):
    low: int
    high: int

    @pydantic.model_validator(mode="after")
    def in_order(self) -> Range:
        if self.low > self.high:
            raise ValueError("low must not be above high")
        return self


def even(value: int) -> int:
    if value % 2:
        raise ValueError("must be even")
    return value


async def run(function: Callable[..., Any] | Tool, arguments: Any = None) -> ToolResult:
    made = function if isinstance(function, Tool) else tool(function)
    async with Pipeline([made]) as pipeline:
        return await pipeline.call(made.name, arguments)


def test_the_signature_is_the_schema_and_the_docstring_the_description() -> None:
    @tool
    def search(query: str, limit: int = 5, colour: Colour | None = None) -> str:
        """Search for something.

        In all of it.

        Args:
            query: What to look for.
            limit (int): How many to give,
                at most.
        """
        return query

    assert search.name == "search"
    assert search.description == "Search for something.\n\nIn all of it."
    properties = search.input_schema["properties"]
    assert properties["query"] == {"type": "string", "description": "What to look for."}
    assert properties["limit"]["default"] == 5
    assert properties["limit"]["description"] == "How many to give, at most."
    assert search.input_schema["required"] == ["query"]
    assert search.input_schema["$defs"]["Colour"]["enum"] == ["red", "blue"]
    assert "title" not in search.input_schema


def test_fields_given_win_over_what_is_derived() -> None:
    @tool(
        name="find",
        description="Mine.",
        annotations=Annotations.for_reading(),
        input_schema={"type": "object"},
    )
    def search(query: str) -> None:
        """Not this."""

    assert (search.name, search.description) == ("find", "Mine.")
    assert search.input_schema == {"type": "object"}
    assert search.retry_safe


def test_a_function_without_a_docstring_is_described_by_its_name() -> None:
    @tool
    def read_file(path: str) -> None: ...

    assert read_file.description == "read file"


async def test_the_function_gets_typed_values() -> None:
    seen: list[Any] = []

    def takes(point: Point, colour: Colour, mode: Literal["a", "b"], many: list[Point]) -> None:
        seen.extend([point, colour, mode, many])

    result = await run(
        takes, {"point": {"x": "1"}, "colour": "red", "mode": "a", "many": '[{"x": 2}]'}
    )

    assert not result.is_error, result.text
    assert seen == [Point(x=1), Colour.RED, "a", [Point(x=2)]]


async def test_every_kind_of_function_is_run() -> None:
    def plain(a: int) -> int:
        return a + 1

    async def later(a: int) -> int:
        return a + 1

    async def stream(a: int) -> AsyncIterator[int]:
        yield a
        yield a + 1

    class Adder:
        def add(self, a: int) -> int:
            """Add one."""
            return a + 1

        async def __call__(self, a: int) -> int:
            return a + 1

    for function in (plain, later, stream, Adder().add, tool(Adder(), name="adder")):
        result = await run(function, {"a": 1})
        assert result.structured_content == 2, function


async def test_a_context_is_handed_in_and_is_no_argument() -> None:
    def by_name(a: int, context: Any) -> str:
        return str(context.call_id)

    def by_type(a: int, ctx: ToolContext) -> str:
        return ctx.call_id

    for function in (by_name, by_type):
        made = tool(function)
        assert list(made.input_schema["properties"]) == ["a"]
        result = await run(made, {"a": 1})
        assert result.text == result.call_id


async def test_what_a_validator_raises_is_an_invalid_argument_at_its_place() -> None:
    def takes(range_: Range, n: Annotated[int, pydantic.AfterValidator(even)]) -> None:
        raise AssertionError("never run")

    result = await run(takes, {"range_": {"low": 2, "high": 1}, "n": 3})

    assert result.failure is not None
    assert [(issue.path, issue.message) for issue in result.failure.issues] == [
        ("/range_", "Value error, low must not be above high"),
        ("/n", "Value error, must be even"),
    ]
    assert result.failure.may_have_run is False


async def test_without_the_check_layer_the_function_is_still_given_typed_values() -> None:
    def takes(point: Point) -> str:
        return type(point).__name__

    made = tool(takes)
    pipeline = Pipeline([made], layers=[])

    good = await pipeline.call("takes", {"point": {"x": 1}})
    bad = await pipeline.call("takes", {"point": {"x": "one"}})
    whole = await pipeline.call("takes", {})

    assert good.text == "Point"
    assert bad.failure is not None
    assert bad.failure.fields == ("point.x",)
    assert whole.is_error
    await pipeline.aclose()


async def test_more_arguments_are_given_on_where_the_function_takes_them() -> None:
    def takes(a: int, **others: Any) -> Any:
        return {"a": a, **others}

    def strict(a: int) -> Any:
        return {"a": a}

    assert (await run(takes, {"a": 1, "b": 2})).structured_content == {"a": 1, "b": 2}
    assert (await run(strict, {"a": 1, "b": 2})).structured_content == {"a": 1}


async def test_defaults_are_those_of_the_function() -> None:
    def takes(a: int = 5, b: list[int] | None = None) -> Any:
        return [a, b]

    assert (await run(takes)).structured_content == [5, None]


@pytest.mark.parametrize(
    "name", ["schema", "copy", "json", "model_config", "model_fields", "_private", "p0", "self"]
)
async def test_parameters_may_have_names_that_pydantic_uses(name: str) -> None:
    namespace: dict[str, Any] = {}
    exec(f"def takes(first: int, {name}: int, **more: int):\n    return [{name}, more]", namespace)

    made = tool(namespace["takes"])

    assert made.input_schema["required"] == ["first", name]
    given = {"first": 1, name: 3, "p1": 5, "q": 6}
    expected = {key: value for key, value in given.items() if key in ("p1", "q")}
    assert (await run(made, given)).structured_content == [3, expected]


def test_a_promise_of_named_fields_becomes_the_output_schema() -> None:
    def typed() -> Answer: ...  # type: ignore[empty-body]  # only its signature is looked at
    def model() -> Point: ...  # type: ignore[empty-body]  # as above
    def pair() -> Pair: ...  # type: ignore[empty-body]  # as above
    def text() -> str: ...  # type: ignore[empty-body]  # as above
    def nothing() -> None: ...
    def lists() -> list[int]: ...  # type: ignore[empty-body]  # as above

    named: list[Any] = [typed, model, pair]
    others: list[Any] = [text, nothing, lists]

    schemas = [tool(function).output_schema for function in named]
    assert [schema and schema["type"] for schema in schemas] == ["object"] * 3
    assert [tool(function).output_schema for function in others] == [None] * 3


@dataclasses.dataclass
class Unreadable:
    a: Strange


def test_a_promise_that_cannot_be_read_is_not_checked() -> None:
    def function() -> Unreadable: ...  # type: ignore[empty-body]  # as above

    assert tool(function).output_schema is None


def undefined(a: Nowhere) -> None:  # type: ignore[name-defined]  # noqa: F821  # that is the point
    """Have a hint that leads nowhere."""


def positional(a: int, /, *rest: int) -> None:
    """Take what cannot be named."""


class Strange:
    """Nothing that pydantic knows."""


def strange(a: Strange) -> None:
    """Take something strange."""


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (undefined, "type hint that cannot be resolved"),
        (positional, "cannot be given by name"),
        (strange, "cannot become a schema"),
    ],
)
def test_a_signature_that_cannot_be_a_schema_is_told(function: Any, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said) as error:
        tool(function)

    assert function.__name__ in str(error.value)


def test_a_field_that_tools_do_not_have_is_told() -> None:
    with pytest.raises(ConfigurationError, match=r"colour: is not a field of Tool"):
        tool(colour="red")(print)


@pytest.mark.parametrize(
    ("text", "description", "parameters"),
    [
        ("", "", {}),
        ("Only this.", "Only this.", {}),
        (
            "Do it.\n\nArgs:\n    a: First.\n    b (int): Second\n      goes on.\n\nReturns:\n  x",
            "Do it.",
            {"a": "First.", "b": "Second goes on."},
        ),
        (
            "Do it.\n\n:param a: First.\n:param int b: Second\n    goes on.\n:returns: x",
            "Do it.",
            {"a": "First.", "b": "Second goes on."},
        ),
        ("Do it.\n\nParameters:\n    a: First.", "Do it.", {"a": "First."}),
        ("D.\n\nArgs:\n    a: First.\nNotes: more", "D.", {"a": "First."}),
        ("D.\n\nArgs:\n    a: First.\n        inner: none\n", "D.", {"a": "First. inner: none"}),
        ("D.\n\nArgs:\n    not an item\n", "D.", {}),
    ],
)
def test_a_docstring_is_read_in_the_common_styles(
    text: str, description: str, parameters: dict[str, str]
) -> None:
    def function() -> None: ...

    function.__doc__ = text

    assert Doc.of(function) == Doc(description, parameters)


def test_a_description_in_the_hint_wins_over_the_docstring() -> None:
    @tool
    def takes(a: Annotated[int, pydantic.Field(description="From the hint.")]) -> None:
        """Take it.

        Args:
            a: From the docstring.
        """

    assert takes.input_schema["properties"]["a"]["description"] == "From the hint."


# --- arguments that the function does not take


@pytest.mark.parametrize(
    ("extra", "ignored", "verdicts"),
    [
        ({}, (), ()),
        ({"limit": 2}, (), ()),
        ({"limt": 2}, ("limt",), ("argument_check:ignored:limit",)),
        ({"zzz": 2}, ("zzz",), ("argument_check:ignored",)),
        ({f"z{n}": 2 for n in range(20)}, tuple(f"z{n}" for n in range(8)), None),
        ({"z" * 500: 2}, ("z" * 80,), ("argument_check:ignored",)),
    ],
)
async def test_arguments_that_are_not_taken_are_told_and_refused_by_nobody(
    extra: dict[str, Any], ignored: tuple[str, ...], verdicts: tuple[str, ...] | None
) -> None:
    @tool
    async def find(text: str, limit: int = 3) -> str:
        """Find."""
        return text

    pipeline = Pipeline([find])

    prepared = pipeline.prepare("find", {"text": "a", **extra})
    result = await pipeline.call("find", {"text": "a", **extra})

    assert isinstance(prepared, Prepared)
    assert prepared.ignored == ignored
    assert result.text == "a"
    [span] = pipeline.trace.spans()
    assert verdicts is None or span.verdicts == verdicts
    assert len(span.verdicts) <= 8


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("curency", 'unknown argument "curency"; did you mean "currency"?'),
        ("zzz", 'unknown argument "zzz" (allowed'),
    ],
)
async def test_a_policy_may_refuse_arguments_that_are_not_taken(name: str, said: str) -> None:
    ran = []

    @tool
    async def pay(amount: int, currency: str = "USD") -> str:
        """Pay."""
        ran.append(currency)
        return "paid"

    policies = Policies(default=RunPolicy(unknown_arguments="refuse"))
    result = await Pipeline([pay], policies=policies).call("pay", {"amount": 1, name: "EUR"})

    assert result.failure is not None
    assert result.failure.reason == "argument_unknown"
    assert [issue.path for issue in result.failure.issues] == [f"/{name}"]
    assert said in result.failure.issues[0].message
    assert ran == []


PATH: dict[str, Any] = {"properties": {"path": {"type": "string"}}}


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        (PATH, "argument_unknown"),
        ({}, "argument_unknown"),
        ({**PATH, "additionalProperties": {"type": "integer"}}, ""),
        ({**PATH, "additionalProperties": True}, ""),
        ({**PATH, "allOf": [{"properties": {"size": {}}}]}, ""),
        ({**PATH, "patternProperties": {"^s": {}}}, ""),
    ],
)
@pytest.mark.parametrize("coercion", ["careful", "lenient", "off"])
async def test_what_a_schema_leaves_open_may_be_refused_and_what_it_says_holds(
    coercion: Any, schema: dict[str, Any], reason: str
) -> None:
    takes = scripted("done", name="write", input_schema={"type": "object", **schema})
    policies = Policies(default=RunPolicy(unknown_arguments="refuse", coercion=coercion))

    result = await Pipeline([takes], policies=policies).call("write", {"size": 2})

    assert ("" if result.failure is None else result.failure.reason) == reason


def test_a_function_that_takes_any_name_ignores_none() -> None:
    @tool
    async def find(text: str, **more: int) -> str:
        """Find."""
        return text

    prepared = Pipeline([find]).prepare("find", {"text": "a", "limt": 2})

    assert isinstance(prepared, Prepared)
    assert prepared.ignored == ()


async def test_a_default_may_be_a_field_as_in_pydantic() -> None:
    @tool
    async def search(
        text: str = pydantic.Field(min_length=2),
        limit: int = pydantic.Field(5, ge=1, le=100, description="How many."),
        tags: list[str] = pydantic.Field(default_factory=lambda: ["all"], max_length=2),  # noqa: B008  # as pydantic has it
        size: Annotated[float, pydantic.Field(le=9)] = pydantic.Field(1, alias="other"),
        lang: Annotated[str, pydantic.Field(default="en")] = "de",
    ) -> str:
        """Search."""
        return f"{text} {limit} {tags} {size} {lang}"

    assert search.input_schema["required"] == ["text"]
    limit = search.input_schema["properties"]["limit"]
    assert limit == {
        "type": "integer",
        "default": 5,
        "minimum": 1,
        "maximum": 100,
        "description": "How many.",
    }
    pipeline = Pipeline([search])

    assert (await pipeline.call("search", {"text": "ab"})).text == "ab 5 ['all'] 1 de"
    given = {"text": "ab", "limit": 7, "tags": ["x"], "size": 2}
    assert (await pipeline.call("search", given)).text == "ab 7 ['x'] 2.0 de"
    for wrong in ({"limit": 0}, {"tags": ["a", "b", "c"]}, {"size": 10}, {"text": "a"}):
        result = await pipeline.call("search", {"text": "ab", **wrong})
        assert result.failure is not None
        assert [issue.path for issue in result.failure.issues] == [f"/{next(iter(wrong))}"]


async def test_what_a_field_makes_anew_is_shared_by_no_calls() -> None:
    @tool
    async def add(one: str, to: list[str] = pydantic.Field(default_factory=list)) -> str:  # noqa: B008  # as pydantic has it
        """Add."""
        to.append(one)
        return ",".join(to)

    pipeline = Pipeline([add])
    assert [(await pipeline.call("add", {"one": one})).text for one in "ab"] == ["a", "b"]


async def test_a_default_inside_of_a_hint_holds() -> None:
    @tool
    async def count(limit: Annotated[int, pydantic.Field(default=5, ge=1)]) -> int:
        """Count."""
        return limit

    assert (await Pipeline([count]).call("count", {})).text == "5"
    assert "required" not in count.input_schema


async def test_such_a_default_is_bound_without_asking_pydantic() -> None:
    @tool
    async def count(limit: int = pydantic.Field(5, ge=1)) -> int:
        """Count."""
        return limit

    assert isinstance(count.check, ImpliedCheck)
    assert (await Pipeline([count]).call("count", {})).text == "5"
    assert (await Pipeline([count]).call("count", {"limit": 2})).text == "2"
