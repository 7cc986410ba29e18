"""What an argument stands for that is not given."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from seawall.contract.tool import Tool


def default_of(tool: Tool, argument: str) -> Any:
    """Give the default that a tool's schema has for an argument; None if it has none."""
    properties = tool.input_schema.get("properties")
    found = properties.get(argument) if isinstance(properties, Mapping) else None
    return found.get("default") if isinstance(found, Mapping) else None
