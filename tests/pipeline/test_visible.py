"""What a person decides about has no character that they cannot see."""

from __future__ import annotations

import itertools
import json
import sys
import unicodedata

import pytest

from seawall.pipeline.visible import UNSEEN, visible, visible_json, visible_line

TABLE = {point for first, last in UNSEEN for point in range(first, last + 1)}
BLANKS = {"Zs", "Zl", "Zp", "Cc", "Cs"}


def test_the_table_is_in_order_and_names_each_once() -> None:
    points = [point for pair in UNSEEN for point in pair]
    assert points == sorted(points)
    assert all(last < first for (_, last), (first, _) in itertools.pairwise(UNSEEN))


def test_blanks_controls_and_halves_are_in_the_table_and_nothing_that_is_seen() -> None:
    kinds = {point: unicodedata.category(chr(point)) for point in range(sys.maxunicode + 1)}
    blank = {point for point, kind in kinds.items() if kind in BLANKS} - {0x20, 0x0A, 0x09}
    turning = {
        point
        for point in kinds
        if unicodedata.bidirectional(chr(point))
        in ("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI")
    } | {0x200E, 0x200F, 0x061C}

    assert blank | turning <= TABLE
    further = {kinds[point] for point in TABLE - blank - turning}
    assert further <= {"Cf", "Mn", "Lo", "So", "Cn"}
    assert not {chr(point) for point in TABLE} & set("aä中 ́ü١!-‐–—…“”’\"'\\{}\n\t😀한ㅎ")


@pytest.mark.parametrize(
    ("text", "lines", "line", "written"),
    [
        ("bob", "bob", "bob", "bob"),
        ("bob\u3164", r"bob\u{3164}", r"bob\u{3164}", r"bob\u3164"),
        ("a\u2800\ufe0f", r"a\u{2800}\u{fe0f}", r"a\u{2800}\u{fe0f}", r"a\u2800\ufe0f"),
        ("a\U000e0100", r"a\u{e0100}", r"a\u{e0100}", r"a\udb40\udd00"),
        ("a\u00a0b\u3000c", r"a\u{00a0}b\u{3000}c", r"a\u{00a0}b\u{3000}c", r"a\u00a0b\u3000c"),
        ("a\nb\tc", "a\nb\tc", r"a\u{000a}b\u{0009}c", "a\nb\tc"),
        ("\ud800", r"\u{d800}", r"\u{d800}", r"\ud800"),
        ("Grüße, 世界 👋", "Grüße, 世界 👋", "Grüße, 世界 👋", "Grüße, 世界 👋"),
        ("", "", "", ""),
    ],
)
def test_they_are_written_out(text: str, lines: str, line: str, written: str) -> None:
    assert (visible(text), visible_line(text), visible_json(text)) == (lines, line, written)


def test_json_says_the_same_to_a_program_as_before() -> None:
    value = {"to": "".join(chr(point) for point in sorted(TABLE - set(range(0xD800, 0xE000))))}
    text = json.dumps(value, ensure_ascii=False, indent=2)

    shown = visible_json(text)

    assert json.loads(shown) == value
    assert visible_json(shown) == shown
    assert not {ord(char) for char in shown} & TABLE
