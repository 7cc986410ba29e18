"""How often clients may call, with and without others who count too."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.redis_servers import running, until_up

from seawall import Shared
from seawall.edges.gateway.client_rates import ClientRates
from seawall.pipeline.clock import SystemClock
from seawall.testing import FakeClock

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.redis_servers import Server


@pytest.fixture(name="server", scope="module")
def server_fixture() -> Iterator[Server]:
    with running() as found:
        yield found


async def granted(rates: ClientRates, name: str, times: int) -> int:
    taken = [await rates.take(name) for _ in range(times)]
    return sum(one is not None and one.granted for one in taken)


async def test_a_client_without_a_rate_is_not_counted() -> None:
    rates = ClientRates({"a": None, "b": "5/hour"}, FakeClock().now, None, 1)

    assert await rates.take("a") is None
    assert await rates.take("nobody") is None
    assert await granted(rates, "b", 9) == 5
    assert rates.said("b") == "5/hour"


async def test_one_of_several_workers_without_a_store_grants_its_part() -> None:
    rates = ClientRates({"a": "20/hour"}, FakeClock().now, None, 4)

    assert await granted(rates, "a", 20) == 5


async def test_workers_with_a_store_grant_one_rate_together(server: Server) -> None:
    async with (
        Shared(server.url, timeout_s=2, prefix="clients") as first,
        Shared(server.url, timeout_s=2, prefix="clients") as second,
    ):
        await until_up(first)
        await until_up(second)
        one, other = (
            ClientRates({"a": "9/hour", "b": "9/hour"}, SystemClock().now, shared.buckets, 2)
            for shared in (first, second)
        )

        assert await granted(one, "a", 6) == 6
        assert await granted(other, "a", 6) == 3
        assert await granted(other, "b", 6) == 6
        stored = server.keys()
        assert not [key for key in stored if key.endswith(("/a", "/b"))]


async def test_while_the_store_is_gone_each_grants_its_part() -> None:
    shared = Shared("redis://127.0.0.1:9/0", replicas=4)
    rates = ClientRates({"a": "20/hour"}, FakeClock().now, shared.buckets, 4)

    assert await granted(rates, "a", 20) == 5
    await shared.aclose()
