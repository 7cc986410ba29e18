"""Compare the gateway with a bare endpoint. `python -m tests.bench.gateway [--short] [--long]`.

Both are served by uvicorn with the same settings, each in a process of its own, and asked in turn
by `wrk` (Debian's package), so that a slow minute of the machine meets both. The bare endpoint is
Starlette's, reads the JSON body and sends it back. `--long` instead holds 1,000 connections for
60 s and reports errors and memory.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

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


def _load(url: str, script: Path, seconds: float, connections: int) -> tuple[float, int]:
    """Requests per second, and errors."""
    ran = subprocess.run(
        ["wrk", "-t1", f"-c{connections}", f"-d{seconds:g}s", "-s", str(script), url],
        capture_output=True,
        text=True,
        check=True,
    )
    rate = re.search(r"Requests/sec:\s+([\d.]+)", ran.stdout)
    errors = re.search(r"errors (\d+)", ran.stdout)
    assert rate is not None, ran.stdout
    assert errors is not None, ran.stdout
    return float(rate[1]), int(errors[1])


def _resident_mib(process: int) -> float:
    status = Path(f"/proc/{process}/status").read_text()
    found = re.search(r"VmRSS:\s+(\d+)", status)
    assert found is not None
    return int(found[1]) / 1024


def compared(rounds: int, seconds: float, script: Path) -> dict[str, Any]:
    """Ask both in turn; the ratio is that of pairs of neighbours."""
    with ExitStack() as stack:
        (bare, _), (gateway, _) = (
            stack.enter_context(_started(kind)) for kind in ("bare", "gateway")
        )
        for url in (bare, gateway):
            _load(url, script, 1, 32)
        pairs = []
        for number in range(rounds):
            first, second = (bare, gateway) if number % 2 else (gateway, bare)
            found = {url: _load(url, script, seconds, 32) for url in (first, second)}
            pairs.append((found[bare][0], found[gateway][0], found[gateway][1]))
    ratios = [ours / theirs for theirs, ours, _ in pairs]
    return {
        "ratio": statistics.median(ratios),
        "min": min(ratios),
        "max": max(ratios),
        "bare_per_s": statistics.median(pair[0] for pair in pairs),
        "gateway_per_s": statistics.median(pair[1] for pair in pairs),
        "errors": sum(pair[2] for pair in pairs),
    }


def held(seconds: float, connections: int, script: Path) -> dict[str, Any]:
    """Hold many connections to the gateway; memory at the beginning and at the end."""
    with _started("gateway") as (url, process):
        _load(url, script, 5, connections)
        before = _resident_mib(process)
        rate, errors = _load(url, script, seconds, connections)
        after = _resident_mib(process)
    return {"per_s": rate, "errors": errors, "mib_before": before, "mib_after": after}


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
    return int(given.check and (found["errors"] > 0 or found.get("ratio", 1) < BOUND))


if __name__ == "__main__":
    sys.exit(main())
