"""A server is named by how it is reached, without its secrets."""

from __future__ import annotations

import pytest

from seawall.edges.mcp.config import ServerConfig
from seawall.edges.mcp.origin import LONGEST, origin_of_address, origin_of_command

KEY = bytes(range(32))


@pytest.mark.parametrize("key", [None, KEY])
def test_the_same_command_in_the_same_folder_has_the_same_name(key: bytes | None) -> None:
    command = ("python", "server.py", "--db", "a b")

    name = origin_of_command(command, "/srv", key)

    assert name == origin_of_command(list(command), "/srv", key)
    assert name.startswith("python server.py --db 'a b' in /srv (")


@pytest.mark.parametrize("key", [None, KEY])
@pytest.mark.parametrize(
    ("command", "folder"),
    [
        (("python", "server.py", "--db", "b"), "/srv"),
        (("python", "server.py", "--db"), "/srv"),
        (("python", "server.py", "--db", "a"), "/home"),
        (("python", "server.py --db a"), "/srv"),
        (("python", "server.py", "--db", "a", "/srv"), ""),
    ],
)
def test_another_command_or_folder_has_another(
    key: bytes | None, command: tuple[str, ...], folder: str
) -> None:
    first = origin_of_command(("python", "server.py", "--db", "a"), "/srv", key)

    assert origin_of_command(command, folder, key) != first


def test_no_secret_is_shown_and_another_one_is_another_server() -> None:
    one = origin_of_command(("npx", "server", "--token", "abcdefghijkl12345"))
    two = origin_of_command(("npx", "server", "--token", "abcdefghijkl12346"))
    at = origin_of_address("https://ada:secret-word@db.example/mcp?key=abcdefghijkl12345#x")

    assert "abcdefghijkl" not in one + two + at
    assert "secret-word" not in at
    assert at.startswith("https://db.example/mcp (")
    assert one != two
    assert at != origin_of_address("https://ada:secret-word@db.example/mcp?key=else")


def test_the_fingerprint_depends_on_the_key_of_the_state() -> None:
    names = {origin_of_command(["a"], "", key) for key in (None, KEY, KEY[::-1])}

    assert len(names) == 3


def test_a_name_is_bounded() -> None:
    long = origin_of_command(["a" * 5_000])

    assert len(long) < LONGEST + 40
    assert long != origin_of_command(["a" * 5_001])


def test_a_configured_server_is_named_with_its_command_or_address() -> None:
    started = ServerConfig(name="db", command=("db", "--all"), env={"DB": "staging"})
    reached = ServerConfig(name="web", url="https://u:pw@web.example/mcp")

    assert started.origin.startswith("db: db --all (")
    assert reached.origin.startswith("web: https://web.example/mcp (")
    other = ServerConfig(name="db", command=("db", "--all"), env={"DB": "production"})
    assert other.origin != started.origin
