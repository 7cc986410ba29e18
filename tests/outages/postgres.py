"""A PostgreSQL that can be stopped, killed, paused, filled and emptied, and comes back."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import tempfile
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import asyncpg  # type: ignore[import-untyped]  # it has no types
from tests.found import lacking, program
from tests.servers import PostgresServer, _unprivileged, free_port, postgres_binaries

if TYPE_CHECKING:
    from collections.abc import Iterator

CONNECTIONS = 40
_SEGMENT_BYTES = 16 * 1024 * 1024
"""Size of a file of the write-ahead log: a limit below it would end the server."""


class FailingPostgres(PostgresServer):
    """A server, and all that may happen to it."""

    def __init__(self, binaries: Path, folder: Path) -> None:
        port = free_port()
        self._folder = folder
        self._user = _unprivileged(folder)
        data = folder / "data"
        self._run(binaries / "initdb", "-D", data, "-U", "postgres", "-A", "trust", "--no-sync")
        settings = {
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": "",
            "fsync": "off",
            "max_connections": str(CONNECTIONS),
        }
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        self._command: list[str | Path] = [
            binaries / "postgres",
            "-D",
            data,
            "-p",
            str(port),
            *options,
        ]
        super().__init__(binaries, port, self._started())
        self.await_ready()

    def start(self) -> None:
        """Start it again, and wait until it takes connections."""
        self.process = self._started()
        self.await_ready()

    def stop(self) -> None:
        """End it as an administrator would: what is under way is broken off."""
        self.process.send_signal(signal.SIGINT)
        self.process.wait(30)

    def kill(self) -> None:
        """End it as a crash would, with all that it started."""
        started = self._all()
        for pid in started:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait(30)
        end = time.monotonic() + 30
        while any(Path(f"/proc/{pid}").exists() for pid in started[1:]):
            assert time.monotonic() < end, "what the server started does not end"
            time.sleep(0.01)

    def pause(self) -> None:
        """Let it hang: the system goes on to take connections for it."""
        for pid in self._all():
            os.kill(pid, signal.SIGSTOP)

    def go_on(self) -> None:
        """Let it work again."""
        for pid in self._all():
            os.kill(pid, signal.SIGCONT)

    def fill(self) -> None:
        """Let no file grow beyond the size that a file of the log has, as on a full disk."""
        self._limit_files(str(_SEGMENT_BYTES))

    def make_room(self) -> None:
        """Let files grow again."""
        self._limit_files("unlimited")

    def _limit_files(self, size: str) -> None:
        # By somebody whose processes they are: no other may, in a container.
        for pid in self._all():
            limit = [program("prlimit"), "--pid", str(pid), f"--fsize={size}:"]
            subprocess.run(limit, check=False, capture_output=True, user=self._user, timeout=10)

    def allow_writing(self, url: str, *, allowed: bool) -> None:
        """Let all transactions be for reading only, or no more: as hosts do on a full disk."""
        value = "off" if allowed else "on"
        # The statement itself is no transaction that could be for reading only.
        self.query(url, f"ALTER SYSTEM SET default_transaction_read_only = {value}")
        self.query(url, "SELECT pg_reload_conf()")

    def close(self) -> None:
        """End it for good."""
        if self.process.poll() is None:
            self.go_on()
            self.kill()

    def _started(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            self._command,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            user=self._user,
            cwd=self._folder,
        )

    def _run(self, *command: str | Path) -> None:
        subprocess.run(
            command, check=True, capture_output=True, user=self._user, cwd=self._folder, timeout=120
        )

    def _all(self) -> list[int]:
        """The server's processes, the one that starts the others first."""
        parent = self.process.pid
        children = Path(f"/proc/{parent}/task/{parent}/children").read_text("ascii")
        return [parent, *map(int, children.split())]


class Crowd:
    """Others who take all connections that there are."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._loop = asyncio.new_event_loop()
        self._taken: list[Any] = []

    def come(self) -> None:
        """Take all, those too that somebody else has now."""
        self._loop.run_until_complete(self._come())

    async def _come(self) -> None:
        one = await asyncpg.connect(self._url)
        self._taken.append(one)
        quiet = 0
        while quiet < 5:
            ended = await one.fetch(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE application_name = 'seawall'"
            )
            with suppress(asyncpg.PostgresError):
                while True:
                    self._taken.append(await asyncpg.connect(self._url))
            quiet = 0 if ended else quiet + 1
            await asyncio.sleep(0.01)

    def go(self) -> None:
        """Give all back."""
        for connection in self._taken:
            connection.terminate()
        self._taken = []
        self._loop.run_until_complete(asyncio.sleep(0.01))
        self._loop.close()


@contextmanager
def running_failing_postgres() -> Iterator[FailingPostgres]:
    """Run one until the end of the block."""
    binaries = postgres_binaries()
    if binaries is None:
        lacking("needs a PostgreSQL server (Debian: apt-get install postgresql)")
    with tempfile.TemporaryDirectory(prefix="seawall-pg-") as folder:
        server = FailingPostgres(binaries, Path(folder))
        try:
            yield server
        finally:
            server.close()
