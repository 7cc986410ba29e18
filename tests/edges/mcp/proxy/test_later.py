"""A client that cannot be asked: with a state its call waits there, and is approved elsewhere."""

from __future__ import annotations

import asyncio
import re
import sys
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from tests.edges.mcp.proxy.conftest import Bare

    Start = Callable[..., Awaitable[Bare]]

DESTRUCTIVE = {"t": {"annotations": {"destructiveHint": True}}}


@pytest.fixture(name="state")
def state_fixture(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/state.db"


def request_in(answer: Any) -> str:
    """The id of the request that the answer tells of."""
    found = re.search(r"the request is (\S+?)[\s.]", str(answer["result"]["content"][0]["text"]))
    assert found is not None, answer
    return found[1]


async def approvals(*arguments: str) -> None:
    command = [sys.executable, "-m", "seawall", "approvals", *arguments]
    process = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    said, _ = await process.communicate()
    assert process.returncode == 0, said.decode()


async def opened(start: Start, state: str) -> Bare:
    bare = await start(declared=DESTRUCTIVE, options=("--state", state))
    await bare.open()
    return bare


async def test_what_was_approved_elsewhere_runs_once_when_the_client_calls_again(
    start: Start, state: str
) -> None:
    bare = await opened(start, state)
    first = request_in(await bare.call("t", {"path": "/etc"}))
    again = request_in(await bare.call("t", {"path": "/etc"}))
    other = request_in(await bare.call("t", {"path": "/home"}))
    assert (again == first, other == first) == (True, False)
    assert bare.heard("tools/call") == []

    await approvals("approve", first, "--state", state)
    ran = await bare.call("t", {"path": "/etc"})
    assert ran["result"]["content"][0]["text"] == '{"path": "/etc"}'
    assert not ran["result"].get("isError")
    assert len(bare.heard("tools/call")) == 1

    assert request_in(await bare.call("t", {"path": "/etc"})) != first
    assert len(bare.heard("tools/call")) == 1


async def test_a_request_outlives_the_proxy(start: Start, state: str) -> None:
    bare = await opened(start, state)
    request = request_in(await bare.call("t", {"path": "/etc"}))
    await bare.end()
    await approvals("approve", request, "--state", state)

    later = await opened(start, state)
    ran = await later.call("t", {"path": "/etc"})

    assert ran["result"]["content"][0]["text"] == '{"path": "/etc"}'


async def test_what_was_denied_does_not_run_and_may_be_asked_for_again(
    start: Start, state: str
) -> None:
    bare = await opened(start, state)
    request = request_in(await bare.call("t", {"path": "/etc"}))
    await approvals("deny", request, "no", "--state", state)

    assert request_in(await bare.call("t", {"path": "/etc"})) != request
    assert bare.heard("tools/call") == []


async def test_a_client_that_can_be_asked_is_asked_there(start: Start, state: str) -> None:
    bare = await start(declared=DESTRUCTIVE, options=("--state", state))
    await bare.open(elicitation={})
    params = {"name": "t", "arguments": {"path": "/etc"}}
    await bare.send({"jsonrpc": "2.0", "id": "c", "method": "tools/call", "params": params})

    asked = await bare.until(lambda m: m.get("method") == "elicitation/create")
    said = {"action": "accept", "content": {"decision": "once"}}
    await bare.send({"jsonrpc": "2.0", "id": asked["id"], "result": said})

    assert not (await bare.answer("c"))["result"].get("isError")
