"""The stack that one composes by hand, each library used as its own documentation shows it.

tenacity retries, pybreaker breaks the circuit, limits counts, pydantic checks, prometheus-client
measures, `asyncio.timeout` ends what takes too long.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

import limits
import limits.aio
import pybreaker
import tenacity
from limits.aio.strategies import MovingWindowRateLimiter
from prometheus_client import CollectorRegistry, Counter, Histogram
from pydantic import BaseModel

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

PACKAGES = ("tenacity", "pybreaker", "limits", "pydantic", "prometheus-client")
TRANSIENT = (ConnectionError, TimeoutError)
MANY = 1_000_000_000
"""A rate that refuses nothing."""


class Added(BaseModel):
    """The arguments of the tool."""

    a: int
    b: int


class ByHand:
    """One tool behind the stack; arguments come as a mapping or as JSON text."""

    def __init__(self, tool: Callable[..., Awaitable[Any]], name: str) -> None:
        metrics = CollectorRegistry()
        self._name = name
        self._calls = Counter("calls", "Calls", ["tool", "outcome"], registry=metrics)
        self._seconds = Histogram("seconds", "Latency", ["tool"], registry=metrics)
        self._storage: Any = limits.aio.storage.MemoryStorage()
        self._limiter = MovingWindowRateLimiter(self._storage)
        self._rate = limits.parse(f"{MANY}/second")
        breaker = pybreaker.CircuitBreaker(fail_max=5, reset_timeout=30)

        @tenacity.retry(
            stop=tenacity.stop_after_attempt(3),
            wait=tenacity.wait_random_exponential(multiplier=0.1, max=2),
            retry=tenacity.retry_if_exception_type(TRANSIENT),
            reraise=True,
        )
        async def attempt(arguments: Added) -> Any:
            with breaker.calling():
                async with asyncio.timeout(30):
                    return await tool(**arguments.model_dump())

        self._attempt = attempt

    async def __call__(self, given: dict[str, Any] | str) -> Any:
        """Make one call."""
        begun, outcome = time.perf_counter(), "error"
        try:
            arguments = (
                Added.model_validate_json(given)
                if isinstance(given, str)
                else Added.model_validate(given)
            )
            if not await self._limiter.hit(self._rate, "tool", self._name):
                raise RuntimeError("too many calls")
            result = await self._attempt(arguments)
            outcome = "ok"
            return result
        finally:
            self._calls.labels(tool=self._name, outcome=outcome).inc()
            self._seconds.labels(tool=self._name).observe(time.perf_counter() - begun)

    def forget(self) -> None:
        """Empty the window, whose cost grows with what it holds."""
        self._storage.storage.clear()
        self._storage.events.clear()
        self._storage.expirations.clear()
