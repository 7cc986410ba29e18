"""How much work one value can cause."""

from __future__ import annotations

from typing import Any

import pytest

from seawall.pipeline.arguments.schema.combinations import excess
from seawall.pipeline.arguments.schema.dialects import DRAFT_2020
from seawall.pipeline.arguments.schema.documents import Documents


def chain(count: int, node: Any) -> dict[str, Any]:
    """Give definitions of which each refers to the next one, as `node` says."""
    return {
        "$ref": "#/$defs/0",
        "$defs": {
            **{str(n): node({"$ref": f"#/$defs/{n + 1}"}) for n in range(count)},
            str(count): {"type": "integer"},
        },
    }


def says(schema: Any) -> str:
    return excess(Documents(schema, DRAFT_2020, {})) or ""


@pytest.mark.parametrize(
    "node",
    [
        lambda then: {"allOf": [then, dict(then)]},
        lambda then: {"anyOf": [then, dict(then)]},
        lambda then: {"not": then, "if": dict(then)},
        lambda then: {"patternProperties": {"^a": then, "b$": dict(then)}},
        lambda then: {"properties": {"a": then}, "additionalProperties": dict(then)},
        lambda then: {"items": then, "contains": dict(then)},
    ],
)
def test_what_doubles_with_each_step_is_too_much(node: Any) -> None:
    assert "ways" in says(chain(40, node))
    assert says(chain(5, node)) == ""


@pytest.mark.parametrize(
    "node",
    [
        lambda then: {"properties": {"a": then, "b": dict(then)}},
        lambda then: {"prefixItems": [then, dict(then)]},
        lambda then: {"$defs": {"a": then, "b": dict(then)}, "not": dict(then)},
        lambda then: {"allOf": [then]},
    ],
)
def test_parts_of_which_only_one_meets_a_value_do_not_add_up(node: Any) -> None:
    assert says(chain(40, node)) == ""


def test_recursion_is_no_excess() -> None:
    part = {"properties": {"a": {"$ref": "#"}}}
    assert says({"allOf": [part, dict(part)], "anyOf": [{"$ref": "#"}, {"$ref": "#"}]}) == ""


def test_a_chain_of_more_than_a_thousand_steps_is_too_long() -> None:
    assert says(chain(900, lambda then: then)) == ""
    assert "steps" in says(chain(1100, lambda then: then))
