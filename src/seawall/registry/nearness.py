"""How near a registered name is to the one that was asked for.

Six grades, best first, and within a grade a cost. Edit distance is Levenshtein's with neighbours
that changed places counted once, up to 0.4 of the longer name, at least 1; it is joined by words,
because a server's name too many or words in another order are many edits and little difference.
"""

from __future__ import annotations

from enum import IntEnum
from itertools import accumulate

import msgspec
from rapidfuzz.distance import OSA, Levenshtein

from seawall.registry.spelling import Reading, Spelling

MOST_WORDS = 24
"""Words of a name that are compared; more make no tool's name."""


class Grade(IntEnum):
    """How a name is near; a smaller one is nearer."""

    SAME = 0
    """The same letters: another case, other separators, a `functions.` before it."""
    WORDS = 1
    """The same words in another order, or singular for plural."""
    PREFIX = 2
    """What was asked for is the beginning of this name."""
    PART = 3
    """What was asked for is some other part of it."""
    NEAR = 4
    """Every word is near: typing errors, a server's name too many, words left out."""
    LOOSE = 5
    """Most letters stand in shared words, but a whole word is another one."""


class Query(msgspec.Struct, frozen=True):
    """A name that was asked for, read against the words that the tools have."""

    name: str
    reading: Reading
    stems: tuple[str, ...]
    """The core's words; one that no tool has is replaced by the one that was probably meant."""
    corrected: bool


Nearness = tuple[Grade, float]


def edit_distance(a: str, b: str, bound: int) -> int | None:
    """Count the single-letter edits between two texts (a swap is two); None past `bound`."""
    if bound < 0:
        return None
    distance = Levenshtein.distance(a, b, score_cutoff=bound)
    return distance if distance <= bound else None


def grade(query: Query, name: str, spelling: Spelling) -> Nearness | None:
    """Look closely at one name; None where it is not near."""
    same = _same(query, name, spelling)
    if same is not None or not query.reading.core.words or not spelling.words:
        return same
    full, core = query.reading.full, query.reading.core
    if len(spelling.stems) == len(core.stems) and sorted(spelling.stems) == sorted(core.stems):
        return Grade.WORDS, 0.0
    asked = (full,) if core.compact == full.compact else (full, core)
    within = next(filter(None, (_within(each, spelling) for each in asked)), None)
    if within is not None:
        return within
    ways = [_by_words(query, spelling), *(_by_edits(each, spelling) for each in asked)]
    return min((way for way in ways if way is not None), default=None)


def _same(query: Query, name: str, other: Spelling) -> Nearness | None:
    full, core = query.reading.full, query.reading.core
    if name == query.name:
        return Grade.SAME, 0.0
    if full.compact and other.compact == full.compact:
        return Grade.SAME, 0.1 if other.words == full.words else 0.2
    if core.compact and other.compact == core.compact:
        return Grade.SAME, 0.3
    return None


def _within(asked: Spelling, other: Spelling) -> Nearness | None:
    """Whether a name holds all of what was asked for in one piece.

    Two letters inside a longer word say nothing, a whole word of two letters does.
    """
    length = len(asked.compact)
    edges = set(accumulate(map(len, other.words), initial=0))
    at = other.compact.find(asked.compact)
    while at >= 0:
        begins, ends = at in edges, at + length in edges
        if begins and (length > 2 or ends):
            return (Grade.PREFIX, 0.0) if at == 0 else (Grade.PART, 0.0 if ends else 0.1)
        if length > 5 or (ends and length > 3):
            return Grade.PART, 0.1
        at = other.compact.find(asked.compact, at + 1)
    return None


def _by_edits(asked: Spelling, other: Spelling) -> Nearness | None:
    distance = _edits(asked.compact, other.compact)
    if distance is None:
        return None
    share = distance / max(len(asked.compact), len(other.compact))
    if len(asked.words) != len(other.words):
        # A name that was cut off (some gateways do at 64) ends in the middle of a word.
        near = share <= 0.2 or asked.compact.startswith(other.compact)
        return (Grade.NEAR, share) if near else None
    pairs = zip(asked.words, other.words, strict=True)
    return (Grade.NEAR, share) if all(_edits(*pair) is not None for pair in pairs) else None


def _edits(a: str, b: str) -> int | None:
    """Count edits; None if they change more than 0.4 of the longer text, or all of it."""
    longer = max(len(a), len(b))
    bound = min(max(1, longer * 2 // 5), longer - 1)
    distance = OSA.distance(a, b, score_cutoff=bound)
    return distance if distance <= bound else None


def _by_words(query: Query, other: Spelling) -> Nearness | None:
    """Compare as bags of words, weighed by their letters."""
    left_over = list(other.stems[:MOST_WORDS])
    missing, shared = [], 0
    for stem in query.stems:
        if stem in left_over:
            left_over.remove(stem)
            shared += len(stem)
        else:
            missing.append(stem)
    asked, offered = sum(map(len, query.stems)), sum(map(len, other.stems))
    penalty = 0.2 if query.corrected else 0.1
    if not left_over or other.compact == query.reading.tail:
        enough = shared >= asked * _least_share(query, other)
        return (Grade.NEAR, penalty + 0.2 * (1 - shared / asked)) if enough else None
    if not missing:
        enough = shared >= offered * 0.3
        return (Grade.NEAR, penalty + 0.2 * (1 - shared / offered)) if enough else None
    return _loosely(query, other, 2 * shared / (asked + offered))


def _loosely(query: Query, other: Spelling, alike: float) -> Nearness | None:
    """Whether the words in common outweigh a word that is another one on each side."""
    # A beginning in common, mostly a server's name, does not make a tool a near one.
    if alike < 0.5 or not set(query.stems[1:]) & set(other.stems[1:]):
        return None
    same_end = query.stems[-2:] == other.stems[-2:]
    few_edits = _edits(query.reading.core.compact, other.compact) is not None
    return (Grade.LOOSE, 1 - alike) if alike >= 0.65 or same_end or few_edits else None


def _least_share(query: Query, other: Spelling) -> float:
    """How much of what was asked for a name must be that leaves some of it out.

    The last words name the tool, the words before them a server; in any other place a single
    short word (`get`, `read`) is there by chance.
    """
    if other.compact == query.reading.tail:
        return 0.0
    if query.stems[-len(other.stems) :] == other.stems:
        return 0.35
    return 0.5 if len(other.stems) == 1 else 0.4
