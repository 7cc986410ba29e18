"""Try random schemas and arguments. `python -m tests.fuzz [--seconds N] [--seed N] [--case N]`.

Ends with 1 if anything escaped or took more than 100 ms of CPU time; such cases are kept in
`tests/fuzz/corpus` and tried again by the tests. A case is drawn from the seed and its number
alone. Should the process die, the last line of the file it named says at which case.
"""

from __future__ import annotations

import argparse
import faulthandler
import os
import resource
import sys
import tempfile
import time
from random import Random

from tests.fuzz.corpus import keep
from tests.fuzz.probe import Case, Probe, Trouble
from tests.fuzz.schemas import Schemas
from tests.fuzz.values import Values

SHOWN_EACH_S = 30
HANGS_AFTER_S = 60
MOST_GROWTH = 128 << 20
"""Bytes by which the process may grow in the second half of the time."""


def drawn(seed: int, number: int) -> Case:
    """Draw a case."""
    chance = Random(f"{seed}:{number}")
    schema = Schemas(chance).tool()
    return Case(schema, Values(chance, schema).arguments())


def main() -> int:
    """Run for the time given, or one case."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--case", type=int, help="only this one, and nothing is kept")
    options = parser.parse_args()
    probe = Probe()
    if options.case is not None:
        case = drawn(options.seed, options.case)
        print(case.schema, str(case.given)[:2_000], probe.trouble(case), sep="\n")  # noqa: T201  # as below
        return 0
    with tempfile.NamedTemporaryFile("w", suffix=".fuzz") as progress:
        print(f"at which case it is stands in {progress.name}", flush=True)  # noqa: T201  # what the command is for
        found = _run(probe, options.seed, options.seconds, progress.fileno())
    probe.close()
    return 1 if found else 0


def _run(probe: Probe, seed: int, seconds: float, progress: int) -> int:
    begun = shown = time.monotonic()
    number = found = size = 0
    while (now := time.monotonic()) < begun + seconds:
        os.pwrite(progress, f"--seed {seed} --case {number:<12}\n".encode(), 0)
        faulthandler.dump_traceback_later(HANGS_AFTER_S, exit=True)
        case = drawn(seed, number)
        trouble = probe.trouble(case)
        if trouble is not None:
            found += 1
            _tell(seed, number, case, trouble)
        number += 1
        if not size and now - begun > seconds / 2:
            size = _peak()
        if now - shown > SHOWN_EACH_S:
            shown = now
            _say(number, found, probe, now - begun)
    faulthandler.cancel_dump_traceback_later()
    _say(number, found, probe, seconds)
    if size and _peak() - size > MOST_GROWTH:
        print(f"the process grew by {(_peak() - size) >> 20} MiB")  # noqa: T201  # as above
        found += 1
    return found


def _tell(seed: int, number: int, case: Case, trouble: Trouble) -> None:
    said = f"{trouble.kind} in {trouble.where}: {trouble.said}"
    path = keep(f"{trouble.kind}-{seed}-{number}", case, said)
    print(f"--seed {seed} --case {number}: {said}\n  kept in {path}", flush=True)  # noqa: T201  # as above


def _say(number: int, found: int, probe: Probe, seconds: float) -> None:
    print(  # noqa: T201  # as above
        f"{number} cases in {seconds:.0f} s, {found} found; slowest {probe.slowest_s * 1e3:.0f} ms;"
        f" {probe.refused_schemas} refusals of schemas; peak {_peak() >> 20} MiB",
        flush=True,
    )


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


if __name__ == "__main__":
    sys.exit(main())
