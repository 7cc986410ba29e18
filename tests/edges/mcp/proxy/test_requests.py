"""A client that cannot be asked: with a state its call waits there, and is approved elsewhere."""

from __future__ import annotations

import asyncio
import re
import sys
from typing import TYPE_CHECKING, Any

import pytest

from seawall import Annotations, ApprovalSettings, Pipeline, Session, Tool
from seawall.edges.mcp.proxy.requests import Requests

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from tests.edges.mcp.proxy.conftest import Bare

    Start = Callable[..., Awaitable[Bare]]

NAMED = ("--server-name", "scripted")
"""Each start is another command, as it writes down what it hears elsewhere."""

DESTRUCTIVE = {"t": {"annotations": {"destructiveHint": True}}}


@pytest.fixture(name="state")
def state_fixture(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/state.db"


def request_in(answer: Any) -> str:
    """The id of the request that the answer tells of."""
    found = re.search(r"the request is (\S+?)[\s.]", str(answer["result"]["content"][0]["text"]))
    assert found is not None, answer
    return found[1]


async def approvals(*arguments: str) -> str:
    command = [sys.executable, "-m", "seawall", "approvals", *arguments]
    process = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    told, _ = await process.communicate()
    assert process.returncode == 0, told.decode()
    return " ".join(told.decode().split())


async def opened(start: Start, state: str) -> Bare:
    bare = await start(declared=DESTRUCTIVE, options=("--state", state, *NAMED))
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


async def test_an_approval_for_one_server_lets_nothing_run_on_another(
    start: Start, state: str
) -> None:
    staging = await start(declared=DESTRUCTIVE, options=("--state", state))
    production = await start(declared=DESTRUCTIVE, options=("--state", state))
    for bare in (staging, production):
        await bare.open()
    request = request_in(await staging.call("t", {"path": "/etc"}))
    shown = await approvals("show", request, "--state", state)
    await approvals("approve", request, "--state", state)

    other = request_in(await production.call("t", {"path": "/etc"}))

    assert (str(staging.record) in shown, str(production.record) in shown) == (True, False)
    assert other != request
    assert production.heard("tools/call") == []
    await staging.call("t", {"path": "/etc"})
    assert len(staging.heard("tools/call")) == 1


async def test_the_same_command_is_the_same_server_after_a_restart(
    start: Start, state: str, tmp_path: Path
) -> None:
    where: Any = {"options": ("--state", state), "record": tmp_path / "heard"}
    first = await start(declared=DESTRUCTIVE, **where)
    await first.open()
    request = request_in(await first.call("t"))
    await first.end()
    await approvals("approve", request, "--state", state)

    later = await start(declared=DESTRUCTIVE, **where)
    await later.open()
    await later.call("t")

    assert len(later.heard("tools/call")) == 1


async def test_another_name_is_another_server(start: Start, state: str, tmp_path: Path) -> None:
    where: Any = {"record": tmp_path / "heard"}
    found = []
    for name in ("staging", "production", "staging"):
        options = ("--state", state, "--server-name", name)
        bare = await start(declared=DESTRUCTIVE, options=options, **where)
        await bare.open()
        found.append(request_in(await bare.call("t")))
        await bare.end()

    assert found[0] == found[2] != found[1]
    assert "server staging" in await approvals("show", found[0], "--state", state)


async def test_what_was_denied_does_not_run_and_may_be_asked_for_again(
    start: Start, state: str
) -> None:
    bare = await opened(start, state)
    request = request_in(await bare.call("t", {"path": "/etc"}))
    await approvals("deny", request, "no", "--state", state)

    assert request_in(await bare.call("t", {"path": "/etc"})) != request
    assert bare.heard("tools/call") == []


async def test_a_client_that_can_be_asked_is_asked_there(start: Start, state: str) -> None:
    bare = await start(declared=DESTRUCTIVE, options=("--state", state, *NAMED))
    await bare.open(elicitation={})
    params = {"name": "t", "arguments": {"path": "/etc"}}
    await bare.send({"jsonrpc": "2.0", "id": "c", "method": "tools/call", "params": params})

    asked = await bare.until(lambda m: m.get("method") == "elicitation/create")
    yes = {"action": "accept", "content": {"decision": "once"}}
    await bare.send({"jsonrpc": "2.0", "id": asked["id"], "result": yes})

    assert not (await bare.answer("c"))["result"].get("isError")


def said(answer: Any) -> tuple[str, str]:
    """Why a call was refused, and the text of it."""
    result = answer["result"]
    return result["_meta"]["seawall/failure"]["reason"], result["content"][0]["text"]


async def begun(start: Start, state: str) -> tuple[Bare, str]:
    """A proxy that runs an approved call now whose server does not answer."""
    bare = await start(
        {"t": "never_reply"}, declared=DESTRUCTIVE, options=("--state", state, *NAMED)
    )
    await bare.open()
    request = request_in(await bare.call("t", {"path": "/etc"}))
    await approvals("approve", request, "--state", state)
    params = {"name": "t", "arguments": {"path": "/etc"}}
    await bare.send({"jsonrpc": "2.0", "id": "cut", "method": "tools/call", "params": params})
    await bare.until_heard("tools/call")
    return bare, request


async def told_and_asked_anew(bare: Bare, state: str, request: str) -> None:
    reason, text = said(await bare.call("t", {"path": "/etc"}))
    assert (reason, request in text, "approved at 20" in text) == ("outcome_unknown", True, True)

    second = request_in(await bare.call("t", {"path": "/etc"}))
    assert second != request
    shown = await approvals("show", second, "--state", state)
    assert "ended unknown and may have taken effect" in shown
    assert request in shown


async def test_a_call_cut_off_with_its_proxy_is_told_before_it_is_asked_anew(
    start: Start, state: str
) -> None:
    bare, request = await begun(start, state)
    bare.process.kill()
    await bare.process.wait()

    later = await opened(start, state)

    await told_and_asked_anew(later, state, request)
    assert later.heard("tools/call") == []


async def test_a_call_that_its_client_gave_up_is_told_before_it_is_asked_anew(
    start: Start, state: str
) -> None:
    bare, request = await begun(start, state)
    gone = {"requestId": "cut", "reason": "enough"}
    await bare.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": gone})
    await bare.until_heard("notifications/cancelled")

    await told_and_asked_anew(bare, state, request)
    assert len(bare.heard("tools/call")) == 1


async def at_once(bare: Bare, count: int) -> list[Any]:
    """What answers the same call, made so often at once."""
    params = {"name": "t", "arguments": {"path": "/etc"}}
    for at in range(count):
        asks = {"jsonrpc": "2.0", "id": f"c{at}", "method": "tools/call", "params": params}
        await bare.send(asks)
    return [await bare.until(lambda m: str(m.get("id"))[:1] == "c") for _ in range(count)]


async def test_calls_made_at_once_have_one_request(start: Start, state: str) -> None:
    bare = await opened(start, state)

    answers = await at_once(bare, 4)

    assert len({request_in(answer) for answer in answers}) == 1


async def test_of_an_approved_call_made_at_once_one_runs_and_none_is_said_to_be_denied(
    start: Start, state: str
) -> None:
    bare = await start(
        {"t": "reply_at:0.5"}, declared=DESTRUCTIVE, options=("--state", state, *NAMED)
    )
    await bare.open()
    request = request_in(await bare.call("t", {"path": "/etc"}))
    await approvals("approve", request, "--state", state)

    answers = await at_once(bare, 4)

    refused = [said(answer) for answer in answers if answer["result"].get("isError")]
    assert [reason for reason, _ in refused] == ["approval_used"] * 3
    assert all(request in text for _, text in refused)
    assert len(bare.heard("tools/call")) == 1


async def test_without_a_state_calls_made_at_once_all_learn_how_to_be_allowed(start: Start) -> None:
    bare = await start(declared=DESTRUCTIVE)
    await bare.open()

    answers = [said(answer) for answer in await at_once(bare, 3)]

    assert [reason for reason, _ in answers] == ["approval_required"] * 3
    assert all("--client-asks" in text for _, text in answers)


async def test_what_was_told_when_it_happened_is_not_told_again_but_noted(
    start: Start, state: str
) -> None:
    tools = {"t": "kill_self_on_call"}
    bare = await start(tools, declared=DESTRUCTIVE, options=("--state", state, *NAMED))
    await bare.open()
    request = request_in(await bare.call("t", {"path": "/etc"}))
    await approvals("approve", request, "--state", state)
    assert said(await bare.call("t", {"path": "/etc"}))[0] == "transport"

    second = request_in(await bare.call("t", {"path": "/etc"}))

    assert request in await approvals("show", second, "--state", state)
    assert len(bare.heard("tools/call")) == 1


async def test_a_call_whose_request_was_one_too_many_is_told_of_the_one_that_is_kept() -> None:
    tool = Tool(
        name="t",
        description="A tool.",
        input_schema={"type": "object"},
        executor=lambda *_: None,
        annotations=Annotations.for_destroying(),
    )
    pipeline = Pipeline([tool], approvals=ApprovalSettings())
    surplus, kept = [await pipeline.call("t", {}, session=Session()) for _ in range(2)]
    ids = [str((one.metadata or {})["approval_id"]) for one in (surplus, kept)]
    await pipeline.approvals.supersede(*ids)
    nobody: Any = None  # nothing is run, so nobody is looked for

    told = await Requests(pipeline, {}).outcome(nobody, surplus)

    assert told.failure is not None
    assert told.failure.reason == "approval_required"
    assert (ids[0] in told.text, ids[1] in told.text) == (False, True)
    await pipeline.aclose()
