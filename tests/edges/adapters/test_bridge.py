"""What all bridges share, and what is said where a framework is missing."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import threading
from typing import Any

import pytest

from seawall.contract.content import TextContent
from seawall.contract.errors import ConfigurationError
from seawall.contract.result import ToolResult
from seawall.edges.adapters import _bridge
from seawall.edges.adapters._bridge import Bridge, Original, Sending, denied
from seawall.pipeline.session import Session

MISSING = """
import sys

class Without:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == {package!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Without())
import seawall
try:
    seawall.{function}([])
except seawall.ConfigurationError as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("function", "package", "extra"),
    [
        ("to_langchain", "langchain_core", "langchain"),
        ("to_pydantic_ai", "pydantic_ai", "pydantic-ai"),
        ("to_openai_agents", "agents", "openai-agents"),
        ("to_fastmcp", "fastmcp", "fastmcp"),
        ("to_mcp_server", "mcp", "mcp"),
    ],
)
def test_a_missing_framework_is_named_with_its_extra(
    function: str, package: str, extra: str
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", MISSING.format(package=package, function=function)],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )

    assert package in done.stdout
    assert f"pip install 'seawall[{extra}]'" in done.stdout


def echo(**_: Any) -> str:
    return ""


def test_a_conversation_keeps_its_session_and_calls_share_what_it_remembers() -> None:
    bridge = Bridge([echo])

    one, again, other = (bridge.session(name, None, {"run": name}) for name in "aab")

    assert one.permissions is again.permissions is not other.permissions
    assert (one.id, other.id) == ("a", "b")
    assert (one.services.get("run"), other.services.get("run")) == ("a", "b")


def test_threads_that_call_at_once_share_the_session_of_their_conversation() -> None:
    bridge = Bridge([echo])
    first = bridge.session("a", None, {}).permissions
    run = type("Run", (), {})()
    others: list[object] = []

    def look() -> None:
        for _ in range(20_000):
            permissions = bridge.session("a", None, {}).permissions
            if permissions is not first or bridge.run_of(run) != "run-1":
                others.append(permissions)
                return

    bridge.run_of(run)
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=look) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)

    assert others == []


def test_calls_of_no_conversation_share_nothing() -> None:
    bridge = Bridge([echo])

    assert bridge.session(None, None, {}).memory is not bridge.session(None, None, {}).memory


@pytest.mark.parametrize("how", ["session", "function"])
def test_a_session_that_is_given_is_taken(how: str) -> None:
    given = Session("own", caller="ann")
    bridge = Bridge([echo], session=given if how == "session" else lambda _: given)

    found = bridge.session("a", None, {})

    assert (found.id, found.caller) == ("own", "ann")
    assert found.permissions is given.permissions


def test_a_function_that_gives_no_session_leaves_it_to_the_conversation() -> None:
    assert Bridge([echo], session=lambda _: None).session("a", None, {}).id == "a"


def test_the_quietest_conversation_is_forgotten_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_bridge, "MAX_SESSIONS", 2)
    bridge = Bridge([echo])
    first = bridge.session("a", None, {}).permissions

    for name in "bab":
        bridge.session(name, None, {})
    bridge.session("c", None, {})

    assert bridge.session("b", None, {}).permissions is not first
    assert bridge.session("a", None, {}).permissions is not first


class Shared:
    pass


def test_a_run_has_one_name_as_long_as_it_lives(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_bridge, "MAX_SESSIONS", 2)
    bridge, run = Bridge([echo]), Shared()
    name = bridge.run_of(run)
    assert bridge.run_of(run) == name

    names = set()
    for _ in range(5):
        names.add(bridge.run_of(Shared()))
        gc.collect()

    assert len(names) == 5
    assert name not in names


async def test_progress_is_sent_in_order_and_a_failing_listener_harms_nobody() -> None:
    sent: list[str] = []

    async def send(_: Any, __: Any, text: str) -> None:
        if text == "b":
            raise ConnectionError("gone")
        sent.append(text)

    async with Sending(send) as sending:
        for text in "abc":
            sending(text, None, None)
        sending(ToolResult.of_text("d"), None, None)

    assert sent == ["a", "c", "d"]


async def test_of_progress_that_nobody_reads_in_time_the_last_is_kept() -> None:
    sent: list[float | None] = []

    async def send(done: float | None, *_: Any) -> None:
        sent.append(done)

    async with Sending(send) as sending:
        for done in range(100_000):
            sending("on", float(done), None)

    assert len(sent) == _bridge.MAX_WAITING
    assert sent[-1] == 99_999


async def test_a_cancelled_call_waits_for_no_listener() -> None:
    listening, left = asyncio.Event(), asyncio.Event()

    async def send(*_: Any) -> None:
        listening.set()
        try:
            await asyncio.Event().wait()
        finally:
            left.set()

    async def calling() -> None:
        async with Sending(send) as sending:
            sending("on", None, None)
            await asyncio.Event().wait()

    call = asyncio.ensure_future(calling())
    await listening.wait()
    call.cancel()

    with pytest.raises(asyncio.CancelledError):
        await call
    await asyncio.wait_for(left.wait(), 5)


async def test_a_listener_that_never_comes_back_is_left_when_the_call_is_cancelled() -> None:
    listening = asyncio.Event()

    async def send(*_: Any) -> None:
        listening.set()
        await asyncio.Event().wait()

    async def calling() -> None:
        async with Sending(send) as sending:
            sending("on", None, None)

    call = asyncio.ensure_future(calling())
    await listening.wait()
    call.cancel()

    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(call, 5)


def test_what_a_tool_gave_counts_while_the_result_says_it() -> None:
    content = (TextContent(text="a"),)
    original = Original("a", content)

    assert Original.of(ToolResult(content=content, details=original)) is original
    assert Original.of(ToolResult(content=(), details=original)) is None
    changed = ToolResult(content=content, structured_content=1, details=original)
    assert Original.of(changed) is None
    assert Original.of(ToolResult(content=content, details="a")) is None


def test_a_denial_says_that_nothing_was_run() -> None:
    result = denied("c1", "pay", "too much")

    assert result.render().startswith("Error: approval denied: pay was not run: a person denied")
    assert "too much" in result.render()
    assert result.failure is not None
    assert result.failure.may_have_run is False


def test_who_asks_is_one_of_two() -> None:
    with pytest.raises(ConfigurationError, match="must be 'pipeline' or 'framework'"):
        Bridge([echo], approvals="nobody")  # type: ignore[arg-type]  # what a user may write
