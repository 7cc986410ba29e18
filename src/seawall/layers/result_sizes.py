"""How many bytes of a result reach the model."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import msgspec

from seawall.contract.content import AudioContent, Content, ImageContent, TextContent

if TYPE_CHECKING:
    from seawall.contract.failure import Failure
    from seawall.contract.result import ToolResult

FRAME_BYTES = 32
"""What each block after the first counts beyond its content, so that empty ones are bounded too."""

_encode = msgspec.json.Encoder(enc_hook=lambda value: f"<{type(value).__name__}>").encode


def size_of(result: ToolResult) -> float:
    """Count content, structured content and failure; infinite if JSON cannot say them."""
    size = sum(block_size(block, place) for place, block in enumerate(result.content))
    if result.structured_content is not None:
        size += json_size(result.structured_content)
    failure = result.failure
    if failure is not None:
        size += unseen_size(failure)
        if not says_failure(result, failure):
            size += text_size(failure.render())
    return size


def says_failure(result: ToolResult, failure: Failure) -> bool:
    """Whether the content begins with the failure's own text, as in every refusal."""
    first = result.content[0] if result.content else None
    return isinstance(first, TextContent) and first.text == failure.render()


def unseen_size(failure: Failure) -> int:
    """Count what a failure's text does not show, yet programs hand on."""
    issues = sum(text_size(issue.message) + text_size(issue.path) for issue in failure.issues)
    return issues + sum(map(text_size, failure.hints))


def block_size(block: Content, place: int) -> float:
    """Count one block at its place in the content."""
    frame = FRAME_BYTES if place else 0
    if isinstance(block, TextContent):
        return frame + text_size(block.text) + extras_size(block)
    if isinstance(block, (ImageContent, AudioContent)):
        return frame + text_size(block.data) + text_size(block.mime_type) + extras_size(block)
    return frame + json_size(block)


def extras_size(block: TextContent | ImageContent | AudioContent) -> float:
    """Count the annotations of a block."""
    if block.annotations is None and block.meta is None:
        return 0
    return json_size((block.annotations, block.meta))


def text_size(text: str) -> int:
    """Count UTF-8 bytes."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def json_size(value: Any) -> float:
    """Count the bytes of the JSON text; infinite if there is none."""
    written = _json(value)
    return math.inf if written is None else len(written)


def json_text(value: Any) -> str:
    """Write the JSON text; empty if there is none."""
    written = _json(value)
    return "" if written is None else written.decode()


def _json(value: Any) -> bytes | None:
    try:
        return _encode(value)
    except (TypeError, ValueError, OverflowError, RecursionError):
        pass  # integers beyond 64 bits and lone surrogates: the slower writer knows them
    try:
        return json.dumps(value).encode()
    except (TypeError, ValueError, RecursionError):
        return None
