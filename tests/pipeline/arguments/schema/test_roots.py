"""Whether an object can meet a schema at all."""

from __future__ import annotations

from typing import Any

import pytest

from seawall.pipeline.arguments.schema.dialects import DRAFT_2020
from seawall.pipeline.arguments.schema.documents import Documents
from seawall.pipeline.arguments.schema.roots import accepts_objects


@pytest.mark.parametrize(
    ("schema", "accepts"),
    [
        ({}, True),
        ({"type": "object"}, True),
        ({"type": ["null", "object"]}, True),
        ({"type": "array"}, False),
        ({"type": ["null", "array"]}, False),
        ({"const": {}}, True),
        ({"const": []}, False),
        ({"enum": [1, {"a": 1}]}, True),
        ({"enum": [1, None]}, False),
        ({"enum": []}, False),
        ({"type": "object", "not": {}}, False),
        ({"not": True}, False),
        ({"not": {"type": "string"}}, True),
        ({"allOf": [{"type": "object"}, True]}, True),
        ({"allOf": [{"type": "object"}, False]}, False),
        ({"anyOf": [{"type": "string"}, {"type": "object"}]}, True),
        ({"oneOf": [{"type": "string"}, {"type": "null"}]}, False),
        ({"type": "object", "$ref": "#/$defs/a", "$defs": {"a": {"type": "null"}}}, False),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"type": "object"}}}, True),
        ({"allOf": [{"$ref": "#"}]}, True),
    ],
)
def test_it_is_refused_only_when_no_object_can_meet_it(schema: Any, accepts: bool) -> None:
    assert accepts_objects(Documents(schema, DRAFT_2020, {})) is accepts


def test_a_very_long_search_ends_with_the_benefit_of_the_doubt() -> None:
    schema: dict[str, Any] = {"allOf": [{} for _ in range(500)] + [{"type": "null"}]}
    assert accepts_objects(Documents(schema, DRAFT_2020, {}))
