"""Real servers for what processes share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.redis_servers import KINDS, Server, running, until_up

from seawall import Shared

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator


@pytest.fixture(scope="module", params=KINDS)
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    """A server of each kind."""
    with running(request.param) as found:
        yield found


@pytest.fixture
async def shared(server: Server) -> AsyncIterator[Shared]:
    """An empty store on it, reached."""
    server.client.flushall()
    async with Shared(server.url, timeout_s=2) as found:
        await until_up(found)
        yield found
