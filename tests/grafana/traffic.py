"""A process to be scraped: calls with failures of every kind, for as long as it is let run.

python tests/grafana/traffic.py        prints the port at which its metrics are
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import random
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from seawall import (
    Annotations,
    BreakerPolicy,
    Hook,
    LayerContext,
    Metrics,
    Pipeline,
    Policies,
    Registry,
    Risk,
    RunPolicy,
    Session,
    Tool,
)
from seawall.policy.build import LAYERS

READS = Annotations.for_reading()
CHANCE = random.Random(7)
TEXT = {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]}
ANY = {"type": "object"}


async def search(arguments: dict[str, Any], _: Any) -> str:
    await asyncio.sleep(CHANCE.lognormvariate(-4, 0.8))
    if CHANCE.random() < 0.1:
        raise ConnectionError("reset")
    return f"found {next(NUMBERS)}"


async def fetch(_: dict[str, Any], __: Any) -> str:
    await asyncio.sleep(CHANCE.lognormvariate(-3, 0.6))
    # Down for 9 of 30 seconds, so that the circuit opens, probes and closes.
    if time.monotonic() % 30 < 9:
        raise ConnectionError("no route")
    return f"page {next(NUMBERS)}"


async def slow(_: dict[str, Any], __: Any) -> str:
    await asyncio.sleep(0.6 if CHANCE.random() < 0.4 else 0.05)
    return "late"


def blocking(_: dict[str, Any], __: Any) -> str:
    time.sleep(2)
    return "at last"


async def deaf(_: dict[str, Any], __: Any) -> str:
    for __ in range(4):
        try:
            await asyncio.sleep(1)
        except asyncio.CancelledError:
            continue
    return "what?"


async def quick(_: dict[str, Any], __: Any) -> str:
    return f"done {next(NUMBERS)}"


async def same(_: dict[str, Any], __: Any) -> str:
    return "nothing new"


async def crowded(_: dict[str, Any], __: Any) -> str:
    await asyncio.sleep(0.2)
    return "in and out"


async def lies(_: dict[str, Any], __: Any) -> dict[str, Any]:
    return {"total": "many" if CHANCE.random() < 0.5 else 3}


NUMBERS = itertools.count()
TOOLS = [
    Tool("search", "Search.", TEXT, search, annotations=READS, family="web"),
    Tool("fetch", "Fetch a page.", ANY, fetch, annotations=READS, family="web"),
    Tool("slow_report", "Slow.", ANY, slow, annotations=READS, family="reports"),
    Tool("old_report", "Blocks a thread.", ANY, blocking, annotations=READS, family="reports"),
    Tool("deaf_report", "Never hears.", ANY, deaf, annotations=READS, family="reports"),
    Tool("delete_table", "Deletes.", ANY, quick, risk=Risk.HIGH),
    Tool("limited", "Rarely.", ANY, quick, annotations=READS),
    Tool("crowded", "One at a time.", ANY, crowded, annotations=READS),
    Tool("status", "Says the same.", ANY, same, annotations=READS),
    Tool("watched", "A hook fails.", ANY, quick, annotations=READS),
    Tool(
        "total",
        "Breaks its promise.",
        ANY,
        lies,
        annotations=READS,
        output_schema={"type": "object", "properties": {"total": {"type": "integer"}}},
    ),
]
BROKEN = Tool("broken_schema", "Cannot be used.", {"type": "no such type"}, quick)
POLICIES = Policies(
    default=RunPolicy(timeout_s=5, max_retries=1, base_delay_s=0.02, rate="6000/minute"),
    tools={
        "fetch": RunPolicy(
            timeout_s=2, breaker=BreakerPolicy(threshold=3, cooldown_s=1, max_cooldown_s=2)
        ),
        "slow_report": RunPolicy(timeout_s=0.3, max_retries=1, base_delay_s=0.02),
        "old_report": RunPolicy(timeout_s=0.2, max_threads=4),
        "deaf_report": RunPolicy(timeout_s=0.2, grace_s=0.1),
        "limited": RunPolicy(rate="30/minute"),
        "crowded": RunPolicy(max_concurrency=1),
        "total": RunPolicy(output="check"),
    },
)


class Faulty(Hook):
    """Raises at one tool, now and then."""

    def before(self, context: Any) -> None:
        if context.tool.name == "watched" and CHANCE.random() < 0.3:
            raise RuntimeError("no rule for this")


class StoreGone:
    """A layer that does without its store, and says so."""

    name = "rate_limit"

    def __init__(self, context: LayerContext) -> None:
        self._count = context.count

    @classmethod
    def for_tool(cls, context: LayerContext) -> StoreGone:
        return cls(context)

    async def __call__(self, call: Any, proceed: Any) -> Any:
        if CHANCE.random() < 0.05:
            self._count(self.name, "store_local")
        return await proceed(call)


def calls() -> list[tuple[str, Any, float]]:
    """What is called, and how often a second."""
    return [
        ("search", {"q": "seawall"}, 12),
        ("search", {}, 1),
        ("fetch", {}, 6),
        ("slow_report", {}, 2),
        ("old_report", {}, 0.5),
        ("deaf_report", {}, 0.5),
        ("delete_table", {}, 0.7),
        ("limited", {}, 1.2),
        ("crowded", {}, 3),
        ("watched", {}, 1),
        ("total", {}, 1),
        ("broken_schema", {}, 0.4),
        ("serch", {"q": "x"}, 0.6),
        ("make_me_a_sandwich_at_once", {}, 0.4),
    ]


async def often(pipeline: Pipeline, name: str, arguments: Any, per_s: float) -> None:
    running: set[asyncio.Task[Any]] = set()
    while True:
        await asyncio.sleep(CHANCE.expovariate(per_s))
        session = Session(caller=f"tenant-{CHANCE.randrange(50)}")
        task = asyncio.ensure_future(pipeline.call(name, arguments, session=session))
        running.add(task)
        task.add_done_callback(running.discard)


async def in_circles(pipeline: Pipeline) -> None:
    """A model that asks the same again and again, told and stopped."""
    while True:
        session = Session()
        for _ in range(8):
            await pipeline.call("status", {}, session=session)
        await asyncio.sleep(2)


async def losing(metrics: Metrics) -> None:
    while True:
        await asyncio.sleep(CHANCE.expovariate(0.2))
        metrics.audit_failed()


def backlog() -> tuple[int, float]:
    age = time.monotonic() % 40
    return 1 + int(age // 10), 60 + age


def served(metrics: Metrics) -> int:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body, content_type = metrics.exposition(self.headers.get("Accept", ""))
            self.send_response(200)
            self.send_header("Content-Type", content_type)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Scrapes are no news."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return int(server.server_address[1])


async def main() -> None:
    logging.getLogger("seawall").setLevel(logging.CRITICAL)
    registry = Registry(TOOLS)
    registry.register(BROKEN, on_invalid="quarantine")
    metrics = Metrics()
    metrics.watch_approvals(backlog)
    pipeline = Pipeline(
        registry, policies=POLICIES, layers=[*LAYERS, StoreGone], hooks=[Faulty()], metrics=metrics
    )
    sys.stdout.write(f"{served(metrics)}\n")
    sys.stdout.flush()
    async with pipeline:
        await asyncio.gather(
            in_circles(pipeline),
            losing(metrics),
            *(often(pipeline, *one) for one in calls()),
        )


if __name__ == "__main__":
    asyncio.run(main())
