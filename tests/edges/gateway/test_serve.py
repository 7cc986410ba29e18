"""The command `seawall serve` as a process of its own."""

from __future__ import annotations

import os
import re
import signal
import socket
import stat
import subprocess
import sys
import textwrap
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from tests.waiting import waited

from seawall.edges.gateway.serve import bound
from seawall.edges.gateway.settings import GatewaySettings

if TYPE_CHECKING:
    from collections.abc import Iterator

TOOLS = textwrap.dedent(
    """
    import asyncio, pathlib
    from seawall import Annotations, tool

    @tool(annotations=Annotations.for_reading())
    async def slow(seconds: float) -> str:
        "Take a while, and leave a mark."
        pathlib.Path("begun").touch()
        await asyncio.sleep(seconds)
        return "done"

    registry = [slow]
    """
)


class Served:
    def __init__(self, process: subprocess.Popen[str], lines: list[str]) -> None:
        self.process = process
        self.lines = lines
        self.base = lines[0].split()[-1]


@contextmanager
def serving(folder: Path, *options: str, **environment: str) -> Iterator[Served]:
    (folder / "shop.py").write_text(TOOLS)
    command = [sys.executable, "-m", "seawall", "serve", "--port", "0", *options]
    if "--registry" not in options:
        command += ["--registry", "shop:registry"]
    with subprocess.Popen(
        command,
        cwd=folder,
        stderr=subprocess.PIPE,
        env={**os.environ, "XDG_STATE_HOME": str(folder / "state"), **environment},
        text=True,
    ) as process:
        assert process.stderr is not None
        try:
            yield Served(process, [process.stderr.readline(), process.stderr.readline()])
        finally:
            process.kill()


def test_it_says_where_it_is_and_where_its_token_is(tmp_path: Path) -> None:
    with serving(tmp_path) as served:
        assert re.fullmatch(r"1 tools at http://127\.0\.0\.1:\d+\n", served.lines[0])
        path = Path(served.lines[1].split()[-1])
        token = path.read_text().strip()
        response = httpx.post(
            f"{served.base}/breakers/slow",
            json={"action": "open"},
            headers={"authorization": f"Bearer {token}"},
        )

        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert response.status_code == 200
        assert token not in "".join(served.lines)


def test_told_to_stop_it_lets_a_call_end_and_takes_no_other(tmp_path: Path) -> None:
    with serving(tmp_path) as served, httpx.Client(base_url=served.base) as client:
        answers: list[httpx.Response] = []
        body = {"tool": "slow", "arguments": {"seconds": 1}}
        asking = threading.Thread(
            target=lambda: answers.append(client.post("/tools/call", json=body))
        )
        asking.start()
        waited((tmp_path / "begun").exists)
        served.process.send_signal(signal.SIGTERM)
        asking.join(20)
        served.process.wait(20)

        assert [answer.json()["text"] for answer in answers] == ["done"]
        with pytest.raises(httpx.ConnectError):
            httpx.get(f"{served.base}/healthz")


def test_while_calls_end_whoever_asks_is_told_that_it_stops(tmp_path: Path) -> None:
    with serving(tmp_path) as served, httpx.Client(base_url=served.base, timeout=20) as client:
        body = {"tool": "slow", "arguments": {"seconds": 2}}
        with ThreadPoolExecutor(1) as pool:
            asking = pool.submit(client.post, "/tools/call", json=body)
            waited((tmp_path / "begun").exists)
            before = httpx.get(f"{served.base}/readyz")
            served.process.send_signal(signal.SIGTERM)
            ready = waited(lambda: _unless_ready(served.base))
            refused = httpx.post(f"{served.base}/tools/call", json=body)
            viewing = httpx.get(f"{served.base}/events")
            looking = httpx.get(f"{served.base}/tools")
            alive = httpx.get(f"{served.base}/healthz")
            text = asking.result(20).json()["text"]
        assert served.process.wait(20) == 0

    assert (before.status_code, ready.json()) == (200, {"status": "stopping"})
    assert refused.status_code == viewing.status_code == 503
    failure = refused.json()["failure"]
    assert (failure["reason"], failure["mayHaveRun"]) == ("overloaded", False)
    assert "stops" in failure["message"]
    assert (refused.headers["retry-after"], refused.headers["connection"]) == ("1", "close")
    assert (looking.status_code, alive.status_code, text) == (200, 200, "done")


def _unless_ready(base: str) -> httpx.Response | None:
    found = httpx.get(f"{base}/readyz")
    return found if found.status_code == 503 else None


def test_with_nothing_to_wait_for_it_ends_at_once(tmp_path: Path) -> None:
    with serving(tmp_path, "--drain", "600") as served, httpx.Client(base_url=served.base) as idle:
        idle.get("/healthz")
        served.process.send_signal(signal.SIGTERM)

        assert served.process.wait(20) == 0


