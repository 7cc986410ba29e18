"""What several folders of tests share: servers, started when the first test asks for them."""

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.servers import PostgresServer, running_postgres


@pytest.fixture(autouse=True)
def _logger_as_it_was() -> Iterator[None]:
    """Commands and examples that run in this process set up the package's logger."""
    logger = logging.getLogger("seawall")
    before = logger.level, logger.propagate, logger.disabled, logger.handlers[:]
    yield
    level, logger.propagate, logger.disabled, logger.handlers[:] = before
    logger.setLevel(level)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    with running_postgres() as server:
        yield server


@pytest.fixture
def postgres_url(postgres_server: PostgresServer) -> str:
    """An empty database of the test's own."""
    return postgres_server.new_database()


@pytest.fixture(params=["sqlite", "postgresql"])
def state_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty durable state; the test runs once for each kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/state.db"
    url: str = request.getfixturevalue("postgres_url")
    return url


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what takes minutes, unless it was asked for with `-m long`."""
    for item in items:
        if item.get_closest_marker("long") is not None:
            item.add_marker(pytest.mark.timeout(0))
    if "long" in str(config.getoption("-m")):
        return
    for item in items:
        if item.get_closest_marker("long") is not None:
            item.add_marker(pytest.mark.skip(reason="takes minutes; asked for with -m long"))
