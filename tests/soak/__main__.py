"""Soak with chaos: `python -m tests.soak --minutes 10`."""

from __future__ import annotations

import argparse
import asyncio
import logging
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

from tests.outages.postgres import running_failing_postgres
from tests.redis_servers import running
from tests.soak.chaos import Outages, World, shown, soak


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--cycle", type=float, default=15.0, help="seconds between two rests")
    wanted = parser.parse_args()
    unheard: list[str] = []
    sys.unraisablehook = lambda what: unheard.append(repr(what.exc_value))
    threading.excepthook = lambda what: unheard.append(repr(what.exc_value))
    # Warnings tell of the outages, which are meant; errors are none of them.
    logging.getLogger("seawall").setLevel(logging.ERROR)
    with (
        running_failing_postgres() as postgres,
        running() as redis,
        tempfile.TemporaryDirectory() as folder,
    ):
        world = World(postgres.new_database(), redis.url, Path(folder))
        outages = Outages(postgres, redis)

        async def run() -> Any:
            asyncio.get_running_loop().set_exception_handler(
                lambda _, context: unheard.append(str(context.get("message")))
            )
            return await soak(world, outages, wanted.minutes * 60, wanted.cycle, _say)

        report = asyncio.run(run())
    report.faults.extend(f"unheard: {said}" for said in unheard)
    _say(shown(report))
    return 1 if report.faults else 0


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
