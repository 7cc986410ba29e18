import asyncio

import pytest

from seawall.contract.approval import ApprovalNotFound
from seawall.contract.errors import StoreUnavailable
from seawall.orchestration.approvals.arrears import PATIENCE_S, WAIT_S, Arrears
from seawall.testing import FakeClock


class Store:
    """One that takes what is written from a certain try on."""

    def __init__(self, fails: int, error: Exception) -> None:
        self.tries = 0
        self._fails = fails
        self._error = error

    async def write(self) -> None:
        self.tries += 1
        if self.tries <= self._fails:
            raise self._error


AWAY = StoreUnavailable("there", "away")


@pytest.mark.parametrize("error", [AWAY, ConnectionError("of a store of somebody else")])
async def test_it_is_tried_until_the_store_takes_it(error: Exception) -> None:
    clock, store, over = FakeClock(), Store(3, error), []
    arrears = Arrears(clock)

    tried = arrears.write("something", store.write, lambda: over.append(clock.now()))
    await tried
    assert (store.tries, over, len(arrears)) == (1, [], 1)
    await clock.advance(10 * WAIT_S)

    assert (store.tries, over, len(arrears)) == (4, [3 * WAIT_S], 0)


async def test_what_cannot_be_any_more_is_not_tried_again() -> None:
    clock, store = FakeClock(), Store(9, ApprovalNotFound("apr_x"))
    arrears = Arrears(clock)

    await arrears.write("something", store.write)
    await clock.advance(10 * WAIT_S)

    assert store.tries == 1


async def test_who_closes_has_it_tried_once_more_and_waits_for_no_clock() -> None:
    store, over = Store(9, AWAY), []
    arrears = Arrears(FakeClock())

    await arrears.write("something", store.write, lambda: over.append(True))
    await arrears.aclose()
    await asyncio.sleep(0)

    assert (store.tries, over, len(arrears)) == (2, [True], 0)


async def test_it_is_given_up_after_an_hour(caplog: pytest.LogCaptureFixture) -> None:
    clock, store = FakeClock(), Store(10**9, AWAY)
    arrears = Arrears(clock)

    await arrears.write("something", store.write)
    await clock.advance(PATIENCE_S + WAIT_S)
    before = store.tries
    await clock.advance(10 * WAIT_S)

    assert store.tries == before
    assert "something, and is given up" in caplog.text
