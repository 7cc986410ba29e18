"""A client on standard streams, a server over HTTP."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest
from tests.edges.mcp.proxy.conftest import MODERN, SEAWALL, STATUSES, UNBROKEN, Bare

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path

    from tests.edges.mcp.proxy.conftest import Refusing, Served


@pytest.fixture
async def bridge(tmp_path: Path) -> AsyncIterator[Callable[..., Awaitable[Bare]]]:
    begun: list[Bare] = []

    async def run(port: int, *options: str) -> Bare:
        process = await asyncio.create_subprocess_exec(
            *SEAWALL, "--url", f"http://127.0.0.1:{port}/mcp", *options,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            limit=64 * 1024 * 1024,
        )  # fmt: skip
        begun.append(Bare(process, tmp_path / "none"))
        return begun[-1]

    yield run
    for bare in begun:
        if bare.process.returncode is None:
            bare.process.kill()
        await bare.process.wait()


def text_of(answer: Any) -> str:
    return str(answer["result"]["content"][0]["text"])


async def test_a_session_is_opened_and_all_that_it_has_passes(
    ports: dict[str, int], bridge: Callable[[int], Awaitable[Bare]]
) -> None:
    bare = await bridge(ports["direct"])

    opened = await bare.open(sampling={})
    listed = await bare.ask("resources/list")
    asked = await bare.call("what_can_the_client")
    await bare.call("test_tool_with_progress", _meta={"progressToken": "p"})

    assert opened["result"]["serverInfo"]["name"] == "everything"
    assert len(listed["result"]["resources"]) == 3
    assert json.loads(text_of(asked))["sampling"] == {}
    reported = [json.loads(line)["params"] for line in bare.lines if b"/progress" in line]
    assert [p["progress"] for p in reported] == [0, 50, 100]


async def test_what_the_server_asks_in_a_call_is_answered(
    ports: dict[str, int], bridge: Callable[[int], Awaitable[Bare]]
) -> None:
    bare = await bridge(ports["direct"])
    await bare.open(sampling={})

    params = {"name": "test_sampling", "arguments": {"prompt": "?"}}
    await bare.send({"jsonrpc": "2.0", "id": "c", "method": "tools/call", "params": params})
    asked = await bare.until(lambda m: m.get("method") == "sampling/createMessage")
    result = {"role": "assistant", "content": {"type": "text", "text": "yes"}, "model": "m"}
    await bare.send({"jsonrpc": "2.0", "id": asked["id"], "result": result})

    assert text_of(await bare.answer("c")) == "LLM response: yes"


async def test_a_stream_that_the_server_closes_is_resumed_for_the_client(
    ports: dict[str, int], bridge: Callable[[int], Awaitable[Bare]]
) -> None:
    bare = await bridge(ports["direct"])
    await bare.open()

    assert text_of(await bare.call("test_reconnection")) == "Reconnection test completed"


async def test_requests_without_a_session_have_the_headers_they_need(
    ports: dict[str, int], bridge: Callable[[int], Awaitable[Bare]]
) -> None:
    bare = await bridge(ports["direct"])

    called = await bare.call("add", {"a": "1", "b": 2}, _meta=MODERN)
    read = await bare.ask("resources/read", {"uri": "test://static-text", "_meta": MODERN})

    assert text_of(called) == "3"
    assert read["result"]["contents"][0]["uri"] == "test://static-text"


async def test_after_a_restart_of_the_server_the_session_is_opened_again(
    served: Served, bridge: Callable[[int], Awaitable[Bare]]
) -> None:
    port = await asyncio.to_thread(served.everything)
    bare = await bridge(port)
    await bare.open()
    await bare.ask("resources/subscribe", {"uri": "test://watched"})
    first = await bare.call("add", {"a": 1, "b": 1})

    await asyncio.to_thread(served.kill, port)
    away = await bare.ask("tools/list")
    await asyncio.to_thread(served.everything, port)
    second = await bare.call("add", {"a": 2, "b": 2})
    watched = await bare.call("was_subscribed")

    assert text_of(first) == "2"
    assert away["error"]["data"] == {"reason": "transport"}
    assert text_of(second) == "4"
    assert text_of(watched) == '["test://watched"]'


async def test_it_ends_when_its_input_does(
    ports: dict[str, int], bridge: Callable[[int], Awaitable[Bare]]
) -> None:
    bare = await bridge(ports["direct"])
    await bare.open()

    assert await bare.end() == 0


async def test_a_status_says_that_nothing_was_run_only_where_that_is_certain(
    refusing: Refusing, bridge: Callable[..., Awaitable[Bare]], tmp_path: Path
) -> None:
    file = tmp_path / "policy.toml"
    await asyncio.to_thread(file.write_text, UNBROKEN)
    bare = await bridge(refusing.port, "--policy", str(file))
    await bare.open()
    wrong = []

    for status, body, may_have_run in STATUSES:
        refusing.status, refusing.body = status, body
        failure = (await bare.call("pay"))["result"]["_meta"]["seawall/failure"]
        if failure.get("may_have_run", True) is not may_have_run:
            wrong.append((status, body, failure))

    assert wrong == []
    assert refusing.ran >= 5
