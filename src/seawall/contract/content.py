"""Content blocks with the JSON shape of the Model Context Protocol."""

from __future__ import annotations

from typing import Any

import msgspec


class _Block(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    omit_defaults=True,
    rename={"mime_type": "mimeType", "meta": "_meta"},
    tag_field="type",
):
    annotations: dict[str, Any] | None = None
    meta: dict[str, Any] | None = None


class TextContent(_Block, frozen=True, tag="text"):
    """Text for the model."""

    text: str


class ImageContent(_Block, frozen=True, tag="image"):
    """A picture; `data` is base64."""

    data: str
    mime_type: str


class AudioContent(_Block, frozen=True, tag="audio"):
    """A sound; `data` is base64."""

    data: str
    mime_type: str


class EmbeddedResource(_Block, frozen=True, tag="resource"):
    """A resource with its contents: `uri`, `mimeType`, and `text` or `blob` (base64)."""

    resource: dict[str, Any]


class ResourceLink(_Block, frozen=True, tag="resource_link"):
    """The address of a resource that can be read elsewhere."""

    uri: str
    name: str
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None
    size: int | None = None


Content = TextContent | ImageContent | AudioContent | EmbeddedResource | ResourceLink


def content_from_json(block: dict[str, Any]) -> Content:
    """Read one block in MCP's JSON shape; raises `ValueError` when it has none of the shapes."""
    found: Content = msgspec.convert(block, Content)
    return found


def content_to_json(block: Content) -> dict[str, Any]:
    """Write one block in MCP's JSON shape."""
    built: dict[str, Any] = msgspec.to_builtins(block)
    return built
