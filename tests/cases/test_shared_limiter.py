"""Reported cases of limiters in Redis, played with real servers."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.redis_servers import KINDS, Server, running, until_up

from seawall import Pipeline, Policies, RunPolicy, Session, Shared
from seawall.testing import scripted

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

Case = dict[str, Any]

CASES: dict[str, Case] = {
    case["id"]: case
    for case in json.loads((Path(__file__).parent / "cases.json").read_text("utf-8"))
    if case["given"].get("policy", {}).get("limiter", {}).get("backend") == "redis"
}
OUTCOMES = {"ok": None}


class World:
    """A pipeline whose limiter is in Redis, as a case gives it."""

    def __init__(self, case: Case, server: Server, shared: Shared) -> None:
        limiter = case["given"]["policy"]["limiter"]
        capacity = limiter.get("capacity", 5)
        period_s = round(capacity / limiter.get("refill_per_s", 0.001))
        policy = RunPolicy(
            rate=f"{capacity} per {period_s} seconds",
            rate_key=("tool", "session"),
            on_store_down="fail-closed" if limiter.get("on_error") == "closed" else "fail-open",
        )
        self.pipeline = Pipeline(
            [scripted("done", name="t")], policies=Policies(policy), shared=shared
        )
        self.server = server
        self.case = case
        self.outcomes: dict[str, str | None] = {}
        self.granted: dict[str, int] = {}
        self.keys_without_ttl: int | None = None

    async def play(self) -> None:
        at = 0.0
        for event in self.case["call"]["timeline"]:
            await asyncio.sleep(event["at"] - at)
            at = event["at"]
            await getattr(self, f"do_{event['do']}")(event)

    async def _call(self, key: str = "k") -> Any:
        return await self.pipeline.call("t", session=Session(key))

    async def do_call(self, event: dict[str, Any]) -> None:
        failure = (await self._call()).failure
        self.outcomes[event["as"]] = failure.reason if failure else None

    async def do_acquire_many(self, event: dict[str, Any]) -> None:
        results = [await self._call() for _ in range(event["count"])]
        self.granted[event["as"]] = sum(not result.is_error for result in results)

    async def do_acquire(self, event: dict[str, Any]) -> None:
        await self.do_acquire_many({**event, "count": 1})

    async def do_acquire_keys(self, event: dict[str, Any]) -> None:
        for number in range(event["distinct"]):
            await self._call(str(number))

    async def do_inspect_store(self, event: dict[str, Any]) -> None:
        client = self.server.client
        found = client.keys("*")
        assert len(found) > 1
        self.keys_without_ttl = sum(client.ttl(key) == -1 for key in found)

    async def do_store_down(self, event: dict[str, Any]) -> None:
        self.server.stop()

    async def do_script_flush(self, event: dict[str, Any]) -> None:
        self.server.client.script_flush()

    def errors(self) -> int:
        text = self.pipeline.metrics.text().decode()
        lines = [line for line in text.splitlines() if 'event="store_local"' in line]
        return int(sum(float(line.split()[-1]) for line in lines))


@pytest.fixture(params=KINDS)
async def place(request: pytest.FixtureRequest) -> AsyncIterator[tuple[Server, Shared]]:
    with running(request.param) as server:
        async with Shared(server.url, timeout_s=2) as shared:
            await until_up(shared)
            yield server, shared


def test_no_case_is_left_out() -> None:
    assert set(CASES) == {
        "limiter-keys-04",
        "limiter-backend-01",
        "limiter-backend-04",
        "limiter-backend-05",
    }


@pytest.mark.parametrize("name", CASES)
async def test_a_reported_case_holds(name: str, place: tuple[Server, Shared]) -> None:
    server, shared = place
    case = CASES[name]
    world = World(case, server, shared)
    if case["given"].get("store") == "down":
        server.stop()

    async with world.pipeline:
        await world.play()

    expect = dict(case["expect"])
    expect.pop("no_exception", None)  # one would have ended the test
    for label, outcome in expect.pop("outcomes", {}).items():
        assert world.outcomes[label] == OUTCOMES[outcome]
    for label, tokens in expect.pop("granted", {}).items():
        assert world.granted[label] == tokens
    for label, tokens in expect.pop("granted_max", {}).items():
        assert world.granted[label] <= tokens
    for label, tokens in expect.pop("preferred", {}).items():
        assert world.granted[label] == tokens
    for metric, wanted in expect.pop("metric", {}).items():
        assert metric == "limiter_backend_errors_total"
        assert world.errors() == wanted["value"]
    if "keys_without_ttl" in expect:
        assert world.keys_without_ttl == expect.pop("keys_without_ttl")
    assert not expect, "a word that nobody knows"
