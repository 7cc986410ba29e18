"""What those who look are told of tools that look different by now."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from tests.edges.gateway.serving import add, count_to

from seawall import Pipeline, Policies, RunPolicy
from seawall.edges.gateway.changes import GATHER_S, MOST, Changes
from seawall.edges.gateway.views import Views
from seawall.testing import FakeClock


class _Looking:
    """Somebody who looks at a pipeline of two tools."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.pipeline = Pipeline([add, count_to], clock=self.clock)
        self.told: list[Any] = []
        views = Views(self.pipeline, None)
        self.changes = Changes(self.pipeline, views, self.told.append)

    async def later(self) -> Any:
        """What was told after a while; at most once."""
        await self.clock.advance(GATHER_S)
        assert len(self.told) <= 1
        return self.told.pop() if self.told else None


async def test_what_was_touched_often_is_told_once_as_it_is_then() -> None:
    looking = _Looking()
    looking.changes.begin()
    for _ in range(50):
        looking.changes.touched("add")
    looking.pipeline.breakers.open("add")

    told = await looking.later()

    assert [(one["name"], one["breaker"]) for one in told["tools"]] == [("add", "open")]
    assert (told["all"], told["defined"], told["gone"]) == (False, [], [])
    assert await looking.later() is None


async def test_tools_that_come_and_go_are_told_from_whichever_thread() -> None:
    looking = _Looking()
    looking.changes.begin()

    def reregister() -> None:
        looking.pipeline.registry.unregister("add")
        looking.pipeline.registry.register(count_to, on_duplicate="replace")

    thread = threading.Thread(target=reregister)
    thread.start()
    thread.join()
    await looking.clock.advance(0)
    told = await looking.later()

    assert (told["gone"], told["defined"]) == (["add"], ["count_to"])
    assert [one["name"] for one in told["tools"]] == ["count_to"]


async def test_what_is_too_much_to_be_told_one_by_one_is_to_be_asked_for() -> None:
    looking = _Looking()
    looking.changes.begin()
    for number in range(MOST + 1):
        looking.changes.touched(f"tool {number}")

    assert await looking.later() == {"all": True, "tools": [], "defined": [], "gone": []}


async def test_under_new_policies_everything_may_be_different() -> None:
    looking = _Looking()
    looking.changes.begin()
    looking.pipeline.replace_policies(Policies(default=RunPolicy()))
    looking.changes.touched("add")

    assert (await looking.later())["all"]


@pytest.mark.parametrize("looked", [True, False], ids=["any more", "yet"])
async def test_nothing_is_gathered_where_nobody_looks(looked: bool) -> None:
    looking = _Looking()
    if looked:
        looking.changes.begin()
        looking.changes.touched("add")
        looking.changes.end()
    looking.pipeline.registry.unregister("add")

    assert await looking.later() is None
