"""A member that is missing, and came under another name."""

from __future__ import annotations

from typing import Any

import pytest

from seawall import Pipeline, tool
from seawall.pipeline.arguments.compiled import compile_schema


def faults(schema: Any, value: Any) -> list[tuple[str, str]]:
    found = compile_schema(schema, root_object=False).faults(value)
    return [(issue.path, issue.message) for issue in found]


def object_of(*names: str, **more: Any) -> dict[str, Any]:
    return {"properties": {name: {} for name in names}, "required": [*names], **more}


def meant(member: str, came: str, where: str = "of this tool") -> str:
    return f'missing; "{came}" is not a field {where}: did you mean "{member}"?'


@pytest.mark.parametrize(
    ("member", "came"),
    [
        ("customer_id", "customerId"),
        ("customer_id", "CUSTOMER-ID"),
        ("customer_id", "costumer_id"),
        ("quantity", "qty"),
        ("message", "msg"),
        ("customer_email", "email"),
        ("name", "customerName"),
    ],
)
def test_a_missing_member_is_told_with_the_name_that_was_sent(member: str, came: str) -> None:
    assert faults(object_of(member), {came: 1}) == [(f"/{member}", meant(member, came))]


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (object_of("customer_id"), {}),
        (object_of("customer_id"), {"colour": 1}),
        # Declared, by another part of the schema or by a pattern: it is a field.
        ({"allOf": [object_of("user_id"), {"properties": {"userId": {}}}]}, {"userId": 1}),
        (object_of("user_id", patternProperties={"^user": {}}), {"userId": 1}),
        # What is nearest to it was sent as well.
        ({"properties": {"user_id": {}, "user_ids": {}}, "required": ["user_ids"]},
         {"user_id": 1, "userId": 1}),
    ],
)  # fmt: skip
def test_nothing_is_supposed_where_no_unknown_name_is_near(schema: Any, value: Any) -> None:
    assert [message for _, message in faults(schema, value)] == ["missing"]


def test_one_name_stands_for_one_member_only() -> None:
    found = faults(object_of("user_a", "user_b"), {"userA": 1})

    assert found == [("/user_a", meant("user_a", "userA")), ("/user_b", "missing")]


def test_a_name_that_is_refused_itself_is_told_once() -> None:
    found = faults(object_of("user_id", additionalProperties=False), {"userId": 1})

    assert found == [
        ("/user_id", "missing"),
        ("/userId", 'unknown argument "userId"; did you mean "user_id"? (allowed: "user_id")'),
    ]


def test_it_is_told_of_objects_inside_too() -> None:
    schema = {"properties": {"items": {"items": object_of("quantity")}}}

    found = faults(schema, {"items": [{"quantity": 1}, {"qty": 1}]})

    assert found == [("/items/1/quantity", meant("quantity", "qty", "here"))]


def test_it_is_told_of_what_another_member_asks_for() -> None:
    schema = {"properties": {"a": {}, "user_id": {}}, "dependentRequired": {"a": ["user_id"]}}

    assert faults(schema, {"a": 1, "userId": 1}) == [
        (
            "/user_id",
            'missing; required when "a" is given; ' + meant("user_id", "userId")[9:],
        )
    ]


def test_it_is_told_of_the_tag_of_a_union() -> None:
    kinds = [{"properties": {"kind": {"const": kind}}, "required": ["kind"]} for kind in "ab"]

    assert faults({"oneOf": kinds}, {"Kind": "a"}) == [
        (
            "/kind",
            'missing; expected one of ["a", "b"]; ' + meant("kind", "Kind")[9:],
        )
    ]


def test_nothing_is_said_of_the_names_inside_of_a_secret() -> None:
    schema = {"properties": {"login": object_of("user_id", format="password")}}

    assert faults(schema, {"login": {"userId": 1}}) == [("/login/user_id", "missing")]


def test_what_names_are_compared_for_one_value_is_bounded() -> None:
    schema = {"items": object_of("quantity")}

    found = faults(schema, [{"qty": 1}] * 90)

    assert len(found) == 90
    assert sum("did you mean" in message for _, message in found) == 20


async def test_the_refusal_names_both_for_the_model_and_for_the_program() -> None:
    @tool
    async def pay(customer_id: str, quantity: int) -> str:
        """Pay."""
        return customer_id * quantity

    result = await Pipeline([pay]).call("pay", {"customerId": "c", "qty": 2})

    assert result.failure is not None
    assert result.failure.reason == "argument_missing"
    assert result.failure.message == (
        "the arguments of pay do not fit: customer_id: missing; expected string;"
        ' "customerId" is not a field of this tool: did you mean "customer_id"?'
        ' quantity: missing; expected integer; "qty" is not a field of this tool:'
        ' did you mean "quantity"?'
    )
    assert 'customer_id: missing; expected string; "customerId" is not a field' in result.text
