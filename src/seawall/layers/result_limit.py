"""Bound what one result puts before the model.

Text keeps its head and its tail, with a line between them that says how much is missing. What has
no meaning in part (pictures, sounds, resources, structured content) stays whole or is left out,
and a line says so. Text goes first: the others stay where they fit beside it. Where the policy
says `spill`, the whole text is kept in the state, and a line says how to read it.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, Any

import msgspec

from seawall.contract.content import (
    AudioContent,
    Content,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
)
from seawall.contract.failure import Failure, Issue
from seawall.layers.result_sizes import (
    block_size,
    json_size,
    says_failure,
    size_of,
    text_size,
    unseen_size,
)
from seawall.layers.result_spill import NOTE_BYTES, Spill, with_note
from seawall.layers.text_ends import kept_ends, text_head

if TYPE_CHECKING:
    from seawall.contract.result import ToolResult
    from seawall.pipeline.invocation import Handler, Invocation
    from seawall.pipeline.layer import LayerContext

RESERVED_BYTES = 256
"""Kept free for the lines that say what is missing."""

MAX_ISSUES = 8
MAX_REASON = 64

_KINDS: dict[type, str] = {
    ImageContent: "image",
    AudioContent: "sound",
    EmbeddedResource: "resource",
    ResourceLink: "link",
}


class ResultLimit:
    """Cuts results down to the policy's `max_result_bytes`."""

    name = "result_limit"

    def __init__(self, context: LayerContext, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._count = context.count
        self.spill = Spill.for_tool(context, max_bytes)

    @classmethod
    def for_tool(cls, context: LayerContext) -> ResultLimit | None:
        """Nothing to do without a bound."""
        max_bytes = context.policy.max_result_bytes
        return None if max_bytes is None else cls(context, max_bytes)

    async def __call__(self, call: Invocation, proceed: Handler) -> ToolResult:
        """Cut what comes back, if it is too large."""
        result = await proceed(call)
        return self.cut(result) if self.spill is None else await self.spilled(call, result)

    def cut(self, result: ToolResult) -> ToolResult:
        """Give the result itself if it is small enough, else what is left of it."""
        fine = limited(result, self._max_bytes)
        if fine is not result:
            self._count(self.name, "cut")
        return fine

    async def spilled(self, call: Invocation, result: ToolResult) -> ToolResult:
        """Cut a result, and keep the whole text of one that is too large."""
        fine = limited(result, self._max_bytes, NOTE_BYTES)
        if fine is result or self.spill is None:
            return fine
        self._count(self.name, "cut")
        return with_note(fine, await self.spill.kept(call.session, result))


def limited(result: ToolResult, max_bytes: int, note_bytes: int = 0) -> ToolResult:
    """Bound what reaches the model: content, structured content and the failure.

    Gives the result itself if it is small enough, as one is that was cut before. Below 1024 bytes
    the lines that say what is missing may come on top, 512 bytes at most. Of what is cut,
    `note_bytes` more are kept free.
    """
    content = result.content
    if len(content) == 1 and result.structured_content is None and result.failure is None:
        block = content[0]
        # A character is 4 bytes at most: one look is enough for most results.
        if (
            type(block) is TextContent
            and 4 * len(block.text) <= max_bytes
            and block.annotations is block.meta is None
        ):
            return result
    return result if size_of(result) <= max_bytes else _cut(result, max_bytes, note_bytes)


def _cut(result: ToolResult, max_bytes: int, note_bytes: int) -> ToolResult:
    budget = max(max_bytes - RESERVED_BYTES - note_bytes, max_bytes // 2)
    if result.failure is not None:
        result, budget = _with_short_failure(result, result.failure, budget)
    blocks = list(enumerate(result.content))
    texts = [(place, block) for place, block in blocks if isinstance(block, TextContent)]
    sizes = [block_size(block, place) for place, block in texts]
    text = sum(sizes)
    # Text that must be cut anyway shares with what can only stay whole.
    room = budget - (text if text <= budget else budget // 2)
    wholes, structured, taken = _fitting(result, room)

    kept: dict[int, Content] = {**kept_ends(texts, sizes, budget - taken), **wholes}
    content = tuple(kept[place] for place in sorted(kept))
    left_out = Counter(
        _KINDS.get(type(block), "part")
        for place, block in blocks
        if place not in wholes and not isinstance(block, TextContent)
    )
    said = [f"{count} {kind}{'' if count == 1 else 's'}" for kind, count in left_out.items()]
    if structured is None and result.structured_content is not None:
        said.append("structured content")
    if said:
        line = f"[Left out, as a result may have {max_bytes:,} bytes: {', '.join(said)}.]"
        content = (*content, TextContent(text=line))
    return msgspec.structs.replace(result, content=content, structured_content=structured)


def _fitting(result: ToolResult, room: float) -> tuple[dict[int, Content], Any, int]:
    """Take the parts that stay whole, in their order, while there is room; and what they take."""
    wholes: dict[int, Content] = {}
    left = room
    for place, block in enumerate(result.content):
        size = math.inf if isinstance(block, TextContent) else block_size(block, place)
        if size <= left:
            left -= size
            wholes[place] = block
    structured = result.structured_content
    size = 0 if structured is None else json_size(structured)
    if size > left:
        structured, size = None, 0
    return wholes, structured, int(room - left + size)


def _with_short_failure(
    result: ToolResult, failure: Failure, budget: int
) -> tuple[ToolResult, int]:
    """Shorten a failure, and its text in the content; what is left for the rest."""
    alone = not result.content or says_failure(result, failure)
    short = _short(failure, budget if alone else budget // 2)
    if alone:
        content: tuple[Content, ...] = (TextContent(text=short.render()),)
        budget -= unseen_size(short)
    else:
        content = result.content
        budget -= unseen_size(short) + text_size(short.render())
    return msgspec.structs.replace(result, failure=short, content=content), max(budget, 0)


def _short(failure: Failure, budget: int) -> Failure:
    """Shorten message and guidance, and keep what else of it fits beside them."""
    if text_size(failure.render()) + unseen_size(failure) <= budget:
        return failure
    short = msgspec.structs.replace(
        failure,
        reason=text_head(failure.reason, MAX_REASON),
        message=_shortened(failure.message, budget // 2),
        guidance=_shortened(failure.guidance, budget // 4),
        hints=(),
        issues=tuple(
            Issue(_shortened(i.path, 100), _shortened(i.message, 200), i.keyword[:40])
            for i in failure.issues[:MAX_ISSUES]
        ),
    )
    if text_size(short.render()) + unseen_size(short) > budget:
        short = msgspec.structs.replace(short, issues=())
    over = text_size(short.render()) - budget
    if over > 0:  # what stands around the message took more than its share
        message = _shortened(short.message, max(text_size(short.message) - over, 0))
        short = msgspec.structs.replace(short, message=message)
    return short


def _shortened(text: str, size: int) -> str:
    if text_size(text) <= size:
        return text
    return text_head(text, size - 3) + "…" if size >= 3 else ""