def test_a_call_that_takes_longer_than_the_drain_is_broken_off(tmp_path: Path) -> None:
    with serving(tmp_path, "--drain", "1") as served, httpx.Client(base_url=served.base) as client:
        body = {"tool": "slow", "arguments": {"seconds": 60}}

        answers: list[httpx.Response] = []

        def ask() -> None:
            answers.append(client.post("/tools/call", json=body))

        asking = threading.Thread(target=ask)
        asking.start()
        waited((tmp_path / "begun").exists)
        served.process.send_signal(signal.SIGTERM)
        served.process.wait(20)
        asking.join(20)

        assert answers[0].status_code == 502
        assert answers[0].json()["failure"]["reason"] == "outcome_unknown"


def test_a_port_that_is_taken_is_said(tmp_path: Path) -> None:
    with serving(tmp_path) as served:
        port = served.base.rpartition(":")[2]
        ran = subprocess.run(
            [sys.executable, "-m", "seawall", "serve", "--port", port],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "XDG_STATE_HOME": str(tmp_path / "state")},
        )

    assert ran.returncode == 2
    assert "cannot be listened on" in ran.stderr
    assert "--port" in ran.stderr


def test_another_address_without_a_token_is_refused(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "seawall", "serve", "--host", "0.0.0.0", "--port", "0"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "XDG_STATE_HOME": str(tmp_path)},
    )

    assert ran.returncode == 2
    assert "callers need a token" in ran.stderr


def test_no_log_line_has_a_secret(tmp_path: Path) -> None:
    with serving(tmp_path, SEAWALL_TOKEN="caller-secret-0123456789") as served:
        for headers in ({}, {"authorization": "Bearer caller-secret-0123456789"}):
            body = {"tool": "slow", "arguments": {"seconds": "planted-secret"}}
            httpx.post(f"{served.base}/tools/call?token=planted", json=body, headers=headers)
        httpx.get(f"{served.base}/nothing?x=planted-secret")
        served.process.send_signal(signal.SIGTERM)
        assert served.process.stderr is not None
        said = "".join(served.lines) + served.process.stderr.read()

    assert "planted" not in said
    assert "caller-secret" not in said


LONG = textwrap.dedent(
    """
    from seawall import Annotations, tool

    @tool(annotations=Annotations.for_reading())
    async def long() -> str:
        "Say much."
        return "".join(f"line {number}\\n" for number in range(2_000))

    registry = [long]
    """
)


@pytest.mark.parametrize("durable", [True, False])
def test_what_a_limit_cuts_is_read_on_after_a_restart_if_there_is_a_state(
    tmp_path: Path, durable: bool
) -> None:
    (tmp_path / "long.py").write_text(LONG)
    (tmp_path / "spill.toml").write_text(
        '[families.all]\nmatch = "*"\nmax_result_bytes = 2000\nspill = true\n'
    )
    options = ["--registry", "long:registry", "--policy", "spill.toml"]
    if durable:
        options += ["--state", "sqlite:///kept/state.db"]

    def called(base: str, tool: str, arguments: dict[str, str]) -> dict[str, Any]:
        body = {"tool": tool, "arguments": arguments, "sessionId": "s"}
        answer = httpx.post(f"{base}/tools/call", json=body)
        found: dict[str, Any] = answer.json()
        return found

    with serving(tmp_path, *options) as served:
        cut = called(served.base, "long", {})["text"]
        spill_id = cut.rpartition('"id": "')[2].partition('"')[0]
        page = called(served.base, "result_read", {"id": spill_id})
        served.process.send_signal(signal.SIGTERM)
        rest = served.process.stderr.read() if served.process.stderr else ""
        served.process.wait(20)
    with serving(tmp_path, *options) as served:
        again = called(served.base, "result_read", {"id": spill_id})

    assert page["text"].startswith("line 0\nline 1\n")
    assert ("--state keeps it" in rest) is not durable
    assert again.get("text", "").startswith("line 0\n") is durable
    assert (tmp_path / "kept" / "state.db").exists() is durable


def test_a_state_that_cannot_be_reached_is_said_at_the_start(tmp_path: Path) -> None:
    (tmp_path / "state.db").mkdir()
    ran = subprocess.run(
        [sys.executable, "-m", "seawall", "serve", "--state", f"sqlite:///{tmp_path}/state.db"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "XDG_STATE_HOME": str(tmp_path / "state")},
        timeout=60,
    )

    assert ran.returncode == 2
    assert "error: " in ran.stderr
    assert "Traceback" not in ran.stderr


def test_small_answers_do_not_wait_for_the_client_to_acknowledge() -> None:
    listening = bound(GatewaySettings(port=0))

    with listening:
        # asyncio turns the waiting off for connections of such a socket alone.
        assert listening.proto == socket.IPPROTO_TCP
