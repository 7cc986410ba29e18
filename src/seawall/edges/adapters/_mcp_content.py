"""Results between Seawall's shape and that of the Model Context Protocol's Python types."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from mcp_types import ContentBlock
from pydantic import TypeAdapter

from seawall.contract.content import Content, TextContent, content_from_json, content_to_json
from seawall.edges.adapters._bridge import Sending

if TYPE_CHECKING:
    from collections.abc import Iterable

    from seawall.contract.failure import Failure
    from seawall.contract.result import ToolResult

_block: TypeAdapter[ContentBlock] = TypeAdapter(ContentBlock)

FAILURE = "seawall/failure"
"""In a result's `_meta`: a failure for programs."""


def content_of(blocks: Iterable[Any]) -> tuple[Content, ...]:
    """Read blocks of the protocol's types."""
    return tuple(_read(block) for block in blocks)


def _read(block: Any) -> Content:
    said = block.model_dump(mode="json", by_alias=True, exclude_none=True)
    try:
        return content_from_json(said)
    except ValueError:
        return TextContent(text=msgspec.json.encode(said).decode())


def content_for(result: ToolResult) -> list[ContentBlock]:
    """Write what a model reads, as the protocol's types: the blocks, or what failed and why."""
    blocks: Iterable[Content] = result.content
    if result.failure is not None:
        media = [block for block in blocks if not isinstance(block, TextContent)]
        blocks = [TextContent(text=result.render()), *media]
    return [_block.validate_python(content_to_json(block)) for block in blocks]


def structured_for(result: ToolResult) -> dict[str, Any] | None:
    """Structured content, which is an object on the wire, and of a success."""
    found = result.structured_content
    return found if isinstance(found, dict) and not result.is_error else None


def meta_for(result: ToolResult) -> dict[str, Any] | None:
    """What is for programs: the result's metadata, and the failure."""
    meta: dict[str, Any] = dict(result.metadata or {})
    if result.failure is not None:
        meta[FAILURE] = failure_for(result.failure)
    return meta or None


def failure_for(failure: Failure) -> dict[str, Any]:
    """Say a failure as plain data."""
    said: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(failure))
    return {key: value for key, value in said.items() if value not in (None, [], "")}


class Counted(Sending):
    """Sends progress whose amount grows, as the protocol wants it."""

    def __call__(self, report: Any, done: float | None, total: float | None) -> None:
        """Take a report; one that says no amount is counted."""
        super().__call__(report, float(self.count + 1) if done is None else done, total)
