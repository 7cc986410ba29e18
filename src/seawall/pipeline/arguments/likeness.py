"""Find the name that somebody meant."""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING, Any

from rapidfuzz import fuzz, process

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_CLOSE = 70
"""Of 100, by the edits between two names."""
_ALIKE = 55
_LONGEST = 80
_NAMES_AT_MOST = 500
_SHORTEST = 3
"""Letters of an abbreviation; two stand in most words by chance."""
_WORD = re.compile(r"[A-Z]?[^\W_A-Z]+|[A-Z]+(?![a-z])")


def nearest(name: str, names: Iterable[str] | Mapping[str, Any]) -> str | None:
    """Give the one of `names` that `name` may have meant; case and separators do not count.

    The fewest edits count; where all differ by many, one name that the other abbreviates (`qty`),
    or of which it has all words (`email` of `customer_email`), if there is no second such.
    """
    if not name or len(name) > _LONGEST:
        return None
    known = [known for known in islice(names, _NAMES_AT_MOST) if len(known) <= _LONGEST]
    found = process.extractOne(
        name, known, scorer=fuzz.ratio, processor=_plain, score_cutoff=_CLOSE
    )
    return found[0] if found else _shortened(name, known)


def _shortened(name: str, names: Iterable[str]) -> str | None:
    """Give the one name that is the same but for letters or words left out; None of several."""
    plain, words = _plain(name), _words(name)
    found = None
    for known in names:
        if _abbreviates(plain, _plain(known)) or _shares_words(words, known):
            if found is not None:
                return None
            found = known
    return found


def _abbreviates(one: str, other: str) -> bool:
    """Whether the shorter has letters of the longer, in order, and begins as that does."""
    short, long = (one, other) if len(one) <= len(other) else (other, one)
    if len(short) < _SHORTEST or short[0] != long[0]:
        return False
    rest = iter(long)
    return all(letter in rest for letter in short)


def _shares_words(words: set[str], other: str) -> bool:
    """Whether one of two names has all words of the other."""
    plain = other.lower()
    if not any(word in plain for word in words):
        return False
    others = _words(other)
    return words <= others or others <= words


def _words(name: str) -> set[str]:
    return {word.lower() for word in _WORD.findall(name)}


def _plain(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "").replace(" ", "").replace(".", "")


def is_alike(name: str, names: Iterable[str]) -> bool:
    """Whether `name` could be one of `names`, with all doubt on the side of yes."""
    plain = _plain(name[:_LONGEST])
    return any(
        plain in (other := _plain(known)) or other in plain or fuzz.ratio(plain, other) >= _ALIKE
        for known in islice(names, _NAMES_AT_MOST)
    )
