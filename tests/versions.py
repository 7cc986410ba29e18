# ruff: noqa: T201  # prints what it finds
"""Run tests on other versions of Python: `python -m tests.versions INTERPRETER… [--tests …]`.

Each interpreter gets an environment of its own, into which what the tests need is installed. The
tests are those of every folder but the edges, whose servers and browsers are no other there; with
`--tests .` all.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

TESTS = Path(__file__).parent
FOLDERS = (
    *("contract", "pipeline", "layers", "registry", "recording", "stores"),
    *("policy", "orchestration", "testing", "surface", "toolkit", "composition"),
)


def main() -> int:
    """Test on each interpreter; 1 if any fails."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("interpreter", nargs="+", help="such as python3.13")
    parser.add_argument("--tests", nargs="+", default=FOLDERS, help="files and folders of tests")
    given = parser.parse_args()
    failed = [one for one in given.interpreter if not passes(one, given.tests)]
    if failed:
        print(f"failed on {', '.join(failed)}")
    return 1 if failed else 0


def passes(interpreter: str, tests: Sequence[str]) -> bool:
    """Whether the tests pass on an interpreter; what they say goes to this process's output."""
    with tempfile.TemporaryDirectory() as folder:
        python = str(Path(folder) / "bin" / "python")
        found = [str(TESTS / one) for one in tests]
        steps = [
            [interpreter, "-m", "venv", folder],
            [python, "-m", "pip", "install", "-q", "--no-compile", "-e", f"{TESTS.parent}[test]"],
            [python, "-m", "pytest", "-q", "-n", "2", "--dist", "worksteal", *found],
        ]
        print(f"-- {interpreter}", flush=True)
        return all(
            subprocess.run(one, cwd=TESTS.parent, check=False).returncode == 0 for one in steps
        )


if __name__ == "__main__":
    sys.exit(main())
