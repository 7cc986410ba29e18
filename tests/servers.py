"""Real servers for tests, started on free ports of this machine and stopped with the session."""

import itertools
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.found import lacking
from tests.waiting import until_listening, waited

_BINARIES = "/usr/lib/postgresql/*/bin"


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class PostgresServer:
    """A PostgreSQL of its own; each asking gets a database of its own."""

    def __init__(self, binaries: Path, port: int, process: subprocess.Popen[bytes]) -> None:
        self._binaries = binaries
        self._names = itertools.count(1)
        self.port = port
        self.process = process

    def await_ready(self) -> None:
        """Wait until it takes connections: its port is open before."""

        def is_ready() -> bool:
            assert self.process.poll() is None, "the server ended at once"
            with suppress(subprocess.CalledProcessError):
                self.tool("pg_isready")
                return True
            return False

        waited(is_ready, within_s=60)

    def new_database(self) -> str:
        """Make an empty database; its URL."""
        name = f"state_{next(self._names)}"
        self.tool("createdb", name)
        return f"postgresql://postgres@127.0.0.1:{self.port}/{name}"

    def query(self, database_url: str, sql: str) -> str:
        """Ask by the server's own command line, past all of our code."""
        return self.tool("psql", "-At", "-d", database_url, "-c", sql)

    def tool(self, program: str, *arguments: str) -> str:
        """Run one of PostgreSQL's programs against this server."""
        return subprocess.run(
            [self._binaries / program, *arguments],
            env={"PGHOST": "127.0.0.1", "PGPORT": str(self.port), "PGUSER": "postgres"},
            check=True,
            capture_output=True,
            text=True,
            timeout=60,
        ).stdout


def postgres_binaries() -> Path | None:
    """Where the server's programs are: Debian has them beside, not in, the path."""
    found = sorted(Path("/").glob(f"{_BINARIES[1:]}/initdb"))
    if found:
        return found[-1].parent
    on_path = shutil.which("initdb")
    return None if on_path is None else Path(on_path).parent


@contextmanager
def running_postgres() -> Iterator[PostgresServer]:
    """Run a PostgreSQL until the end of the block."""
    binaries = postgres_binaries()
    if binaries is None:
        lacking("needs a PostgreSQL server (Debian: apt-get install postgresql)")
    with tempfile.TemporaryDirectory(prefix="seawall-pg-") as folder:
        user = _unprivileged(Path(folder))
        data = Path(folder) / "data"
        subprocess.run(
            [binaries / "initdb", "-D", data, "-U", "postgres", "-A", "trust", "--no-sync"],
            check=True,
            capture_output=True,
            user=user,
            cwd=folder,
            timeout=120,
        )
        port = free_port()
        settings = {
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": "",
            "fsync": "off",
            "max_connections": "60",
        }
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        process = subprocess.Popen(
            [binaries / "postgres", "-D", data, "-p", str(port), *options],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            user=user,
            cwd=folder,
        )
        try:
            until_listening(port, process)
            server = PostgresServer(binaries, port, process)
            server.await_ready()
            yield server
        finally:
            process.terminate()
            process.wait(30)


def _unprivileged(folder: Path) -> int | None:
    """Give the folder to a user who may run the server, which does not run as root."""
    if os.geteuid() != 0:
        return None
    user = pwd.getpwnam("postgres")
    os.chown(folder, user.pw_uid, user.pw_gid)
    return user.pw_uid
