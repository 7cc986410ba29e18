from __future__ import annotations

import pytest

from seawall.pipeline.arguments.patterns.patterns import PatternError, compile_pattern


def missed(pattern: str, matches: list[str], misses: list[str]) -> tuple[list[str], list[str]]:
    """Give what it should have matched, and what it should not have."""
    test = compile_pattern(pattern).matches
    return [text for text in matches if not test(text)], [text for text in misses if test(text)]


@pytest.mark.parametrize(
    ("pattern", "matches", "misses"),
    [
        ("^a$", ["a"], ["a\n", "ba"]),
        (r"^\d+$", ["12"], ["\u0661\u0662"]),
        (r"(?!x)^\w+$", ["a_9"], ["é"]),
        (r"(?=.)\s", ["\ufeff", "\u00a0"], ["\u0085", "\u001c"]),
        (r"^\S\D\W$", ["ab-"], ["a1-", " b-"]),
        (r"\bé", [], ["é", "aé"][:1]),
        (r"a\b", ["a", "aé"], ["ab"]),
        (r"a\B", ["ab"], ["a"]),
        ("^.$", ["😀", "a"], ["\n", "\u2028"]),
        ("[]", [], ["", "a"]),
        ("^[^]$", ["\n", "😀"], [""]),
        (r"\p{L}", ["é"], ["1"]),
        (r"^[\p{Lu}-]$", ["É", "-"], ["é"]),
        (r"(?<year>\d)-\k<year>", ["1-1"], ["1-2"]),
        (r"(a)(b)\2", ["abb"], ["aba"]),
        (r"(a)\10", [], ["a"]),
        (r"\u{1F600}\x41\u0042\cJ\0", ["😀AB\n\0"], ["AB"]),
        (r"^\ud83d\ude00$", ["😀"], ["a"]),
        (r"[\b]", ["\b"], ["b"]),
        (r"^[^\ud800-\udfff]$", ["a", "😀"], [""]),
        (r"[\ud800-\uffff]", ["\ue000"], ["a"]),
        (r"[a\ud800]", ["a"], ["b"]),
        (r"a|\ud800", ["a"], ["b"]),
        (r"^[\]\-^&&~[]+$", ["]-^&~["], ["a"]),
        (r"^\/\.\$\{\}\t\v$", ["/.${}\t\v"], ["/"]),
        (r"(?<!x)a(?:b|c){2,3}?$", ["abc"], ["xabc"]),
        (r"^[a-]$", ["a", "-"], ["b"]),
        (r"^[+--]$", ["+", ",", "-"], ["."]),
    ],
)
def test_patterns_mean_what_they_mean_in_javascript(
    pattern: str, matches: list[str], misses: list[str]
) -> None:
    assert missed(pattern, matches, misses) == ([], [])


@pytest.mark.parametrize(
    ("pattern", "matches", "misses"),
    [
        (r"a\Z", ["aZ"], ["a"]),
        (r"\Aa", ["Aa"], ["a"]),
        (r"[\w-.]", ["-", "."], [" "]),
        (r"[a-\d]", ["-", "a", "1"], ["b"]),
        ("a{", ["a{"], ["a"]),
        ("a{,3}]", ["a{,3}]"], ["aaa"]),
        (r"\1\8[\8]", ["\x0188"], ["1"]),
        (r"\08\x4\u12", ["\x008x4u12"], ["8"]),
        (r"[\07]", ["\x07"], ["0"]),
        (r"\c", ["\\c"], ["c"]),
        (r"\k<n>", ["k<n>"], ["n"]),
        (r"\pL", ["pL"], ["a"]),
        (r"\p{Nothing}", ["p{Nothing}"], ["a"]),
        (r"\-\_", ["-_"], ["_"]),
        (r"[\B]", ["B"], ["\b"]),
        (r"\u{61}\-", ["u" * 61 + "-"], ["a-"]),
    ],
)
def test_what_the_u_flag_refuses_is_read_without_it(
    pattern: str, matches: list[str], misses: list[str]
) -> None:
    assert missed(pattern, matches, misses) == ([], [])


@pytest.mark.parametrize(
    "pattern",
    ["(", ")", "[", "[a", "a**", "*", "(?", "(?#x)", "[b-a]", "\\", "[\\", "\ud800"],
)
def test_what_no_grammar_reads_is_refused(pattern: str) -> None:
    with pytest.raises(PatternError, match="no regular expression"):
        compile_pattern(pattern)


@pytest.mark.parametrize(
    ("pattern", "match"),
    [
        ("(?i)a", "A"),
        (r"\u{zz}", "u{zz}"),
        (r"(?<a>.)\k<b>", None),
    ],
)
def test_rare_patterns_are_left_to_the_engine_or_the_older_grammar(
    pattern: str, match: str | None
) -> None:
    if match is None:
        with pytest.raises(PatternError):
            compile_pattern(pattern)
    else:
        assert compile_pattern(pattern).matches(match)


def test_a_pattern_that_backtracks_without_end_is_given_up() -> None:
    test = compile_pattern(r"^(?=(a+)+$)a").matches

    assert not test("a" * 40 + "!")


def test_text_with_half_a_surrogate_pair_can_be_matched() -> None:
    assert compile_pattern("^..$").matches("a\ud800")
