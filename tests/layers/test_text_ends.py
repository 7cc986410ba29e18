"""Beginning and end of texts that are too long."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seawall.contract.content import TextContent
from seawall.layers.result_sizes import FRAME_BYTES, block_size
from seawall.layers.text_ends import kept_ends, text_head, text_tail

LINE = re.compile(r"\n\[… ([\d,]+) of ([\d,]+) bytes were cut here …\]\n")


def cut(*texts: str, budget: int) -> list[str]:
    blocks = [(place, TextContent(text=text)) for place, text in enumerate(texts)]
    sizes = [block_size(block, place) for place, block in blocks]
    kept = kept_ends(blocks, sizes, budget)
    return [kept[place].text for place in sorted(kept)]


def test_a_text_within_the_budget_is_left_alone() -> None:
    assert cut("abcdef", budget=6) == ["abcdef"]


def test_a_text_beyond_the_budget_keeps_both_ends_and_says_what_is_missing() -> None:
    assert cut("abcdefghij", budget=6) == ["abc\n[… 4 of 10 bytes were cut here …]\nhij"]


def test_large_numbers_are_written_to_be_read() -> None:
    (text,) = cut("x" * 5_000_000, budget=1_000)

    assert "4,999,000 of 5,000,000 bytes" in text


def test_blocks_at_the_ends_stay_whole_and_those_between_go() -> None:
    kept = cut("head", "b" * 500, "c" * 500, "d" * 500, "tail", budget=4 * FRAME_BYTES + 12)

    assert kept == ["head", "b" * 34 + "\n[… 1,464 of 1,508 bytes were cut here …]\n", "dd", "tail"]


def test_a_block_of_which_nothing_is_left_goes() -> None:
    kept = cut("head", "b" * 500, "c" * 500, "d" * 500, "tail", budget=2 * FRAME_BYTES + 8)

    assert kept == ["head", "\n[… 1,500 of 1,508 bytes were cut here …]\n", "tail"]


def test_empty_blocks_are_bounded_too() -> None:
    assert len(cut(*[""] * 10_000, budget=10 * FRAME_BYTES)) <= 12


def test_a_cut_block_keeps_small_annotations_and_loses_large_ones() -> None:
    for extras, kept in (({"priority": 1}, True), ({"note": "x" * 300}, False)):
        block = TextContent(text="x" * 5_000, annotations=extras)

        (one,) = kept_ends([(0, block)], [block_size(block, 0)], 1_000).values()

        assert (one.annotations == extras) is kept


def test_annotations_that_json_cannot_say_are_lost_and_the_text_is_kept() -> None:
    cyclic: dict[str, Any] = {}
    cyclic["a"] = cyclic
    block = TextContent(text="x" * 5_000, meta=cyclic)

    (one,) = kept_ends([(0, block)], [block_size(block, 0)], 1_000).values()

    assert one.meta is None
    assert one.text.count("x") == 1_000
    assert "4,000 of 5,000 bytes" in one.text


@pytest.mark.parametrize("size", [-1, 0])
def test_no_room_is_no_text(size: int) -> None:
    assert text_head("abc", size) == text_tail("abc", size) == ""


@given(text=st.text(st.characters(), max_size=40), size=st.integers(0, 60))
def test_ends_are_valid_utf8_of_that_size_and_lose_less_than_one_character(
    text: str, size: int
) -> None:
    whole = text.encode("utf-8", "replace").decode()
    head, tail = text_head(text, size), text_tail(text, size)

    assert whole.startswith(head)
    assert whole.endswith(tail)
    for end in (head, tail):
        assert min(size, len(whole.encode())) - 4 < len(end.encode()) <= size


@given(
    texts=st.lists(st.text(st.characters(), max_size=30), min_size=1, max_size=6),
    budget=st.integers(0, 300),
)
def test_what_is_kept_fits_and_the_line_tells_the_truth(texts: list[str], budget: int) -> None:
    kept = cut(*texts, budget=budget)
    joined = "".join(kept)
    joined.encode("utf-8", "replace")
    line: Any = LINE.search(joined)

    if kept == texts:
        return
    total = sum(len(text.encode("utf-8", "surrogatepass")) for text in texts)
    left = sum(len(text.encode("utf-8", "surrogatepass")) for text in kept)
    left -= len(line.group().encode())
    missing = int(line.group(1).replace(",", ""))
    assert left <= budget
    assert int(line.group(2).replace(",", "")) == total
    assert missing == total - left
