"""Tools and policies that change while calls run."""

from __future__ import annotations

import asyncio
import threading

import msgspec
import pytest
from tests.orchestration.desk import Desk, reason

from seawall import (
    BreakerPolicy,
    ConfigurationError,
    Policies,
    RunPolicy,
)
from seawall.testing import scripted


async def test_a_call_goes_on_with_the_tool_it_began_with() -> None:
    desk = Desk(scripted(("sleep", 5, "old"), name="t"))
    running = asyncio.ensure_future(desk.pipeline.call("t"))
    await desk.clock.settle()

    desk.pipeline.registry.register(scripted("new", name="t"), on_duplicate="replace")
    fresh = await desk.pipeline.call("t")
    desk.pipeline.registry.unregister("t")
    gone = await desk.pipeline.call("t")
    await desk.clock.advance(5)

    assert fresh.text == "new"
    assert reason(gone) == "tool_not_found"
    assert (await running).text == "old"


async def test_a_tool_that_becomes_faulty_can_be_called_no_longer() -> None:
    desk = Desk()
    broken = scripted("worse", name="t", input_schema={"type": "string"})

    desk.pipeline.registry.register(broken, on_duplicate="replace", on_invalid="quarantine")

    assert reason(await desk.call()) == "tool_quarantined"
    assert desk.pipeline.policy_of("t") is None


async def test_a_tool_that_comes_back_does_not_find_its_limits_refilled() -> None:
    policy = RunPolicy(rate="1/day", breaker=BreakerPolicy(threshold=1))
    tool = scripted("well", name="t")
    desk = Desk(tool, policy=policy)
    await desk.call()
    desk.pipeline.breakers.open("t")

    desk.pipeline.registry.unregister("t")
    desk.pipeline.registry.register(tool)

    assert reason(await desk.call()) == "rate_limited"
    assert desk.pipeline.breakers.state("t") == "open"
    assert desk.pipeline.usage.snapshot()["t"].invocations == 1


def test_tools_may_be_registered_from_other_threads_while_policies_change() -> None:
    desk = Desk()

    def work(number: int) -> None:
        for turn in range(30):
            desk.pipeline.registry.register(scripted(name=f"t{number}_{turn}"))
            if turn % 3 == 0:
                desk.pipeline.registry.unregister(f"t{number}_{turn}")

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for seconds in range(1, 20):
        desk.pipeline.replace_policies(Policies(default=RunPolicy(timeout_s=seconds)))
    for thread in threads:
        thread.join()

    assert set(desk.pipeline._routes) == set(desk.pipeline.registry.names())


def test_policies_that_keep_texts_change_nothing_where_a_tool_has_the_name_to_read_them() -> None:
    desk = Desk(scripted(name="t"), scripted(name="result_read"), state="memory:")
    before = desk.pipeline.policies, desk.pipeline.policy_of("t")

    with pytest.raises(ConfigurationError, match="there is a tool named result_read"):
        desk.pipeline.replace_policies(
            Policies(default=RunPolicy(max_result_bytes=2_000, spill=True))
        )

    assert (desk.pipeline.policies, desk.pipeline.policy_of("t")) == before


SPILLS = Policies(default=RunPolicy(), tools={"t": RunPolicy(max_result_bytes=2_000, spill=True)})


async def test_a_tool_that_keeps_texts_stays_out_where_another_has_the_name_to_read_them() -> None:
    desk = Desk(scripted(name="result_read"), state="memory:", policies=SPILLS)

    with pytest.raises(ConfigurationError, match="there is a tool named result_read"):
        desk.pipeline.registry.register(scripted(name="t"))

    assert desk.pipeline.registry.names() == ("result_read",)
    assert reason(await desk.call("t")) == "tool_not_found"


async def test_no_other_tool_takes_the_name_to_read_texts_while_any_are_kept() -> None:
    desk = Desk(scripted("x" * 5_000, name="t"), state="memory:", policies=SPILLS)
    cut = (await desk.call("t")).text

    with pytest.raises(ConfigurationError, match="there is a tool named result_read of your own"):
        desk.pipeline.registry.register(scripted(name="result_read"), on_duplicate="replace")

    spill_id = cut.rpartition('{"id": "')[2].partition('"')[0]
    read = await desk.pipeline.call("result_read", {"id": spill_id})
    assert read.text.startswith("xxx")


async def test_a_tool_may_have_the_name_to_read_texts_where_none_are_kept() -> None:
    desk = Desk(scripted(name="t"), state="memory:")

    desk.pipeline.registry.register(scripted("mine", name="result_read"))

    assert (await desk.call("result_read")).text == "mine"


async def test_new_policies_hold_for_new_calls_and_keep_what_was_learnt() -> None:
    policy = RunPolicy(rate="2/day", timeout_s=10, breaker=BreakerPolicy(threshold=2))
    desk = Desk(scripted(OSError("down"), ("sleep", 20), name="t"), policy=policy)
    await desk.call()
    running = asyncio.ensure_future(desk.pipeline.call("t"))
    await desk.clock.settle()

    changed = msgspec.structs.replace(policy, timeout_s=30)
    desk.pipeline.replace_policies(Policies(default=changed))
    await desk.clock.advance(10)

    assert reason(await running) == "attempt_timeout"
    assert desk.pipeline.breakers.state("t") == "open"
    assert reason(await desk.call()) == "rate_limited"
    assert desk.pipeline.policy_of("t").timeout_s == 30


async def test_policies_of_which_one_cannot_work_change_nothing_at_all() -> None:
    breaker = BreakerPolicy(threshold=2)
    policy = RunPolicy(rate="5/day", breaker=breaker, max_concurrency=3)
    good, bad = (scripted(OSError("down"), name=name) for name in ("good", "bad"))
    desk = Desk(good, bad, policy=policy)
    await desk.call("good")
    states = desk.pipeline.states.of_tool("good")
    circuit, room = states.find("circuit").circuit, states.find("bulkhead")

    with pytest.raises(ConfigurationError, match=r"bad\.cost"):
        desk.pipeline.replace_policies(
            Policies(
                tools={
                    "good": RunPolicy(breaker=BreakerPolicy(threshold=9), max_concurrency=1),
                    "bad": RunPolicy(rate="1/day", cost=9),
                }
            )
        )

    assert states.find("circuit").circuit is circuit
    assert room.limit == 3
    assert desk.pipeline.policy_of("good") == policy
    await desk.call("good")
    assert desk.pipeline.breakers.state("good") == "open"
