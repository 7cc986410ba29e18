"""What an argument stands for that is not given."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import Field

from seawall import Tool, tool
from seawall.contract.defaults import default_of


async def run(arguments: dict[str, Any], context: Any) -> None:
    pass


@pytest.mark.parametrize(
    ("schema", "found"),
    [
        ({"type": "object", "properties": {"a": {"type": "integer", "default": 3}}}, 3),
        ({"type": "object", "properties": {"a": {"type": "integer"}}}, None),
        ({"type": "object", "properties": {"a": True}}, None),
        ({"type": "object", "properties": {"b": {"default": 3}}}, None),
        ({"type": "object"}, None),
    ],
)
def test_the_default_is_that_of_the_schema(schema: Any, found: Any) -> None:
    assert default_of(Tool("t", "", schema, run), "a") == found


def test_those_of_typed_functions_are_as_a_model_would_say_them() -> None:
    @tool
    async def edit(path: Path = Path("a.txt"), count: Annotated[int, Field(ge=0)] = 2) -> None:
        """Edit."""

    assert default_of(edit, "path") == "a.txt"
    assert default_of(edit, "count") == 2
