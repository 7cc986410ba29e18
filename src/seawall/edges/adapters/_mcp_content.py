"""Results between Seawall's shape and that of the Model Context Protocol's Python types."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from mcp_types import ContentBlock
from pydantic import TypeAdapter, ValidationError

from seawall.contract.content import (
    Content,
    EmbeddedResource,
    TextContent,
    content_from_json,
    content_to_json,
)
from seawall.edges.adapters._bridge import Sending
from seawall.pipeline.convert import data_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from seawall.contract.failure import Failure
    from seawall.contract.result import ToolResult
    from seawall.contract.tool import Tool

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
    return [_fitting(block) for block in blocks]


def _fitting(block: Content) -> ContentBlock:
    """Write a block; one that the protocol's types do not take is text, as far as it says any.

    The tool has run: an error of the request would have its client mend the arguments and call
    again.
    """
    bare = msgspec.structs.replace(block, annotations=None, meta=None)
    for one in (block, bare):
        try:
            return _block.validate_python(content_to_json(one))
        except ValidationError:
            pass
    said = block.resource.get("text") if isinstance(block, EmbeddedResource) else None
    if not isinstance(said, str):
        said = msgspec.json.encode(content_to_json(bare)).decode()
    return _block.validate_python({"type": "text", "text": said})


ANY_SINCE = "2026-07-28"
"""The revision since which structured content may be any value; before, it is an object."""


def promised_by(tool: Tool | None, version: str = "") -> Mapping[str, Any] | None:
    """The output schema that clients of a revision can be told, and are held to."""
    schema = None if tool is None else tool.output_schema
    if schema is None:
        return None
    kept = schema.get("type") == "object" if version < ANY_SINCE else not _allows_null(schema)
    return schema if kept else None


def _allows_null(schema: Any) -> bool:
    """Whether nothing is a result as promised, which the SDK cannot tell from none at all."""
    if not isinstance(schema, dict):
        return False
    types = schema.get("type")
    either = [*schema.get("anyOf", ()), *schema.get("oneOf", ())]
    return types == "null" or "null" in (types or ()) or any(map(_allows_null, either))


def structured_for(result: ToolResult, version: str = "") -> Any:
    """Structured content of a success, as clients of a revision take it."""
    found = result.structured_content
    if result.is_error or (version < ANY_SINCE and not isinstance(found, dict)):
        return None
    return found


def meta_for(result: ToolResult) -> dict[str, Any] | None:
    """What is for programs, as plain data: the result's metadata, and the failure."""
    meta: dict[str, Any] = dict(data_of(result.metadata or {}) or {})
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
