"""`text_diff`: what changed between two texts, as a unified diff that `patch` can apply.

The lines are compared by rapidfuzz, whose time is bounded by the product of the lengths whatever
they hold; difflib's grows with the cube of them when lines repeat.
"""

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, NamedTuple

from pydantic import Field
from rapidfuzz.distance import Indel

from seawall.contract.failure import ToolFailed
from seawall.toolkit.refusal import invalid

MAX_TEXT = 500_000
MAX_LINES = 10_000
MAX_DIFF = 100_000


class _Change(NamedTuple):
    """Lines `begin` to `end` of the old text gave way to lines `start` to `stop` of the new."""

    begin: int
    end: int
    start: int
    stop: int


def text_diff(
    before: Annotated[str, Field(max_length=MAX_TEXT)],
    after: Annotated[str, Field(max_length=MAX_TEXT)],
    surrounding: Annotated[
        int, Field(ge=0, le=50, description="Unchanged lines shown around each change.")
    ] = 3,
) -> dict[str, Any]:
    """Compare two texts line by line and give a unified diff, empty if they are the same."""
    old, new = lines_of(before, "before"), lines_of(after, "after")
    changes = _changes(old, new)
    diff = "".join(_unified(old, new, changes, surrounding))
    if len(diff) > MAX_DIFF:
        raise invalid(
            "before", f"the diff is larger than {MAX_DIFF} characters; compare smaller parts"
        )
    return {
        "identical": not changes,
        "added": sum(change.stop - change.start for change in changes),
        "removed": sum(change.end - change.begin for change in changes),
        "diff": diff,
    }


def lines_of(text: str, field: str) -> list[str]:
    """Split at line feeds alone, each kept with its line, so that joining gives the text back."""
    lines = text.split("\n")
    last = lines.pop()
    if len(text) > MAX_TEXT or len(lines) >= MAX_LINES:
        raise _too_large(field)
    found = [f"{line}\n" for line in lines]
    return [*found, last] if last else found


def _too_large(field: str) -> ToolFailed:
    return invalid(
        field,
        f"{field} is larger than {MAX_TEXT} characters or {MAX_LINES} lines; compare parts of it",
        reason="too_large",
    )


def _changes(old: Sequence[str], new: Sequence[str]) -> list[_Change]:
    # Lines become numbers first: rapidfuzz compares those faster, and by value.
    numbers: dict[str, int] = {}
    coded = [[numbers.setdefault(line, len(numbers)) for line in side] for side in (old, new)]
    changes: list[_Change] = []
    begin = start = 0
    for block in Indel.editops(*coded).as_matching_blocks():
        if begin < block.a or start < block.b:
            changes.append(_Change(begin, block.a, start, block.b))
        begin, start = block.a + block.size, block.b + block.size
    return changes


def _unified(
    old: Sequence[str], new: Sequence[str], changes: Sequence[_Change], surrounding: int
) -> Iterator[str]:
    if changes:
        yield "--- before\n+++ after\n"
    for hunk in _hunks(changes, surrounding):
        first, last = hunk[0], hunk[-1]
        lead = min(surrounding, first.begin)
        tail = min(surrounding, len(old) - last.end)
        here = first.begin - lead
        there = first.start - lead
        yield f"@@ -{_span(here, last.end + tail)} +{_span(there, last.stop + tail)} @@\n"
        for change in hunk:
            yield from _marked(" ", old[here : change.begin])
            yield from _marked("-", old[change.begin : change.end])
            yield from _marked("+", new[change.start : change.stop])
            here = change.end
        yield from _marked(" ", old[here : last.end + tail])


def _hunks(changes: Sequence[_Change], surrounding: int) -> Iterator[list[_Change]]:
    """Put changes together whose surroundings touch."""
    hunk: list[_Change] = []
    for change in changes:
        if hunk and change.begin - hunk[-1].end > 2 * surrounding:
            yield hunk
            hunk = []
        hunk.append(change)
    if hunk:
        yield hunk


def _span(begin: int, end: int) -> str:
    length = end - begin
    if length == 1:
        return str(begin + 1)
    # An empty range names the line before it.
    return f"{begin + 1 if length else begin},{length}"


def _marked(mark: str, lines: Sequence[str]) -> Iterator[str]:
    for line in lines:
        yield mark + line
        if not line.endswith("\n"):
            yield "\n\\ No newline at end of file\n"
