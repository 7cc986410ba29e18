"""Compare the gateway with a bare endpoint. `python -m tests.bench.gateway [--short] [--long]`.

Both are served by uvicorn with the same settings, each in a process of its own, and asked in turn
by `wrk` (Debian's package), so that a slow minute of the machine meets both. The bare endpoint is
Starlette's, reads the JSON body and sends it back. `ratio` is that of requests per second; where
others use the machine it says little, so `cpu_ratio` is told too, that of requests per second of
processor time, which is the same where a server has a core of its own. `--check` fails if both are
below the bound. `--long` instead holds 1,000 connections for 60 s and reports errors and memory.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import uvicorn
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

from seawall import Annotations, Pipeline, Policies, RunPolicy, Tool
from seawall.edges.gateway.app import Gateway
from seawall.edges.gateway.serve import server_of
from seawall.edges.gateway.settings import GatewaySettings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from starlette.requests import Request

BOUND = 0.7
BODY = {"tool": "echo", "arguments": {"text": "some words", "times": 2}}
_SCRIPT = """
wrk.method = "POST"
wrk.body = '%s'
wrk.headers["Content-Type"] = "application/json"
done = function(summary)
  local e = summary.errors
  io.write(string.format("errors %%d\\n", e.connect + e.read + e.write + e.status + e.timeout))
end
"""


async def _echo(request: Request) -> JSONResponse:
    return JSONResponse(await request.json())


def _bare() -> uvicorn.Server:
    app = Starlette(routes=[Route("/tools/call", _echo, methods=["POST"])])
    config = uvicorn.Config(
        app,
        port=0,
        access_log=False,
        log_level="warning",
        server_header=False,
        proxy_headers=False,
        ws="none",
        http="httptools",  # the gateway's own is made over it
    )
    return uvicorn.Server(config)


async def _answer(arguments: dict[str, Any], _: Any) -> str:
    return str(arguments["text"])


def _gateway() -> uvicorn.Server:
    schema = {
        "type": "object",
        "properties": {"text": {"type": "string"}, "times": {"type": "integer"}},
        "required": ["text"],
    }
    tool = Tool("echo", "Echo.", schema, _answer, annotations=Annotations.for_reading())
    policies = Policies(default=RunPolicy(timeout_s=30, max_retries=1, rate="1000000000/minute"))
    return server_of(Gateway(Pipeline([tool], policies=policies), GatewaySettings(port=0)))


def _serve(kind: str) -> None:
    server = _gateway() if kind == "gateway" else _bare()

    async def run() -> None:
        serving = asyncio.ensure_future(server.serve())
        while not server.started:  # noqa: ASYNC110  # uvicorn tells it by nothing else
            await asyncio.sleep(0.01)
        port = server.servers[0].sockets[0].getsockname()[1]
        print(port, flush=True)  # noqa: T201  # read by the process that started this one
        await serving

    asyncio.run(run())


@contextmanager
def _started(kind: str) -> Iterator[tuple[str, int]]:
    command = [sys.executable, "-m", "tests.bench.gateway", "--serve", kind]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}/tools/call", process.pid
        finally:
            process.terminate()


class Load(NamedTuple):
    """What a server did under a load."""

    per_s: float
    errors: int
    cpu_us: float
    """Processor time of a request."""


def _load(server: tuple[str, int], script: Path, seconds: float, connections: int) -> Load:
    url, process = server
    before = _cpu_s(process)
    ran = subprocess.run(
        ["wrk", "-t1", f"-c{connections}", f"-d{seconds:g}s", "-s", str(script), url],
        capture_output=True,
        text=True,
        check=True,
    )
    used_s = _cpu_s(process) - before
    rate = re.search(r"Requests/sec:\s+([\d.]+)", ran.stdout)
    count = re.search(r"(\d+) requests in", ran.stdout)
    errors = re.search(r"errors (\d+)", ran.stdout)
    assert rate is not None, ran.stdout
    assert count is not None, ran.stdout
    assert errors is not None, ran.stdout
    return Load(float(rate[1]), int(errors[1]), used_s / max(int(count[1]), 1) * 1e6)


def _cpu_s(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _resident_mib(process: int) -> float:
    status = Path(f"/proc/{process}/status").read_text()
    found = re.search(r"VmRSS:\s+(\d+)", status)
    assert found is not None
    return int(found[1]) / 1024


def compared(rounds: int, seconds: float, script: Path) -> dict[str, Any]:
    """Ask both in turn; the ratio is that of pairs of neighbours."""
    with ExitStack() as stack:
        bare, gateway = (stack.enter_context(_started(kind)) for kind in ("bare", "gateway"))
        for server in (bare, gateway):
            _load(server, script, 1, 32)
        pairs = []
        for number in range(rounds):
            first, second = (bare, gateway) if number % 2 else (gateway, bare)
            found = {server: _load(server, script, seconds, 32) for server in (first, second)}
            pairs.append((found[bare], found[gateway]))
    ratios = [ours.per_s / theirs.per_s for theirs, ours in pairs]
    return {
        "ratio": statistics.median(ratios),
        "min": min(ratios),
        "max": max(ratios),
        "cpu_ratio": statistics.median(theirs.cpu_us / ours.cpu_us for theirs, ours in pairs),
        "bare_per_s": statistics.median(theirs.per_s for theirs, _ in pairs),
        "gateway_per_s": statistics.median(ours.per_s for _, ours in pairs),
        "bare_cpu_us": statistics.median(theirs.cpu_us for theirs, _ in pairs),
        "gateway_cpu_us": statistics.median(ours.cpu_us for _, ours in pairs),
        "errors": sum(ours.errors for _, ours in pairs),
    }


def held(seconds: float, connections: int, script: Path) -> dict[str, Any]:
    """Hold many connections to the gateway; memory at the beginning and at the end."""
    with _started("gateway") as server:
        _load(server, script, 5, connections)
        before = _resident_mib(server[1])
        found = _load(server, script, seconds, connections)
        after = _resident_mib(server[1])
    return {
        "per_s": found.per_s,
        "errors": found.errors,
        "mib_before": before,
        "mib_after": after,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--serve", choices=("bare", "gateway"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        _serve(given.serve)
        return 0
    if shutil.which("wrk") is None:
        print("this needs wrk: apt-get install wrk", file=sys.stderr)  # noqa: T201  # a command
        return 2
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "call.lua"
        script.write_text(_SCRIPT % json.dumps(BODY))
        if given.long:
            found = held(60, 1_000, script)
        else:
            found = compared(5 if given.short else 11, 2 if given.short else 4, script)
    print(json.dumps(found))  # noqa: T201  # a command
    reached = max(found.get("ratio", 1), found.get("cpu_ratio", 1))
    return int(given.check and (found["errors"] > 0 or reached < BOUND))


if __name__ == "__main__":
    sys.exit(main())
