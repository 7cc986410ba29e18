"""Kill, look, resume: `python -m tests.crash --runs 200 --store postgresql`; `--races 500`."""

from __future__ import annotations

import argparse
import contextlib
import os
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from tests.crash.killed import killed_runs
from tests.crash.race import races
from tests.servers import running_postgres

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterator


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.crash", description=__doc__)
    parser.add_argument("--runs", type=int, default=0, help="processes to kill, point by point")
    parser.add_argument("--races", type=int, default=0, help="approvals that two processes resume")
    parser.add_argument("--store", choices=["sqlite", "postgresql"], default="sqlite")
    parser.add_argument("--url", help="an empty state to use; else one is made")
    wanted = parser.parse_args()
    os.environ.setdefault("SEAWALL_STATE_KEY", "33" * 32)
    with tempfile.TemporaryDirectory() as folder, _state(wanted, Path(folder)) as url:
        effects = Path(folder) / "effects"
        for said, work, count in (
            ("killed", killed_runs, wanted.runs),
            ("raced", races, wanted.races),
        ):
            if count:
                begun = time.monotonic()
                _say(f"{wanted.store}: {count} {said}", work(url, effects, count), begun)


@contextlib.contextmanager
def _state(wanted: argparse.Namespace, folder: Path) -> Iterator[str]:
    if wanted.url:
        yield wanted.url
    elif wanted.store == "sqlite":
        yield f"sqlite:///{folder}/state.db"
    else:
        with running_postgres() as server:
            yield server.new_database()


def _say(head: str, found: Counter[str], begun: float) -> None:
    ends = ", ".join(f"{count} {end}" for end, count in sorted(found.items()))
    print(f"{head} in {time.monotonic() - begun:.0f} s: {ends}; nothing twice, nothing lost")  # noqa: T201  # the command's answer


if __name__ == "__main__":
    main()
