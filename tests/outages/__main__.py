"""All outages, one after the other: `python -m tests.outages --down 2`, or some by their names."""

from __future__ import annotations

import argparse
import sys

from tests.outages.postgres import running_failing_postgres
from tests.outages.runs import HOWS, Run, outage, scene

HEAD = """\
| PostgreSQL is | calls | slowest with a deadline of 3 s | slowest that needs no state | \
the last failed after the return | effects | lost, doubled or raised |
|---|---|---|---|---|---|---|"""


def main() -> int:
    names = {how.__name__: how for how in HOWS}
    parser = argparse.ArgumentParser(prog="python -m tests.outages", description=__doc__)
    parser.add_argument("hows", nargs="*", metavar="HOW", help=", ".join(names), default=[*names])
    parser.add_argument("--down", type=float, default=2.0, help="seconds until the return")
    wanted = parser.parse_args()
    faults = 0
    _say(HEAD)
    with running_failing_postgres() as server:
        for name in wanted.hows:
            with scene(server) as at:
                run = outage(at, names[name], wanted.down)
            _say(row(run))
            for fault in run.faults[:20]:
                _say(f"    FAULT {fault}")
            _say(f"    {dict(run.failed)}; {run.tasks} tasks at most; {run.memory_kb:,} KB more")
            faults += len(run.faults)
    return 1 if faults else 0


def row(run: Run) -> str:
    """One line of the table."""
    cells = [
        run.how,
        f"{run.calls:,}",
        f"{run.slowest_s['pay']:.1f} s",
        f"{run.slowest_s['look'] * 1000:.0f} ms",
        f"{run.back_s:.1f} s",
        f"{run.effects:,}",
        str(len(run.faults)),
    ]
    return f"| {' | '.join(cells)} |"


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
