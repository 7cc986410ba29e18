"""Near-match hints for the name of a tool that does not exist.

A hint is only ever text for the model: nothing here runs a tool or looks one up on its behalf.

Few names are worth a close look (`nearness`). Indexes over letters, beginnings, edit distance and
words put them forward, without a Python loop over all names.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from heapq import nlargest, nsmallest
from itertools import accumulate, chain, combinations, islice
from typing import TYPE_CHECKING

import msgspec
from rapidfuzz import process
from rapidfuzz.distance import OSA

from seawall.registry.nearness import MOST_WORDS, Grade, Query, edit_distance, grade
from seawall.registry.spelling import Spelling, read, spell

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

__all__ = ["Suggester", "edit_distance"]

_WIDTH = 24
"""Names that one index may put forward for a close look."""
_MOST_SHARED = 1500
"""Names looked at for shared words, those with the rarest words first."""
_KEPT = 64
"""Unknown names, as models made them up, whose near ones are kept."""
_LONGEST_KEPT = 128
_MOST_CORRECTED = 3
"""Unknown words that are corrected; a name with more of them is in another language."""


class _Entry(msgspec.Struct, frozen=True):
    name: str
    spelling: Spelling


class _Found(msgspec.Struct, frozen=True, order=True):
    grade: Grade
    cost: float
    position: int
    """In the index, so that of equals the shorter name comes first, then the one given first."""
    name: str


class Suggester:
    """Knows all names and tells which of them a wrong one may have meant.

    Adding and removing only note the name; the indexes are rebuilt by the first `suggest` after
    that. The work for one name, and the memory kept for it, are bounded whatever its length.
    Not for several threads at once.
    """

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._entries: dict[str, _Entry] = {}
        self._index: _Index | None = None
        for name in names:
            self.add(name)

    def add(self, name: str) -> None:
        """Make a name known; one that is known already keeps its place."""
        if name not in self._entries:
            self._entries[name] = _Entry(name, spell(name))
            self._index = None

    def remove(self, name: str) -> None:
        """Forget a name; one that is not known is no error."""
        if self._entries.pop(name, None) is not None:
            self._index = None

    def suggest(
        self, name: str, *, limit: int = 3, allowed: Callable[[str], bool] | None = None
    ) -> tuple[str, ...]:
        """Give the nearest names, nearest first; none where nothing is really near.

        Names that `allowed` refuses are never given. Where one of them is what was asked for,
        nothing is: any other tool would do something else.
        """
        if limit < 1 or not self._entries:
            return ()
        width = min(max(_WIDTH, 2 * limit), len(self._entries))
        found = self._near(name, width)
        if found and allowed is not None:
            found = self._allowed(found, name, allowed, limit, width)
        return tuple(each.name for each in found[:limit])

    def _near(self, name: str, width: int) -> list[_Found]:
        """Find what is near; a name that is tried again and again is looked for once."""
        index = self._current_index()
        known = index.found.get((name, width))
        if known is None:
            known = _worth_showing(index.find(name, width))
            if len(name) <= _LONGEST_KEPT:
                while len(index.found) >= _KEPT:
                    del index.found[next(iter(index.found))]
                index.found[name, width] = known
        return known

    def _allowed(
        self,
        found: list[_Found],
        name: str,
        allowed: Callable[[str], bool],
        limit: int,
        width: int,
    ) -> list[_Found]:
        usable = [each for each in found if allowed(each.name)]
        nearest = found[0].grade
        if nearest is Grade.SAME and not (usable and usable[0].grade is Grade.SAME):
            return []
        if len(usable) >= limit or len(found) - len(usable) < width // 2:
            return usable

        # So many are refused that they may have crowded out others: search without them.
        entries = [entry for entry in self._current_index().entries if allowed(entry.name)]
        return _worth_showing(_Index(entries).find(name, width), nearest)

    def _current_index(self) -> _Index:
        if self._index is None:
            self._index = _Index(sorted(self._entries.values(), key=lambda entry: len(entry.name)))
        return self._index


def _worth_showing(found: list[_Found], nearest: Grade = Grade.LOOSE) -> list[_Found]:
    """Drop what is only like the name where something is the name, or much more like it."""
    nearest = min([nearest, *(each.grade for each in found[:1])])
    if nearest <= Grade.WORDS:
        return [each for each in found if each.grade <= Grade.PART]
    return [each for each in found if each.grade <= max(nearest, Grade.NEAR)]


class _Index:
    """All names at one moment, the shortest first, prepared for searching."""

    def __init__(self, entries: Sequence[_Entry]) -> None:
        self.entries = entries
        self.found: dict[tuple[str, int], list[_Found]] = {}
        """What was near to the names that were looked for last."""
        self._positions = {entry.name: at for at, entry in enumerate(entries)}
        self._compacts = [entry.spelling.compact for entry in entries]
        self._longest = max(map(len, self._compacts), default=0)
        self._text = "\n" + "\n".join(self._compacts) + "\n"
        self._starts = list(accumulate((len(each) + 1 for each in self._compacts), initial=1))
        self._same: defaultdict[str, list[int]] = defaultdict(list)
        self._with_stem: defaultdict[str, list[int]] = defaultdict(list)
        for at, entry in enumerate(entries):
            self._same[entry.spelling.compact].append(at)
            for stem in set(entry.spelling.stems[:MOST_WORDS]):
                self._with_stem[stem].append(at)
        self._vocabulary = sorted(s for s in self._with_stem if len(s) > 2 and not s.isdecimal())

    def find(self, name: str, width: int) -> list[_Found]:
        """Give what is near in any way, nearest first."""
        query = self._query(name)
        found = []
        for at in set(self._put_forward(query, width)):
            entry = self.entries[at]
            near = grade(query, entry.name, entry.spelling)
            if near is not None:
                found.append(_Found(*near, at, entry.name))
        return sorted(found)

    def _query(self, name: str) -> Query:
        reading = read(name)
        stems = reading.core.stems[:MOST_WORDS]
        unknown = [stem for stem in stems if len(stem) > 3 and stem not in self._with_stem]
        if not 0 < len(unknown) <= _MOST_CORRECTED:
            return Query(name, reading, stems, corrected=False)
        meant = (self._meant(stem) if stem in unknown else (stem,) for stem in stems)
        fixed = tuple(chain.from_iterable(meant))
        return Query(name, reading, fixed[:MOST_WORDS], corrected=fixed != stems)

    def _meant(self, word: str) -> tuple[str, ...]:
        """Give the known words for an unknown one: glued, mistyped, or a shorter or longer form."""
        for at in range(2, len(word) - 1):
            if word[:at] in self._with_stem and word[at:] in self._with_stem:
                return word[:at], word[at:]
        found = process.extractOne(
            word, self._vocabulary, scorer=OSA.normalized_distance, score_cutoff=0.26
        )
        return (found[0] if found else self._other_form(word),)

    def _other_form(self, word: str) -> str:
        after = bisect_left(self._vocabulary, word)
        if after < len(self._vocabulary) and self._vocabulary[after].startswith(word):
            return self._vocabulary[after]
        shortest = max(4, -(-len(word) * 2 // 5))
        beginnings = (word[:end] for end in range(len(word) - 1, shortest - 1, -1))
        return next((each for each in beginnings if each in self._with_stem), word)

    def _put_forward(self, query: Query, width: int) -> Iterator[int]:
        if query.name in self._positions:
            yield self._positions[query.name]
        full, core = query.reading.full.compact, query.reading.core.compact
        same = [*self._same.get(full, ())[:width], *self._same.get(core, ())[:width]]
        yield from same
        if not core:
            return

        yield from self._made_of_its_words(query.reading.core, width)
        for compact in (full, core) if full != core else (full,):
            yield from islice(self._beginning_with(compact), width)
            yield from islice(self._containing(compact), 4 * width)
        yield from self._sharing_words(query.stems, width)
        if not same:
            near = self._few_edits_away(core, width)
            yield from near if near or full == core else self._few_edits_away(full, width)

    def _made_of_its_words(self, core: Spelling, width: int) -> Iterator[int]:
        """Names that are some neighbouring words of the query, however those are glued."""
        words = core.words[:MOST_WORDS]
        for start, end in combinations(range(len(words) + 1), 2):
            yield from self._same.get("".join(words[start:end]), ())[:width]

    def _beginning_with(self, compact: str) -> Iterator[int]:
        at = self._text.find("\n" + compact)
        while at >= 0:
            yield bisect_right(self._starts, at + 1) - 1
            at = self._text.find("\n" + compact, at + 1)

    def _containing(self, compact: str) -> Iterator[int]:
        at = self._text.find(compact)
        while at >= 0:
            position = bisect_right(self._starts, at) - 1
            yield position
            at = self._text.find(compact, self._starts[position + 1])

    def _sharing_words(self, stems: tuple[str, ...], width: int) -> list[int]:
        lists = [self._with_stem[stem] for stem in dict.fromkeys(stems) if stem in self._with_stem]
        lists.sort(key=len)
        if not lists:
            return []
        weights: defaultdict[int, int] = defaultdict(int)
        left = _MOST_SHARED
        for positions in lists:
            for at in positions[:left]:
                weights[at] += 1
            left -= min(left, len(positions))
        having_all = nsmallest(width, set(lists[0]).intersection(*lists[1:]))
        return having_all + nlargest(width, weights, key=lambda at: (weights[at], -at))

    def _few_edits_away(self, compact: str, width: int) -> list[int]:
        if len(compact) * 0.6 > self._longest:
            return []
        cutoff = 0.5 if len(compact) < 3 else 0.401
        found = process.extract(
            compact,
            self._compacts,
            scorer=OSA.normalized_distance,
            score_cutoff=cutoff,
            limit=width,
        )
        return [at for _, _, at in found]
