"""What sharing costs: decisions of the shared limiter against a bare EVALSHA loop.

`python -m tests.bench.shared [--check]`; both run interleaved on one server. `--check` fails below
a ratio of 0.7, as long as that is so in three runs out of three.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import time
from typing import TYPE_CHECKING, Any

import redis.asyncio
from tests.redis_servers import running, until_up

from seawall import Shared
from seawall.stores.redis_buckets import _SCRIPT

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

LEAST = 0.7
ROUNDS = 15
AT_A_TIME = 200
CAPACITY, PERIOD_S = 1_000_000_000, 60


async def timed(work: Callable[[], Awaitable[Any]]) -> float:
    begun = time.perf_counter()
    for _ in range(AT_A_TIME):
        await work()
    return (time.perf_counter() - begun) / AT_A_TIME


async def measured(url: str, port: int) -> tuple[float, float, float]:
    """Give µs for a bare call and for a decision, and the median of the paired rates."""
    client = redis.asyncio.Redis(port=port, protocol=2)
    sha = await client.script_load(_SCRIPT)
    arguments = (CAPACITY, PERIOD_S * 1_000_000, 1)

    async def bare() -> Any:
        return await client.evalsha(sha, 1, "bare", *arguments)

    async with Shared(url, timeout_s=5) as shared:
        await until_up(shared)

        async def decided() -> Any:
            taken = await shared.buckets.take("ours", CAPACITY, PERIOD_S, 1)
            assert taken is not None
            assert taken.granted

        await timed(bare)
        await timed(decided)
        pairs = [(await timed(bare), await timed(decided)) for _ in range(ROUNDS)]
    await client.aclose()
    return (
        statistics.median(one for one, _ in pairs) * 1e6,
        statistics.median(two for _, two in pairs) * 1e6,
        statistics.median(one / two for one, two in pairs),
    )


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.shared")
    parser.add_argument("--check", action="store_true", help=f"fail below a ratio of {LEAST}")
    given = parser.parse_args()
    ratio = 0.0
    with running() as server:
        for _ in range(3):
            bare_us, ours_us, ratio = asyncio.run(measured(server.url, server.port))
            sys.stdout.write(
                f"bare EVALSHA {bare_us:.0f} µs, decision {ours_us:.0f} µs, rate {ratio:.2f}\n"
            )
            if ratio >= LEAST:
                break
    return int(given.check and ratio < LEAST)


if __name__ == "__main__":
    sys.exit(main())
