import asyncio
from collections.abc import AsyncIterator, Callable

import pytest

from seawall.contract.failure import FailureCode, ToolFailed
from seawall.edges.cli.demo_service import HOST, MOST_REFUSED, ShopService
from seawall.edges.cli.demo_tools import Shop
from seawall.pipeline.chance import SystemChance
from seawall.testing import FakeClock


@pytest.fixture(name="clock")
def clock_fixture() -> FakeClock:
    return FakeClock()


@pytest.fixture(name="service")
async def service_fixture(clock: FakeClock) -> AsyncIterator[ShopService]:
    async with ShopService(clock, SystemChance(1)) as service:
        yield service


@pytest.fixture(name="shop")
def shop_fixture(service: ShopService) -> Shop:
    return Shop(HOST, service.port)


async def _answers(shop: Shop) -> bool:
    try:
        await shop.ask("GET", "/weather/Oslo")
    except ToolFailed as error:
        return error.failure.reason != "transport"
    return True


async def _until(happened: Callable[[], object]) -> None:
    """Let the service see what its sockets have, which takes turns of the loop but no time."""
    for _ in range(100_000):
        if happened():
            return
        await asyncio.sleep(0)


async def test_the_weather_fails_a_few_times_in_a_row_and_then_answers(shop: Shop) -> None:
    answered = [await _answers(shop) for _ in range(40)]

    runs = "".join("x" if one else "." for one in answered).split("x")
    assert {len(run) for run in runs[:-1]} == set(range(1, MOST_REFUSED + 1))


async def test_a_report_takes_its_time(shop: Shop, clock: FakeClock, service: ShopService) -> None:
    before = clock.now()

    found = await clock.run(shop.ask("GET", "/reports/2024-05"))

    assert found["month"] == "2024-05"
    assert clock.now() - before == 4.0
    assert service.hung_up == 0


async def test_a_client_that_goes_away_is_counted(shop: Shop, service: ShopService) -> None:
    task = asyncio.create_task(shop.ask("GET", "/reports/2024-05"))
    await _until(lambda: service.seen["reports"])

    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    await _until(lambda: service.hung_up)
    assert service.hung_up == 1


async def test_a_warehouse_that_is_down_cuts_the_connection(
    shop: Shop, service: ShopService
) -> None:
    service.warehouse_is_up = False
    with pytest.raises(ConnectionError):
        await shop.ask("GET", "/inventory/bolt")

    service.warehouse_is_up = True
    assert (await shop.ask("GET", "/inventory/bolt"))["item"] == "bolt"


async def test_an_order_ships_once_for_each_key(shop: Shop) -> None:
    order = {"order": "A-1", "quantity": 1}

    first = await shop.ask("POST", "/orders", order, key="k1")
    again = await shop.ask("POST", "/orders", order, key="k1")
    other = await shop.ask("POST", "/orders", order, key="k2")

    assert first == again == {**order, "parcel": "P-0001"}
    assert other["parcel"] == "P-0002"


async def test_records_that_are_deleted_are_gone(shop: Shop, service: ShopService) -> None:
    assert await shop.ask("DELETE", "/records/orders?older_than_days=1") == {"removed": 1200}
    assert service.records == 0


async def test_what_is_not_there_is_not_found(shop: Shop) -> None:
    with pytest.raises(ToolFailed) as caught:
        await shop.ask("GET", "/nothing")

    assert caught.value.failure.code is FailureCode.NOT_FOUND


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"\r\n\r\n",
        b"nonsense\r\n\r\n",
        b"GET /health HTTP/1.1\r\nContent-Length: many\r\n\r\n",
        b"POST /orders HTTP/1.1\r\nContent-Length: 9\r\n\r\n{",
        b"POST /orders HTTP/1.1\r\nContent-Length: 1\r\n\r\n{",
        b"x" * 200_000,
    ],
)
async def test_what_is_no_request_is_hung_up_on_and_the_next_one_served(
    service: ShopService, shop: Shop, sent: bytes
) -> None:
    reader, writer = await asyncio.open_connection(HOST, service.port)
    writer.write(sent)
    writer.write_eof()
    try:
        assert await reader.read() == b""
    except ConnectionError:
        pass
    finally:
        writer.close()

    assert await shop.ask("GET", "/health") == {"status": "up"}


async def test_nobody_is_served_afterwards(clock: FakeClock) -> None:
    async with ShopService(clock, SystemChance(1)) as service:
        shop = Shop(HOST, service.port)

    with pytest.raises(ConnectionError):
        await shop.ask("GET", "/health")
