"""A call that fails once and is retried at once, against bare tenacity."""

from __future__ import annotations

import logging
from typing import Any

import tenacity
from tests.bench.chain import calling
from tests.bench.measure import Pair
from tests.bench.tools import FLAT_GIVEN, a_tool

from seawall import BreakerPolicy, Pipeline, Policies, RunPolicy

POLICY = RunPolicy(timeout_s=30, max_retries=1, rate="1000000000/minute", breaker=BreakerPolicy())


class EveryOther:
    """A tool of which every other attempt fails."""

    def __init__(self) -> None:
        self._odd = False

    async def __call__(self, arguments: dict[str, Any], context: Any) -> str:
        self._odd = not self._odd
        if self._odd:
            raise ConnectionError("reset")
        return "ok"


async def pairs() -> list[Pair]:
    logging.getLogger("seawall").setLevel(logging.CRITICAL)
    flaky = a_tool("flaky", executor=EveryOther())
    pipeline = Pipeline([flaky], policies=Policies(default=POLICY))
    result = await pipeline.call("flaky", FLAT_GIVEN)
    assert (result.text, result.attempts) == ("ok", 2)

    attempt = EveryOther()

    @tenacity.retry(
        stop=tenacity.stop_after_attempt(2),
        wait=tenacity.wait_none(),
        retry=tenacity.retry_if_exception_type(ConnectionError),
        reraise=True,
    )
    async def retried(arguments: dict[str, Any]) -> str:
        return await attempt(arguments, None)

    async def bare(times: int) -> None:
        for _ in range(times):
            await retried(FLAT_GIVEN)

    return [
        Pair(
            "full chain, one retry without a wait",
            calling(pipeline, "flaky"),
            "tenacity alone",
            bare,
            0.5,
            ("tenacity",),
        )
    ]
