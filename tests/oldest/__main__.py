# ruff: noqa: T201  # prints what it finds
"""Run an adapter's tests on the oldest version it claims: `python -m tests.oldest [extra …]`.

Each framework gets an environment of its own, with the lower bounds of its extra as pins; they are
made at the same time, since they mostly wait for the registry. The tests of the newest versions are
those of the suite.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.oldest.pins import ROOT, TESTS, pins


def main(extras: list[str]) -> int:
    """Test the named extras, or all; the exit code is 1 if any fails."""
    unknown = sorted(set(extras) - set(TESTS))
    if unknown:
        print(f"no adapter for {', '.join(unknown)}; there are {', '.join(TESTS)}")
        return 2
    chosen = extras or list(TESTS)
    with ThreadPoolExecutor(len(chosen)) as threads:
        passed = list(threads.map(_passes, chosen))
    failed = [extra for extra, well in zip(chosen, passed, strict=True) if not well]
    if failed:
        print(f"failed on the oldest versions: {', '.join(failed)}")
    return 1 if failed else 0


def _passes(extra: str) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        python = str(Path(folder) / "bin" / "python")
        needs = [
            str(ROOT),
            "pytest>=8.4",
            "pytest-asyncio>=1.1",
            "pytest-timeout>=2.4",
            *pins(extra),
        ]
        tests = [str(ROOT / "tests" / one) for one in TESTS[extra]]
        steps = [
            [sys.executable, "-m", "venv", folder],
            [python, "-m", "pip", "install", "-q", "--no-compile", *needs],
            # Old versions warn of what newer ones changed; that is not ours to mend.
            [python, "-m", "pytest", "-q", "-o", "filterwarnings=ignore", *tests],
        ]
        for step in steps:
            done = subprocess.run(step, cwd=ROOT, check=False, capture_output=True, text=True)
            if done.returncode:
                print(f"-- {extra} ({', '.join(pins(extra))})\n{done.stdout}{done.stderr}")
                return False
    print(f"-- {extra} ({', '.join(pins(extra))}): {done.stdout.strip().splitlines()[-1]}")
    return True


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
