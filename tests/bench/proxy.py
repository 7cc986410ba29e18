"""Measure the proxy. `python -m tests.bench.proxy [--short] [--json FILE] [--check]`.

A call of a tool that adds two numbers, by the official client: directly and through the proxy, in
turns, so that whatever else the machine does meets both. Given is the ratio of medians, for one
call after the other and for 50 at once. Where others use the machine, the proxy has no core of its
own, and the ratio goes towards that of processor time, which is told too: of the client, the proxy
and the server together, and the same whatever else the machine does.

`--check` fails if both are beyond their bounds, in three runs out of three.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import statistics
import sys
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from tests.edges.mcp.proxy.conftest import SEAWALL, SERVERS, Served

if TYPE_CHECKING:
    from collections.abc import Mapping

BOUNDS = {
    ("stdio", "one by one"): (1.5, 1.8),
    ("stdio", "50 at once"): (1.5, 1.8),
    ("http", "one by one"): (2.0, 1.8),
    ("http", "50 at once"): (1.5, 1.8),
}
"""Of the ratio of times, and of that of processor times."""
SERVER = [sys.executable, str(SERVERS / "everything.py")]


def over_stdio(*, proxied: bool) -> Any:
    command = [*([*SEAWALL, "--"] if proxied else []), *SERVER, "stdio"]
    return stdio_client(StdioServerParameters(command=command[0], args=command[1:]))


def over_http(port: int) -> Any:
    return streamable_http_client(f"http://127.0.0.1:{port}/mcp")


async def add(client: Client, number: int) -> None:
    answer = await client.call_tool("add", {"a": number, "b": 1})
    assert not answer.is_error, answer


async def sequential(client: Client) -> list[float]:
    times = []
    for number in range(25):
        begun = time.perf_counter()
        await add(client, number)
        times.append(time.perf_counter() - begun)
    return times


async def together(client: Client) -> list[float]:
    begun = time.perf_counter()
    await asyncio.gather(*(add(client, number) for number in range(50)))
    return [time.perf_counter() - begun]


def cpu_s(process: int) -> float:
    """Processor time of a process and of all that it has started, as far as it still runs."""
    threads = list(Path(f"/proc/{process}/task").iterdir())
    own = sum(int((one / "schedstat").read_text().split()[0]) for one in threads)
    children = " ".join((one / "children").read_text() for one in threads).split()
    return own / 1e9 + sum(cpu_s(int(child)) for child in children)


WORKS = {"one by one": sequential, "50 at once": together}


class Took:
    """What one way took, of one kind of work."""

    def __init__(self) -> None:
        self.times: list[float] = []
        self.cpu_s = 0.0

    @property
    def ms(self) -> float:
        """The median."""
        return statistics.median(self.times) * 1000

    async def more(self, work: Any, client: Client) -> None:
        """Work once more."""
        before = cpu_s(os.getpid())
        self.times += await work(client)
        self.cpu_s += cpu_s(os.getpid()) - before


async def compared(
    clients: Mapping[str, Any], mode: Any, rounds: int
) -> dict[str, dict[str, float]]:
    """What direct and proxied calls took, by work."""
    took = {work: {name: Took() for name in clients} for work in WORKS}
    async with contextlib.AsyncExitStack() as stack:
        opened = {
            name: await stack.enter_async_context(Client(transport, mode=mode))
            for name, transport in clients.items()
        }
        for client in opened.values():
            await sequential(client)  # the first calls list tools and open connections
        for number in range(rounds):
            for work, run in WORKS.items():
                for name in sorted(opened, reverse=bool(number % 2)):
                    await took[work][name].more(run, opened[name])
    return {work: _row(ways["direct"], ways["proxied"]) for work, ways in took.items()}


def _row(direct: Took, proxied: Took) -> dict[str, float]:
    return {
        "direct": direct.ms,
        "proxied": proxied.ms,
        "ratio": proxied.ms / direct.ms,
        "cpu_ratio": proxied.cpu_s / direct.cpu_s,
    }


async def measured(rounds: int) -> list[dict[str, Any]]:
    served = Served()
    direct = await asyncio.to_thread(served.everything)
    proxy = await asyncio.to_thread(served.before, direct)
    rows = []
    try:
        for revision, mode in (("2026-07-28", "auto"), ("2025-11-25", "legacy")):
            for transport in ("stdio", "http"):
                clients = {
                    "direct": over_stdio(proxied=False)
                    if transport == "stdio"
                    else over_http(direct),
                    "proxied": over_stdio(proxied=True)
                    if transport == "stdio"
                    else over_http(proxy),
                }
                for work, found in (await compared(clients, mode, rounds)).items():
                    bound, cpu_bound = BOUNDS[transport, work]
                    rows.append(
                        {"transport": transport, "revision": revision, "work": work, **found,
                         "bound": bound, "cpu_bound": cpu_bound}
                    )  # fmt: skip
    finally:
        await asyncio.to_thread(served.close)
    return rows


def shown(rows: list[dict[str, Any]]) -> str:
    lines = ["transport  revision    work          direct ms  proxied ms  ratio  bound  cpu  bound"]
    lines += [
        f"{r['transport']:9}  {r['revision']}  {r['work']:12}"
        f"  {r['direct']:9.2f}  {r['proxied']:10.2f}  {r['ratio']:5.2f}  {r['bound']:5.2f}"
        f"  {r['cpu_ratio']:4.2f}  {r['cpu_bound']:5.2f}"
        for r in rows
    ]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--short", action="store_true", help="fewer rounds")
    parser.add_argument("--json", type=Path, help="write the rows there too")
    parser.add_argument("--check", action="store_true", help="fail beyond the bounds")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    over: set[tuple[str, str, str]] | None = None
    for _ in range(3 if options.check else 1):
        rows = asyncio.run(measured(12 if options.short else 48))
        sys.stdout.write(shown(rows) + "\n")
        if options.json:
            options.json.write_text(json.dumps(rows), encoding="utf-8")
        now = {
            (r["transport"], r["revision"], r["work"])
            for r in rows
            if r["ratio"] > r["bound"] and r["cpu_ratio"] > r["cpu_bound"]
        }
        over = now if over is None else over & now
        if not over:
            break
    return 1 if options.check and over else 0


if __name__ == "__main__":
    raise SystemExit(main())
