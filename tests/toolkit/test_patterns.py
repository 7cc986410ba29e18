import itertools
import sys
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seawall.contract.failure import FailureCode, ToolFailed
from seawall.toolkit.patterns import MAX_TEXT, Patterns

pytest.importorskip("re2", reason="regular expressions come with the extra `toolkit`")

PATTERNS = Patterns(lambda: 0.0)


def test_matches_are_given_with_positions_groups_and_names() -> None:
    found = PATTERNS.regex_extract("\N{SNOWMAN} ab-12 c-3", r"(?P<word>[a-z]+)-(\d)(\d)?")

    assert found == {
        "matches": [
            {
                "match": "ab-12",
                "start": 2,
                "end": 7,
                "groups": ["ab", "1", "2"],
                "named": {"word": "ab"},
            },
            {
                "match": "c-3",
                "start": 8,
                "end": 11,
                "groups": ["c", "3", None],
                "named": {"word": "c"},
            },
        ],
        "more": False,
    }


@pytest.mark.parametrize(("flags", "count"), [("", 1), ("i", 1), ("m", 2), ("im", 3)])
def test_flags_mean_what_they_say(flags: str, count: int) -> None:
    assert len(PATTERNS.regex_extract("ab\nab\nAB", "^ab$|^ab", flags)["matches"]) == count


def test_a_dot_takes_line_ends_only_if_told_so() -> None:
    assert PATTERNS.regex_extract("a\na", "a.a")["matches"] == []
    assert len(PATTERNS.regex_extract("a\na", "a.a", "s")["matches"]) == 1


def test_more_matches_than_asked_for_are_said_to_exist() -> None:
    assert PATTERNS.regex_extract("aaa", "a", limit=2)["more"] is True
    assert PATTERNS.regex_extract("aaa", "a", limit=3)["more"] is False


@pytest.mark.parametrize(
    ("replacement", "text"),
    [
        (r"\2-\1", "2-a 3-b"),
        (r"\g<letter>", "a b"),
        (r"\g<0>\\\n", "a2\\\n b3\\\n"),
        (r"\3", " "),
        ("", " "),
    ],
)
def test_groups_may_stand_in_a_replacement(replacement: str, text: str) -> None:
    told = PATTERNS.regex_replace("a2 b3", r"(?P<letter>[a-z])(\d)(x)?", replacement)

    assert told == {"text": text, "replaced": 2}


def test_only_the_first_matches_are_replaced_if_asked_so() -> None:
    assert PATTERNS.regex_replace("aaa", "a", "b", limit=2) == {"text": "bba", "replaced": 2}


@pytest.mark.parametrize("replacement", ["\\", r"\q", r"\4", r"\g<none>", r"\g<9>", r"\g<"])
def test_a_replacement_that_means_nothing_is_refused(replacement: str) -> None:
    with pytest.raises(ToolFailed) as refused:
        PATTERNS.regex_replace("a2", r"([a-z])(\d)", replacement)

    assert refused.value.failure.fields == ("replacement",)


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("(", "missing"),
        ("(?=a)", "invalid perl operator"),
        (r"(a)\1", "invalid escape"),
        ("(?:(?:a{50}){50}){50}", "repetition"),
        (r"\w{1000}\w{1000}\w{1000}", "too large"),
        ("a" * 2000, "longer than"),
        ("\ud800", "half of a character"),
    ],
)
def test_a_pattern_that_cannot_run_is_refused(pattern: str, said: str) -> None:
    with pytest.raises(ToolFailed, match=said) as refused:
        PATTERNS.regex_extract("a", pattern)

    assert refused.value.failure.fields == ("pattern",)


@pytest.mark.parametrize("text", ["x" * (MAX_TEXT + 1), "\udfff"])
def test_text_that_cannot_be_searched_is_refused(text: str) -> None:
    with pytest.raises(ToolFailed) as refused:
        PATTERNS.regex_extract(text, "a")

    assert refused.value.failure.fields == ("text",)


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|a)*b", "(a|aa)+$", "(.*)*x", "(a?){30}a{30}b"])
def test_patterns_that_hang_other_engines_end_here(pattern: str) -> None:
    assert PATTERNS.regex_extract("a" * 50_000 + "!", pattern)["matches"] == []


def test_all_matches_together_are_bounded_in_time() -> None:
    ticks = itertools.count()

    with pytest.raises(ToolFailed, match="takes too long"):
        Patterns(lambda: float(next(ticks))).regex_extract("aaaa", "a")


def test_a_replacement_cannot_grow_without_end() -> None:
    with pytest.raises(ToolFailed, match="grows too large"):
        PATTERNS.regex_replace("a" * 1000, "a", "x" * 2000)
    with pytest.raises(ToolFailed, match="grows too large"):
        PATTERNS.regex_replace("a" * 20_000, "a", "")


def test_without_the_engine_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "re2", None)

    with pytest.raises(ToolFailed, match=r"seawall\[toolkit\]") as refused:
        PATTERNS.regex_extract("a", "a")

    assert refused.value.failure.code is FailureCode.UNSUPPORTED


@given(st.text(max_size=30), st.text("ab.*+?()[]{}|\\^$1,-", max_size=12).filter(bool))
@settings(deadline=None)
def test_any_pattern_on_any_text_gives_matches_or_a_refusal(text: str, pattern: str) -> None:
    try:
        found: dict[str, Any] = PATTERNS.regex_extract(text, pattern)
    except ToolFailed as refused:
        found = {"matches": [], "refused": refused.failure}

    for match in found["matches"]:
        assert text[match["start"] : match["end"]] == match["match"]
