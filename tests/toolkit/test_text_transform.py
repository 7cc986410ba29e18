from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seawall.contract.failure import ToolFailed
from seawall.toolkit.text_transform import MAX_TEXT, text_transform, wrapped


def _done(text: str, operation: str, **arguments: Any) -> str:
    told = text_transform(text, operation, **arguments)  # type: ignore[arg-type]  # a table of names
    return str(told["text"])


@pytest.mark.parametrize(
    ("operation", "text", "result"),
    [
        ("upper", "aB", "AB"),
        ("lower", "aB", "ab"),
        ("swap_case", "aB", "Ab"),
        ("title", "don't STOP  me", "Don't Stop  Me"),
        ("sentence", "hELLO World", "Hello world"),
        ("sentence", "", ""),
        ("snake", "parseHTTPResponse2 now", "parse_http_response2_now"),
        ("kebab", "SomeURL", "some-url"),
        ("constant", "maxSize", "MAX_SIZE"),
        ("camel", "user-id TOKEN", "userIdToken"),
        ("camel", "--", ""),
        ("pascal", "user_id", "UserId"),
        ("slug", "  Crème Brûlée: it's good! ", "creme-brulee-its-good"),
        ("trim", " \n a \t", "a"),
        ("collapse_spaces", " a \n\t b ", "a b"),
        ("dedent", "  a\n    b\n", "a\n  b\n"),
        ("sort_lines", "b\na\n", "a\nb\n"),
        ("sort_lines", "b\na", "a\nb"),
        ("unique_lines", "b\na\nb\n", "b\na\n"),
        ("reverse_lines", "a\nb\n", "b\na\n"),
        ("number_lines", "a\nb", "1  a\n2  b"),
        ("reverse", "abc", "cba"),
        ("base64_encode", "h\u00e9", "aMOp"),
        ("base64_decode", "aMOp", "h\u00e9"),
        ("base64_decode", "YQ", "a"),
        ("base64_decode", "w78_\n", "\u00ff?"),
        ("url_encode", "a b/\u00e9&", "a%20b%2F%C3%A9%26"),
        ("url_decode", "a%20b+%C3%A9", "a b+\u00e9"),
        ("html_encode", '<a href="x">&\'', "&lt;a href=&quot;x&quot;&gt;&amp;&#x27;"),
        ("html_decode", "&lt;&eacute;&#39;", "<\u00e9'"),
        ("hex_encode", "a\n", "610a"),
        ("hex_decode", "61 0A", "a\n"),
    ],
)
def test_texts_are_transformed(operation: str, text: str, result: str) -> None:
    assert _done(text, operation) == result


def test_counts_are_of_all_kinds() -> None:
    assert text_transform("h\u00e9 b\nc\n", "count") == {
        "characters": 7,
        "characters_without_spaces": 4,
        "words": 3,
        "lines": 2,
        "utf8_bytes": 8,
    }


def test_lines_are_wrapped_at_spaces() -> None:
    text = "one two three four\n\n" + "x" * 15 + " end"

    assert _done(text, "wrap", width=10) == "one two\nthree four\n\n" + "x" * 15 + "\nend"


@pytest.mark.parametrize(
    ("operation", "text", "said"),
    [
        ("base64_decode", "a", "no base64"),
        ("base64_decode", "\u00e9\u00e9\u00e9\u00e9", "no base64"),
        ("base64_decode", "/w==", "no UTF-8"),
        ("hex_decode", "6", "no pairs"),
        ("hex_decode", "zz", "no pairs"),
        ("hex_decode", "ff", "no UTF-8"),
        ("url_decode", "%ff", "no UTF-8"),
        ("count", "\ud800", "half of a character"),
        ("url_encode", "\ud800", "half of a character"),
        ("upper", "x" * (MAX_TEXT + 1), "longer than"),
    ],
)
def test_text_that_cannot_be_transformed_is_refused(operation: str, text: str, said: str) -> None:
    with pytest.raises(ToolFailed, match=said) as refused:
        _done(text, operation)

    assert refused.value.failure.fields == ("text",)


@given(st.text(max_size=50), st.sampled_from(["base64", "url", "html", "hex"]))
def test_what_is_encoded_decodes_to_the_same_text(text: str, code: str) -> None:
    assert _done(_done(text, f"{code}_encode"), f"{code}_decode") == text


@given(st.text("ab \n", max_size=60), st.integers(10, 20))
def test_wrapping_loses_no_word_and_keeps_to_the_width(text: str, width: int) -> None:
    found = wrapped(text, width)

    assert found.split() == text.split()
    assert all(len(line) <= width or " " not in line for line in found.split("\n"))
