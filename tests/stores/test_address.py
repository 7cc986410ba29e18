from pathlib import Path

import pytest

from seawall.contract.errors import ConfigurationError
from seawall.stores.address import address_of


@pytest.mark.parametrize("url", [None, "memory:", "memory://"])
def test_without_a_place_a_state_is_in_memory(url: str | None) -> None:
    assert address_of(url).kind == "memory"


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("sqlite:////var/lib/agent/state.db", Path("/var/lib/agent/state.db")),
        ("sqlite:///state.db", Path.cwd() / "state.db"),
        ("sqlite:///a%20b.db", Path.cwd() / "a b.db"),
        ("sqlite:///~/state.db", Path.home() / "state.db"),
    ],
)
def test_an_sqlite_address_is_a_file(url: str, path: Path) -> None:
    address = address_of(url)

    assert (address.kind, address.path) == ("sqlite", path)
    assert address.shown == f"sqlite:///{path}"


@pytest.mark.parametrize(
    ("url", "given"),
    [
        ("postgresql://me@db/app", "postgresql+asyncpg://me@db/app"),
        ("postgres://me@db:5433/app", "postgresql+asyncpg://me@db:5433/app"),
        ("postgresql+asyncpg://me@db/app", "postgresql+asyncpg://me@db/app"),
        ("postgresql://db/app?sslmode=require", "postgresql+asyncpg://db/app?ssl=require"),
        ("postgresql:///app?host=/run/pg", "postgresql+asyncpg:///app?host=%2Frun%2Fpg"),
    ],
)
def test_a_postgres_address_is_given_to_its_driver(url: str, given: str) -> None:
    assert address_of(url).url == given


@pytest.mark.parametrize(
    "url", ["postgresql://me:hunter2@db/app", "postgresql://me:hunter2@db/app?password=hunter2"]
)
def test_a_password_is_never_shown(url: str) -> None:
    address = address_of(url)

    assert address.shown == "postgresql://me@db/app"
    assert "hunter2" not in repr(address)


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("", "is no address of a state"),
        ("state.db", "is no address of a state"),
        ("mysql://me:hunter2@db/app", "mysql:… is no address of a state"),
        ("sqlite://", "an SQLite state is a file"),
        ("sqlite:///:memory:", "without a file use memory:"),
        ("sqlite:///state.db?mode=ro", "an SQLite state is a file"),
        ("postgresql://db", "names no database"),
        ("postgresql://me:hunter2@db:port/app", "cannot be read"),
    ],
)
def test_an_address_that_cannot_be_used_is_refused(url: str, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said) as caught:
        address_of(url)

    assert "hunter2" not in str(caught.value)
