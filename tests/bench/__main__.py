"""Measure, show, compare: `python -m tests.bench [SUBJECT …] [--check | --store] [--json FILE]`.

`--check` fails if a ratio is worse than the stored one by more than a quarter, or above an aim that
the stored one meets with margin, in three runs out of three; only what looks worse is run again.
`--store` renews the stored ratios of this series of CPython and the tables on the page.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from tests.bench import chain, crowds, failures, peers, scale, starts
from tests.bench.measure import Pair, Row, measured
from tests.bench.ratios import Key, Results, here, persistently_worse, series, store, stored
from tests.bench.tables import PAGE, plain, written

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection

ROUNDS, FEW = 25, 15

SUBJECTS: dict[str, Callable[[], Awaitable[list[Pair]]]] = {
    "starts": starts.pairs,
    "scale": scale.pairs,
    "chain": chain.pairs,
    "failures": failures.pairs,
    "crowds": crowds.pairs,
    "peers": peers.pairs,
}
GROUPS = (("starts",), ("scale",), ("chain", "failures", "crowds"), ("peers",))
"""What runs interleaved, in this order. The frameworks of peers would weigh on all others, and so
would the others' many pipelines on the peers, which are one tool each."""


async def run(
    subjects: Collection[str], rounds: int, only: Collection[Key] | None = None
) -> dict[str, list[Row]]:
    """Measure subjects; of their rows only some, if `only` says which."""

    def wanted(key: Key) -> bool:
        return only is None or key in only

    found: dict[str, list[Row]] = {}
    for group in GROUPS:
        pairs = [
            (subject, pair)
            for subject in group
            if subject in subjects
            for pair in await SUBJECTS[subject]()
            if wanted((pair.name, pair.against))
        ]
        rows = await measured([pair for _, pair in pairs], rounds=rounds)
        for (subject, _), row in zip(pairs, rows, strict=True):
            found.setdefault(subject, []).append(row)
    if "scale" in subjects:
        sizes = [await measure() for key, measure in scale.MEASURES.items() if wanted(key)]
        found.setdefault("scale", []).extend(sizes)
    return found


def check(results: Results, rounds: int) -> list[str]:
    """Say what is worse than what is stored, and stays so when it is run again."""
    before = stored().get(series())
    if before is None:
        sys.exit(f"no ratios are stored for CPython {series()}: run with --store first")

    def again(keys: Collection[Key]) -> list[Row]:
        subjects = [
            one for one, rows in results.subjects.items() if {r.key for r in rows} & {*keys}
        ]
        found = asyncio.run(run(subjects, rounds, keys))
        return [row for rows in found.values() for row in rows]

    return persistently_worse(results.by_key().values(), before, again)


def main() -> int:
    options = _options()
    warnings.simplefilter("ignore")  # what peers deprecate is no matter of ours
    rounds = FEW if options.short or options.check else ROUNDS
    results = Results(here(), asyncio.run(run(options.subjects or SUBJECTS, rounds)))
    for subject, rows in results.subjects.items():
        print(f"\n{subject}, CPython {results.python}\n\n{plain(rows)}")  # noqa: T201  # what the command is for
    if options.json:
        options.json.write_bytes(msgspec.json.format(msgspec.json.encode(results)) + b"\n")
    if options.store:
        store(results)
        PAGE.write_text(written(PAGE.read_text(), stored()))
    found = check(results, rounds) if options.check else []
    print("\n".join(found))  # noqa: T201  # as above
    return 1 if found else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("subjects", nargs="*", help=f"of {', '.join(SUBJECTS)}; all if none")
    parser.add_argument("--short", action="store_true", help="a third of the rounds")
    parser.add_argument("--check", action="store_true", help="compare with what is stored")
    parser.add_argument("--store", action="store_true", help="renew what is stored, and the page")
    parser.add_argument("--json", type=Path, help="write the rows to a file")
    given = parser.parse_args()
    unknown = set(given.subjects) - {*SUBJECTS}
    if unknown:
        parser.error(f"no such subject: {', '.join(sorted(unknown))}")
    if given.store and given.subjects:
        parser.error("--store takes all subjects, not some")
    return given


if __name__ == "__main__":
    sys.exit(main())
