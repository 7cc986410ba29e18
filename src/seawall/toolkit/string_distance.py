"""`string_distance`: how far two texts are from each other, by the measures of rapidfuzz."""

from types import ModuleType
from typing import Annotated, Any, Literal

from pydantic import Field
from rapidfuzz.distance import (
    OSA,
    DamerauLevenshtein,
    Hamming,
    Indel,
    Jaro,
    JaroWinkler,
    LCSseq,
    Levenshtein,
)

from seawall.toolkit.refusal import invalid

MAX_TEXT = 5000
"""The costliest of them grows with the product of both lengths."""

_Text = Annotated[str, Field(max_length=MAX_TEXT)]
_MEASURES: dict[str, ModuleType] = {
    "levenshtein": Levenshtein,
    "osa": OSA,
    "damerau_levenshtein": DamerauLevenshtein,
    "indel": Indel,
    "lcs": LCSseq,
    "hamming": Hamming,
    "jaro": Jaro,
    "jaro_winkler": JaroWinkler,
}


def string_distance(
    a: _Text,
    b: _Text,
    measure: Literal[
        "levenshtein",
        "osa",
        "damerau_levenshtein",
        "indel",
        "lcs",
        "hamming",
        "jaro",
        "jaro_winkler",
    ] = "levenshtein",
    *,
    ignore_case: bool = False,
) -> dict[str, Any]:
    """Measure how different two texts are: an edit distance, and a similarity from 0 to 1.

    osa and damerau_levenshtein count swapped neighbours as one edit; hamming needs equal lengths.
    """
    for field, text in (("a", a), ("b", b)):
        if len(text) > MAX_TEXT:
            raise invalid(field, f"{field} is longer than {MAX_TEXT} characters")
    left, right = (a.casefold(), b.casefold()) if ignore_case else (a, b)
    if measure == "hamming" and len(left) != len(right):
        raise invalid(
            "b", f"hamming compares texts of one length, not {len(left)} and {len(right)}"
        )
    chosen = _MEASURES[measure]
    return {
        "measure": measure,
        "distance": round(chosen.distance(left, right), 6),
        "similarity": round(chosen.normalized_similarity(left, right), 6),
    }
