"""Find the name that somebody meant."""

from __future__ import annotations

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


def nearest(name: str, names: Iterable[str] | Mapping[str, Any]) -> str | None:
    """Give the one of `names` that `name` may have meant; case and separators do not count."""
    if not name or len(name) > _LONGEST:
        return None
    known = [known for known in islice(names, _NAMES_AT_MOST) if len(known) <= _LONGEST]
    found = process.extractOne(
        name, known, scorer=fuzz.ratio, processor=_plain, score_cutoff=_CLOSE
    )
    return found[0] if found else None


def _plain(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "").replace(" ", "").replace(".", "")


def is_alike(name: str, names: Iterable[str]) -> bool:
    """Whether `name` could be one of `names`, with all doubt on the side of yes."""
    plain = _plain(name[:_LONGEST])
    return any(
        plain in (other := _plain(known)) or other in plain or fuzz.ratio(plain, other) >= _ALIKE
        for known in islice(names, _NAMES_AT_MOST)
    )
