import pytest
from hypothesis import given
from hypothesis import strategies as st

from seawall.contract.failure import ToolFailed
from seawall.toolkit.string_distance import MAX_TEXT, string_distance

MEASURES = (
    "levenshtein",
    "osa",
    "damerau_levenshtein",
    "indel",
    "lcs",
    "hamming",
    "jaro",
    "jaro_winkler",
)


@pytest.mark.parametrize(
    ("a", "b", "measure", "distance"),
    [
        ("kitten", "sitting", "levenshtein", 3),
        ("ab", "ba", "levenshtein", 2),
        ("ab", "ba", "osa", 1),
        ("ca", "abc", "osa", 3),
        ("ca", "abc", "damerau_levenshtein", 2),
        ("ab", "ac", "indel", 2),
        ("abc", "axc", "lcs", 1),
        ("abc", "axc", "hamming", 1),
        ("MARTHA", "MARHTA", "jaro", 0.055556),
        ("MARTHA", "MARHTA", "jaro_winkler", 0.038889),
        ("", "", "levenshtein", 0),
    ],
)
def test_known_distances(a: str, b: str, measure: str, distance: float) -> None:
    assert string_distance(a, b, measure)["distance"] == distance  # type: ignore[arg-type]  # a table of names


def test_case_may_be_left_out_of_account() -> None:
    assert string_distance("ABC", "abc")["distance"] == 3
    assert (
        string_distance("STRASSE", "stra\N{LATIN SMALL LETTER SHARP S}e", ignore_case=True)[
            "similarity"
        ]
        == 1
    )


@pytest.mark.parametrize(
    ("a", "b", "measure", "field"),
    [
        ("abc", "ab", "hamming", "b"),
        ("x" * (MAX_TEXT + 1), "", "osa", "a"),
        ("", "x" * (MAX_TEXT + 1), "osa", "b"),
    ],
)
def test_texts_that_cannot_be_compared_are_refused(
    a: str, b: str, measure: str, field: str
) -> None:
    with pytest.raises(ToolFailed) as refused:
        string_distance(a, b, measure)  # type: ignore[arg-type]  # a table of names

    assert refused.value.failure.fields == (field,)


@given(st.text(max_size=12), st.text(max_size=12), st.sampled_from(MEASURES[:5]))
def test_distances_are_symmetric_and_zero_only_for_equal_texts(
    a: str, b: str, measure: str
) -> None:
    there = string_distance(a, b, measure)  # type: ignore[arg-type]  # a table of names
    back = string_distance(b, a, measure)  # type: ignore[arg-type]  # a table of names

    assert there == back
    assert (there["distance"] == 0) == (a == b)
    assert 0 <= there["similarity"] <= 1
