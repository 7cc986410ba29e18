"""Content between Seawall's blocks and those of LangChain's messages."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from seawall.contract.content import (
    AudioContent,
    Content,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
)
from seawall.edges.adapters._data_urls import bytes_of, held_by, unreadable

_MEDIA = ("image", "image_url", "audio", "video", "file")

BLOCK = "langchain"
"""In a block's `meta`: the block of LangChain's that it was, where ours says less."""


def content_of(given: Any) -> tuple[Content, ...]:
    """Read the content of a message: text, or a list of texts and blocks."""
    if isinstance(given, str):
        return (TextContent(text=given),)
    if isinstance(given, Mapping):
        given = [given]
    if not isinstance(given, Iterable):
        return (TextContent(text=str(given)),)
    return tuple(_block(part) for part in given)


def _block(part: Any) -> Content:
    if isinstance(part, str):
        return TextContent(text=part)
    if not isinstance(part, Mapping):
        return TextContent(text=str(part))
    if part.get("type") == "text" and isinstance(part.get("text"), str):
        return TextContent(text=part["text"])
    return _medium(part) or TextContent(text=json.dumps(part, default=str, ensure_ascii=False))


def _medium(part: Mapping[str, Any]) -> Content | None:
    kind, meta = part.get("type"), {BLOCK: dict(part)}
    data, mime, address = _data_of(part)
    if data is not None and kind in ("image", "image_url"):
        return ImageContent(data=data, mime_type=mime or "image/png", meta=meta)
    if data is not None and kind == "audio":
        return AudioContent(data=data, mime_type=mime or "audio/wav", meta=meta)
    if data is not None and kind in ("file", "video"):
        mime = mime or "application/octet-stream"
        resource = {"uri": "data:,", "mimeType": mime, "blob": data}
        return EmbeddedResource(resource=resource, meta=meta)
    if address is not None and kind in _MEDIA:
        return ResourceLink(uri=address, name=str(kind), mime_type=mime, meta=meta)
    return None


def _data_of(part: Mapping[str, Any]) -> tuple[str | None, str | None, str | None]:
    """Base64 data, type and address, in whichever of LangChain's forms they are given."""
    mime = part.get("mime_type")
    data = part.get("base64") or (part.get("data") if part.get("source_type") == "base64" else None)
    if isinstance(data, str):
        return data, mime, None
    address = part.get("image_url", part.get("url"))
    if isinstance(address, Mapping):
        address = address.get("url")
    if not isinstance(address, str):
        return None, mime, None
    held = held_by(address)
    return (None, mime, address) if held is None else (held.data, mime or held.mime, None)


def content_for(content: Iterable[Content]) -> str | list[str | dict[str, Any]]:
    """Write content for a message: plain text where it is nothing else."""
    blocks = list(content)
    if all(isinstance(block, TextContent) for block in blocks) and len(blocks) <= 1:
        return "".join(block.text for block in blocks if isinstance(block, TextContent))
    return [_written(block) for block in blocks]


def _written(block: Content) -> dict[str, Any]:
    if isinstance(block, TextContent):
        return {"type": "text", "text": block.text}
    kept = (block.meta or {}).get(BLOCK)
    if isinstance(kept, dict) and _medium(kept) == block:  # else somebody changed it on the way
        return kept
    if isinstance(block, (ImageContent, AudioContent)):
        kind = "image" if isinstance(block, ImageContent) else "audio"
        if bytes_of(block.data) is None:
            return {"type": "text", "text": unreadable(block.mime_type)}
        return {"type": kind, "base64": block.data, "mime_type": block.mime_type}
    if isinstance(block, ResourceLink):
        return {"type": "text", "text": f"{block.title or block.name}: {block.uri}"}
    return _resource(block.resource)


def _resource(resource: Mapping[str, Any]) -> dict[str, Any]:
    if "text" in resource:
        return {"type": "text", "text": str(resource["text"])}
    mime, data = str(resource.get("mimeType") or "application/octet-stream"), resource.get("blob")
    if bytes_of(data) is None:
        return {"type": "text", "text": unreadable(mime)}
    return {"type": "file", "base64": data, "mime_type": mime}
