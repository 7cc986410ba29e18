"""The names that `import seawall` gives are a promise, and loading them costs only what they need.

`public_names.txt` is the reviewed list. Whoever changes it changes what users may rely on.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import seawall

REVIEWED = Path(__file__).with_name("public_names.txt").read_text(encoding="utf-8").split()

FRAMEWORKS = {"aiohttp", "django", "fastapi", "flask", "starlette", "tornado", "uvicorn"}
AGENTS = {"agents", "fastmcp", "langchain_core", "langgraph", "pydantic_ai"}
CLIENTS = {"aiosqlite", "mcp", "redis", "sqlalchemy", "valkey"}
HEAVY = (
    FRAMEWORKS | AGENTS | CLIENTS | {"prometheus_client", "pydantic", "pybreaker", "rich", "typer"}
)

CALLS = """
import asyncio
import seawall

async def answer(arguments, context):
    if "fail" in arguments:
        raise ConnectionError("reset")
    return "ok"

hints = seawall.Annotations.for_reading()
pipeline = seawall.Pipeline(
    [seawall.Tool("answer", "Answers.", {"type": "object"}, answer, annotations=hints)]
)
assert asyncio.run(pipeline.call("answer", "{}")).text == "ok"
"""

FAILING = f"{CALLS}\nassert asyncio.run(pipeline.call('answer', {{'fail': 1}})).is_error\n"


WATCH = """
import sys

class Watch:
    asked = set()

    def find_spec(self, name, path=None, target=None):
        self.asked.add(name.partition(".")[0])

sys.meta_path.insert(0, Watch())
"""
"""Sees what is looked for, so that an import is noticed where nothing is installed too."""

TELL = """
import json
print(json.dumps(sorted(Watch.asked)))
"""


def loaded_by(code: str) -> set[str]:
    """Top-level modules that a new process looks for while it runs `code`."""
    done = subprocess.run(
        [sys.executable, "-I", "-c", WATCH + code + TELL],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_the_public_names_are_those_of_the_reviewed_list() -> None:
    assert seawall.__all__ == REVIEWED


def test_every_public_name_is_loaded_on_first_use_except_the_version() -> None:
    assert set(seawall._HOME_OF) | {"__version__"} == set(REVIEWED)
    assert sum(map(len, seawall._HOMES.values())) == len(seawall._HOME_OF)


@pytest.mark.parametrize("name", REVIEWED)
def test_a_public_name_leads_to_something(name: str) -> None:
    assert getattr(seawall, name) is not None
    assert name in dir(seawall)


def test_a_name_that_is_not_public_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Pipelin'"):
        _ = seawall.Pipelin


def test_importing_the_package_loads_nothing_heavy() -> None:
    assert loaded_by("import seawall") & HEAVY == set()


def test_a_call_loads_no_web_framework_and_no_client() -> None:
    # tenacity imports tornado where that is installed.
    assert loaded_by(CALLS) & (FRAMEWORKS | AGENTS | CLIENTS) <= {"tornado"}


def test_a_call_loads_no_metrics_and_no_command_line() -> None:
    assert loaded_by(CALLS) & {"prometheus_client", "pybreaker", "rich", "typer"} == set()


def test_only_a_circuit_may_bring_what_pybreaker_brings() -> None:
    # pybreaker imports them where they are installed, and we import it with the first failure.
    assert loaded_by(FAILING) & (FRAMEWORKS | CLIENTS) <= {"redis", "tornado"}
