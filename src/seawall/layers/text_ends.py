"""Keep both ends of a text that is too long, with a line that says how much is missing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from seawall.contract.content import TextContent
from seawall.layers.result_sizes import FRAME_BYTES, extras_size, text_size

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_EXTRAS = 256
"""Bytes of annotations that a block keeps when it is cut."""


def kept_ends(
    texts: Sequence[tuple[int, TextContent]], sizes: Sequence[float], budget: int
) -> dict[int, TextContent]:
    """Fit blocks, each with its place, into a budget: whole ones from both ends, two cut ones.

    `sizes` has their `block_size`, as counting is what takes the time. Blocks in the middle are
    dropped. What is cut stays valid UTF-8. The line that says how much is missing comes on top
    of the budget.
    """
    if sum(sizes) <= budget:
        return dict(texts)
    first, head_room = _whole(sizes, budget // 2)
    behind, tail_room = _whole(sizes[::-1], budget - budget // 2)
    # More than the budget in all, so at least one block is in neither part.
    last = len(texts) - 1 - behind
    kept = dict(texts[:first]) | dict(texts[last + 1 :])

    head = text_head(texts[first][1].text, _room(*texts[first], head_room))
    tail = text_tail(texts[last][1].text, _room(*texts[last], tail_room))
    total = int(sum(map(_text_alone, texts, sizes)))
    left = sum(text_size(block.text) for block in kept.values()) + text_size(head + tail)
    line = f"\n[… {total - left:,} of {total:,} bytes were cut here …]\n"
    if first == last:
        kept[texts[first][0]] = _with_text(texts[first][1], head + line + tail)
        return kept
    kept[texts[first][0]] = _with_text(texts[first][1], head + line)
    if tail:
        kept[texts[last][0]] = _with_text(texts[last][1], tail)
    return kept


def text_head(text: str, size: int) -> str:
    """Take the beginning, `size` bytes at most; lone surrogates become question marks."""
    return text[: max(size, 0)].encode("utf-8", "replace")[: max(size, 0)].decode("utf-8", "ignore")


def text_tail(text: str, size: int) -> str:
    """Take the end, `size` bytes at most; lone surrogates become question marks."""
    if size <= 0:
        return ""
    return text[-size:].encode("utf-8", "replace")[-size:].decode("utf-8", "ignore")


def _whole(sizes: Sequence[float], budget: float) -> tuple[int, float]:
    """Count the blocks that fit from this end, not all of them; and what is left of the budget."""
    count = 0
    while sizes[count] <= budget:
        budget -= sizes[count]
        count += 1
    return count, budget


def _text_alone(text: tuple[int, TextContent], size: float) -> float:
    place, block = text
    if block.annotations is None and block.meta is None:
        return size - (FRAME_BYTES if place else 0)
    return text_size(block.text)  # the size may be infinite for annotations that are no JSON


def _room(place: int, block: TextContent, budget: float) -> int:
    extras = extras_size(block)
    kept = extras if extras <= MAX_EXTRAS else 0
    return int(budget - kept) - (FRAME_BYTES if place else 0)


def _with_text(block: TextContent, text: str) -> TextContent:
    if extras_size(block) > MAX_EXTRAS:
        return TextContent(text=text)
    return msgspec.structs.replace(block, text=text)
