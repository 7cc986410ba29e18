"""The shared cases whose server is on stdio, with the proxy before it."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tests.edges.mcp.proxy.conftest import Bare

CASES = Path(__file__).parents[3] / "cases" / "cases.json"

OUTCOMES = {None: "ok", "transport": "transport_error", "tool_failed": "tool_error"}


def cases() -> list[Any]:
    every = json.loads(CASES.read_text(encoding="utf-8"))
    return [case for case in every if case["kind"] in ("mcp-stdio", "progress")]


def policy_of(case: Any) -> str:
    given = case["given"].get("policy", {})
    names = {"max_total_s": "deadline_s"}
    rules = [f"{names.get(key, key)} = {value}" for key, value in given.items()]
    return "\n".join(['extends = "mcp-proxy"', '[tools."*"]', *rules])


class Run:
    """Plays a timeline, and keeps how each call ended and after how long."""

    def __init__(self, bare: Bare) -> None:
        self.bare = bare
        self.begun: dict[str, float] = {}
        self.ended: dict[str, float] = {}
        self.answers: dict[str, Any] = {}

    async def play(self, timeline: list[Any]) -> None:
        start = time.monotonic()
        for event in timeline:
            await asyncio.sleep(max(start + event["at"] - time.monotonic(), 0))
            await getattr(self, event["do"])(event)
        for name in self.begun:
            if name not in self.ended:
                self.answers[name] = await self.bare.answer(name)
                self.ended[name] = time.monotonic()

    async def raw_stdin(self, event: Any) -> None:
        await self.bare.send(event["text"].strip().encode())

    async def call(self, event: Any) -> None:
        name = event["as"]
        params = {"name": event["tool"], "arguments": event.get("args", {})}
        self.begun[name] = time.monotonic()
        await self.bare.send(
            {"jsonrpc": "2.0", "id": name, "method": "tools/call", "params": params}
        )

    async def client_cancelled(self, event: Any) -> None:
        name = event["target"]
        params = {"requestId": name}
        await self.bare.send(
            {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}
        )
        await self.bare.until_heard("notifications/cancelled")
        self.ended[name] = time.monotonic()

    def failure(self, name: str) -> Any:
        return self.answers[name]["result"].get("_meta", {}).get("seawall/failure", {})


@pytest.mark.parametrize("case", cases(), ids=lambda case: case["id"])
async def test_a_case_holds_through_the_proxy(
    start: Callable[..., Awaitable[Bare]], case: Any
) -> None:
    server, expect = case["given"]["mcp_stdio"], case["expect"]
    bare = await start(policy=policy_of(case), **server)
    await bare.ask("tools/list")  # the proxy is up
    run = Run(bare)

    await run.play(case["call"]["timeline"])

    for name, outcome in expect.get("outcomes", {}).items():
        assert OUTCOMES[run.failure(name).get("reason")] == outcome
    for name, expected in expect.get("may_have_run", {}).items():
        assert run.failure(name)["may_have_run"] is expected
    for name, most_s in expect.get("elapsed_max_s", {}).items():
        assert run.ended[name] - run.begun[name] <= most_s
    told = bare.heard("notifications/cancelled")
    for method, count in expect.get("wire_notifications", {}).items():
        assert len(await bare.until_heard(method, count)) == count
    if expect.get("cancelled_id_matches") or expect.get("inner_cancel_forwarded"):
        told = await bare.until_heard("notifications/cancelled")
        assert told[0]["params"]["requestId"] == bare.heard("tools/call")[0]["id"]
    if expect.get("request_has_progress_token"):
        assert bare.heard("tools/call")[0]["params"]["_meta"]["progressToken"]
