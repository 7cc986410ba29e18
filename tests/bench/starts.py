"""How long programs take to start, interpreter and all: many starts, interleaved."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

from tests.bench.measure import Case, Pair

PYDANTIC = """
from pydantic import BaseModel
import jsonschema_rs, prometheus_client

class Added(BaseModel):
    a: int
    b: int
"""
FIRST_CALL = """
import asyncio
from seawall import Pipeline, tool

@tool
async def add(a: int, b: int) -> int:
    "Add two numbers."
    return a + b

asyncio.run(Pipeline([add]).call("add", {"a": 1, "b": 2}))
"""


def starting(*command: str) -> Case:
    # Where nothing may be written beside the sources, each start would compile them anew.
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}

    async def run(times: int) -> None:
        for _ in range(times):
            subprocess.run(  # noqa: ASYNC221  # nothing else is to run meanwhile
                command, env=environment, stdout=subprocess.DEVNULL, check=True
            )

    return run


def script(source: str) -> Case:
    return starting(sys.executable, "-c", source)


def spent() -> float:
    """Seconds of the processor that programs that have ended took."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


async def pairs() -> list[Pair]:
    modelled = script(PYDANTIC)
    beside = "a model of pydantic, jsonschema_rs and prometheus_client"
    helped = starting(str(Path(sys.executable).parent / "seawall"), "--help")
    packages = ("pydantic", "jsonschema-rs", "prometheus-client")
    found = [
        Pair("`import seawall`", script("import seawall"), beside, modelled, 1.3, packages),
        Pair("import and a first call", script(FIRST_CALL), beside, modelled, None, packages),
        Pair(
            "`seawall --help`",
            helped,
            "`import pydantic`",
            script("import pydantic"),
            2.0,
            ("pydantic",),
        ),
    ]
    return [pair._replace(clock=spent) for pair in found]
