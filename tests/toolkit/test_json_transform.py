import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seawall.contract.failure import FailureCode, ToolFailed
from seawall.toolkit.json_transform import json_transform

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "toolkit.json").read_text())
_cases = VECTORS["json_transform"]
_given = [case for case in _cases if "document" in case["expect"]]


@pytest.mark.parametrize("case", _given, ids=lambda case: case["id"])
def test_operations_give_what_the_vectors_say(case: dict[str, Any]) -> None:
    found = json_transform(case["given"]["document"], case["steps"][0]["operations"])

    # As text, since the order of keys counts.
    assert json.dumps(found) == json.dumps(case["expect"]["document"])


def test_operations_may_be_none_or_text_or_without_keys() -> None:
    case = next(case for case in _cases if case["id"] == "jt-14")

    found = [
        json_transform(
            case["given"]["document"], step.get("operations", step.get("operations_as_text"))
        )
        for step in case["steps"]
    ]

    assert found == case["expect"]["documents"]


_wrong_shapes = next(case for case in _cases if case["id"] == "jt-12")["steps"]


@pytest.mark.parametrize("step", _wrong_shapes, ids=lambda step: step["operations"][0]["op"])
def test_a_wrong_shape_is_refused_and_named(step: dict[str, Any]) -> None:
    kinds: dict[type, str] = {dict: "object", list: "array", str: "string"}

    with pytest.raises(ToolFailed) as refused:
        json_transform(step["document"], step["operations"])

    failure = refused.value.failure
    assert failure.code is FailureCode.INVALID_ARGUMENT
    assert failure.fields == ("operations.0",)
    assert step["operations"][0]["op"] in failure.message
    assert failure.message.endswith(kinds[type(step["document"])])


@pytest.mark.parametrize(
    ("operation", "field", "reason"),
    [
        ({}, "operations.0.op", "argument_missing"),
        ({"op": "rename", "to": "b"}, "operations.0.from", "argument_missing"),
        ({"op": "rename", "from": "a"}, "operations.0.to", "argument_missing"),
        ({"op": "wrap"}, "operations.0.key", "argument_missing"),
        ({"op": "wrap", "key": 1}, "operations.0.key", "argument_invalid"),
        ({"op": "frob"}, "operations.0.op", "argument_invalid"),
        ({"op": ["pick"]}, "operations.0.op", "argument_invalid"),
        ({"op": "pick", "keys": "a"}, "operations.0.keys", "argument_invalid"),
        ({"op": "pick", "keys": [[1]]}, "operations.0.keys", "argument_invalid"),
        ({"op": "pick", "keys": [True]}, "operations.0.keys", "argument_invalid"),
        ({"op": "pick", "keys": ["a"] * 1001}, "operations.0.keys", "argument_invalid"),
        ("pick", "operations.0", "argument_invalid"),
        (None, "operations.0", "argument_invalid"),
    ],
)
def test_a_faulty_operation_is_refused_at_its_place(
    operation: Any, field: str, reason: str
) -> None:
    with pytest.raises(ToolFailed) as refused:
        json_transform({"a": 1}, [operation])

    assert refused.value.failure.fields == (field,)
    assert refused.value.failure.reason == reason


def test_an_unknown_operation_is_told_the_seven() -> None:
    with pytest.raises(ToolFailed, match="pick, omit, rename, values, flatten, map_pick, wrap"):
        json_transform({}, [{"op": "frob"}])


@pytest.mark.parametrize("operations", ["[", "{}", "[" * 100_000, "[NaN]", [{"op": "wrap"}] * 65])
def test_a_list_that_is_none_is_refused(operations: Any) -> None:
    with pytest.raises(ToolFailed) as refused:
        json_transform({}, operations)

    assert refused.value.failure.fields[0].startswith("operations")


def test_an_array_is_picked_by_position() -> None:
    picked = json_transform(["a", "b", "c"], [{"op": "pick", "keys": [2, "0", 9, -1, "x", "0"]}])

    assert picked == ["c", "a", "a"]


def test_renaming_never_loses_a_value() -> None:
    with pytest.raises(ToolFailed, match="would overwrite"):
        json_transform({"a": 1, "b": 2}, [{"op": "rename", "from": "a", "to": "b"}])

    assert json_transform({"a": 1}, [{"op": "rename", "from": "a", "to": "a"}]) == {"a": 1}


def test_a_document_may_come_as_text_and_plain_text_stays_text() -> None:
    assert json_transform('{"a": [1]}', [{"op": "pick", "keys": ["a"]}]) == {"a": [1]}
    assert json_transform("[draft]", [{"op": "wrap", "key": "title"}]) == {"title": "[draft]"}
    assert json_transform("plain", []) == "plain"


def test_repeats_cannot_blow_a_document_up() -> None:
    grow = [{"op": "pick", "keys": [0] * 1000}, {"op": "wrap", "key": "k"}, {"op": "values"}]

    with pytest.raises(ToolFailed, match="larger than"):
        json_transform([["x" * 100]], grow * 10)


def test_a_result_that_is_too_large_is_refused() -> None:
    with pytest.raises(ToolFailed, match="larger than"):
        json_transform(["x" * 1_000_001], [])


_keys = st.sampled_from(["a", "b", "c"])
_documents = st.dictionaries(_keys, st.integers())


@given(_documents, st.lists(_keys))
def test_pick_and_omit_share_a_document_between_them(
    document: dict[str, int], keys: list[str]
) -> None:
    picked = json_transform(document, [{"op": "pick", "keys": keys}])
    omitted = json_transform(document, [{"op": "omit", "keys": keys}])

    assert picked.keys().isdisjoint(omitted)
    assert picked | omitted == document


@given(_documents)
def test_wrap_is_undone_by_values(document: dict[str, int]) -> None:
    assert json_transform(document, [{"op": "wrap", "key": "k"}, {"op": "values"}]) == [document]
