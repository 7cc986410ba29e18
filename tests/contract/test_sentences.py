"""Joining what is said in parts."""

from __future__ import annotations

import pytest

from seawall.contract.sentences import counted, joined


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ([], ""),
        (["a: missing"], "a: missing"),
        (["a: missing", "b: missing"], "a: missing; b: missing"),
        (['did you mean "a"?', "b: missing"], 'did you mean "a"? b: missing'),
        (["Give a date.", "and 3 more"], "Give a date. and 3 more"),
        (["cut of…", "b"], "cut of…; b"),
    ],
)
def test_no_semicolon_follows_the_end_of_a_sentence(parts: list[str], said: str) -> None:
    assert joined(parts) == said
    assert joined(iter(parts)) == said


@pytest.mark.parametrize(("count", "said"), [(0, "0 calls"), (1, "1 call"), (2, "2 calls")])
def test_things_are_counted_as_people_do(count: int, said: str) -> None:
    assert counted(count, "call") == said
