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
    """MCP's annotations of the block, as they came."""
    meta: dict[str, Any] | None = None
    """MCP's `_meta` of the block, as it came."""


class TextContent(_Block, frozen=True, tag="text"):
    """Text for the model."""

    text: str
    """As the model reads it."""


class ImageContent(_Block, frozen=True, tag="image"):
    """A picture; `data` is base64."""

    data: str
    mime_type: str
    """Such as `image/png`."""


class AudioContent(_Block, frozen=True, tag="audio"):
    """A sound; `data` is base64."""

    data: str
    mime_type: str
    """Such as `audio/wav`."""


class EmbeddedResource(_Block, frozen=True, tag="resource"):
    """A resource with its contents: `uri`, `mimeType`, and `text` or `blob` (base64)."""

    resource: dict[str, Any]
    """The object itself, as MCP writes it."""


class ResourceLink(_Block, frozen=True, tag="resource_link"):
    """The address of a resource that can be read elsewhere."""

    uri: str
    """Where it is; it is not fetched."""
    name: str
    """For programs."""
    title: str | None = None
    """For people."""
    description: str | None = None
    """For the model."""
    mime_type: str | None = None
    """Of what is there, if it is known."""
    size: int | None = None
    """In bytes, if it is known."""


Content = TextContent | ImageContent | AudioContent | EmbeddedResource | ResourceLink


def content_from_json(block: dict[str, Any]) -> Content:
    """Read one block in MCP's JSON shape; raises `ValueError` when it has none of the shapes."""
    found: Content = msgspec.convert(block, Content)
    return found


def content_to_json(block: Content) -> dict[str, Any]:
    """Write one block in MCP's JSON shape."""
    built: dict[str, Any] = msgspec.to_builtins(block)
    return built
