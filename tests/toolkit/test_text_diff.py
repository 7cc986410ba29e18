import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seawall.contract.failure import ToolFailed
from seawall.toolkit.text_diff import MAX_LINES, MAX_TEXT, lines_of, text_diff

HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@\n")


def _applied(before: str, diff: str) -> str:
    """Apply a unified diff, trusting nothing: places, lengths and contexts must all be right."""
    old = lines_of(before, "before")
    new: list[str] = []
    at = 0
    lines = _unmarked(diff)[2:]
    while lines:
        found = HUNK.fullmatch(lines.pop(0))
        assert found
        begin, length, start, size = (int(1 if part is None else part) for part in found.groups())
        begin -= 1 if length else 0
        start -= 1 if size else 0
        new += old[at:begin]
        assert len(new) == start
        at = begin
        while lines and not lines[0].startswith("@@"):
            mark, line = lines[0][0], lines.pop(0)[1:]
            if mark in " -":
                assert old[at] == line
                at += 1
            if mark in " +":
                new.append(line)
        assert (at, len(new)) == (begin + length, start + size)
    return "".join(new + old[at:])


def _unmarked(diff: str) -> list[str]:
    """Split a diff into lines, those without a line end at the end of a file made whole again."""
    lines = [f"{line}\n" for line in diff.split("\n")[:-1]]
    ended = [
        line.removesuffix("\n") if after.startswith("\\") else line
        for line, after in pairwise([*lines, ""])
    ]
    return [line for line in ended if not line.startswith("\\")]


def test_a_change_is_shown_with_its_surroundings() -> None:
    told = text_diff("a\nb\nc\nd\n", "a\nb\nX\nd\n", surrounding=1)

    assert told == {
        "identical": False,
        "added": 1,
        "removed": 1,
        "diff": "--- before\n+++ after\n@@ -2,3 +2,3 @@\n b\n-c\n+X\n d\n",
    }


def test_equal_texts_have_no_diff() -> None:
    assert text_diff("a\n", "a\n") == {"identical": True, "added": 0, "removed": 0, "diff": ""}


def test_a_missing_line_end_is_a_change_and_marked() -> None:
    told = text_diff("a", "a\n")

    assert told["diff"].endswith("-a\n\\ No newline at end of file\n+a\n")


def test_changes_far_apart_are_hunks_of_their_own() -> None:
    before = "".join(f"{number}\n" for number in range(40))
    after = before.replace("5\n", "five\n", 1).replace("35\n", "thirty-five\n")

    assert text_diff(before, after)["diff"].count("@@ -") == 2
    assert text_diff(before, after, surrounding=20)["diff"].count("@@ -") == 1


@pytest.mark.parametrize(
    ("before", "after", "field"),
    [
        ("x" * (MAX_TEXT + 1), "", "before"),
        ("", "\n" * (MAX_LINES + 1), "after"),
        ("", "x" * 150_000, "before"),
    ],
)
def test_too_much_text_is_refused(before: str, after: str, field: str) -> None:
    with pytest.raises(ToolFailed) as refused:
        text_diff(before, after)

    assert refused.value.failure.fields == (field,)


def test_repeated_lines_do_not_make_it_slow() -> None:
    told = text_diff("a\nb\n" * 4000, "b\na\n" * 4000)

    assert (told["added"], told["removed"]) == (1, 1)


_texts = st.lists(st.sampled_from(["a", "b", "c", "", "@@ x", "\r", "\u2028", "-x", "\\"])).flatmap(
    lambda lines: st.sampled_from(["\n".join(lines), "".join(f"{line}\n" for line in lines)])
)


@given(_texts, _texts, st.integers(0, 4))
def test_a_diff_applied_to_the_old_text_gives_the_new(
    before: str, after: str, surrounding: int
) -> None:
    assert _applied(before, text_diff(before, after, surrounding)["diff"]) == after
