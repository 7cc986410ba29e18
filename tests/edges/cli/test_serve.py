"""`seawall serve`: the policy file is taken anew while it serves."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from seawall.edges.cli.app import app

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytest.importorskip("uvicorn")


class Served:
    """A gateway in a process of its own, and what it says on standard error."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.policy = folder / "x.toml"
        self.policy.write_text('[tools.calculate]\ntimeout_s = "5s"\n')
        self.process = subprocess.Popen(
            [
                *(sys.executable, "-m", "seawall", "serve", "--port", "0"),
                *("--policy", str(self.policy), *options),
            ],
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "XDG_STATE_HOME": str(folder), "HOME": str(folder)},
        )
        self.until("tools at http://")

    def until(self, said: str) -> list[str]:
        """Read lines up to one that has this in it; a timer ends the process if none comes."""
        assert self.process.stderr is not None
        lines: list[str] = []
        timer = threading.Timer(30, self.process.kill)
        timer.start()
        try:
            for line in self.process.stderr:
                lines.append(line.rstrip())
                if said in line:
                    return lines
        finally:
            timer.cancel()
        raise AssertionError(f"{said!r} was not said: {lines}")

    def close(self) -> None:
        assert self.process.stderr is not None
        self.process.terminate()
        self.process.wait(20)
        self.process.stderr.close()


@pytest.fixture(name="served")
def served_fixture(tmp_path: Path) -> Iterator[Served]:
    served = Served(tmp_path, "--watch")
    yield served
    served.close()


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="this system has no SIGHUP")
def test_a_hangup_takes_the_policy_anew_and_a_broken_one_is_told(tmp_path: Path) -> None:
    served = Served(tmp_path)
    try:
        served.policy.write_text('[tools.calculat]\ntimeout_s = "7s"\n')
        served.process.send_signal(signal.SIGHUP)
        served.until("policy taken: ")
        assert "did you mean calculate?" in served.until("note: ")[-1]

        served.policy.write_text("[tools.calculate]\ntimeout_s = 0\n")
        served.process.send_signal(signal.SIGHUP)
        lines = served.until("the former policy goes on")
        assert any("x.toml:2:1: tools.calculate.timeout_s: must be above 0" in li for li in lines)
        assert served.process.poll() is None
    finally:
        served.close()


def test_a_file_that_changed_is_taken_by_itself(served: Served) -> None:
    served.policy.write_text('[tools.calculate]\ntimeout_s = "70s"\n')

    served.until("policy taken: ")


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="this system has no SIGHUP")
def test_the_token_of_a_run_is_there_while_it_serves_and_no_longer(tmp_path: Path) -> None:
    served = Served(tmp_path)
    try:
        where = served.until("the token for approvals")[-1].rpartition(" ")[2]
        assert len((tmp_path / where).read_text().strip()) > 20
        served.process.send_signal(signal.SIGHUP)
        served.until("policy taken: ")  # it serves by now, so a signal ends it in order
    finally:
        served.close()

    assert not (tmp_path / where).exists()


def test_a_start_on_an_address_in_use_leaves_the_token_of_whoever_has_it(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ran = subprocess.run(
            [sys.executable, "-m", "seawall", "serve", "--port", str(port)],
            env={**os.environ, "XDG_STATE_HOME": str(tmp_path), "HOME": str(tmp_path)},
            capture_output=True,
            timeout=60,
            check=False,
        )

    assert ran.returncode != 0
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--port", "99999"),
        ("--host", "192.0.2.1"),
        ("--client-rate", "often"),
        ("--max-body", "0"),
        ("--drain", "0"),
    ],
)
def test_a_value_that_cannot_be_is_told_by_its_option(option: str, value: str) -> None:
    ran = CliRunner().invoke(app, ["serve", option, value])

    assert ran.exit_code == 2
    assert ran.stderr.startswith(f"error: {option}: ")
