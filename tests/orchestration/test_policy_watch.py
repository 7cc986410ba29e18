"""A policy file that changes while calls go on."""

from __future__ import annotations

import asyncio
import os
import time
from typing import TYPE_CHECKING, Any

import pytest

from seawall.contract.failure import FailureCode
from seawall.orchestration.pipeline import Pipeline
from seawall.orchestration.policy_watch import PolicyWatch, watched
from seawall.policy.model import Policies
from seawall.testing import FakeClock, scripted

if TYPE_CHECKING:
    from pathlib import Path

    from seawall.contract.errors import ConfigurationError


def write(path: Path, timeout_s: str, more: str = "") -> None:
    path.write_text(f"[tools.tool]\ntimeout_s = {timeout_s}\n{more}")
    # A file system's clock may be coarser than a test.
    stamp = time.time_ns() + next(_STEPS)
    os.utime(path, ns=(stamp, stamp))


_STEPS = iter(range(0, 10**15, 10**7))


class Watched:
    def __init__(self, folder: Path) -> None:
        self.path = folder / "x.toml"
        write(self.path, "5")
        self.clock = FakeClock()
        self.tool = scripted(("sleep", 6, "late"), name="tool")
        self.pipeline = Pipeline([self.tool], policies=Policies.load(self.path), clock=self.clock)
        self.taken: list[Policies] = []
        self.faults: list[ConfigurationError] = []
        self.watch: PolicyWatch = watched(
            self.path,
            self.pipeline,
            on_reload=self.taken.append,
            on_fault=self.faults.append,
        )

    @property
    def timeout_s(self) -> Any:
        return self.pipeline.policy_of("tool").timeout_s


@pytest.fixture(name="it")
def it_fixture(tmp_path: Path) -> Watched:
    return Watched(tmp_path)


async def test_a_file_that_changed_is_taken(it: Watched) -> None:
    async with it.watch:
        write(it.path, "7")
        await it.clock.advance(2.5)

    assert it.timeout_s == 7
    assert len(it.taken) == it.watch.reloads == 1


async def test_a_file_that_has_not_changed_is_left_alone(it: Watched) -> None:
    async with it.watch:
        await it.clock.advance(60)

    assert it.watch.reloads == 0


@pytest.mark.parametrize("text", ["", " \n\n"])
def test_a_file_that_was_emptied_is_refused_and_the_former_policy_goes_on(
    it: Watched, text: str
) -> None:
    it.path.write_text(text)

    assert it.watch.reload() is False

    assert it.timeout_s == 5
    assert "x.toml: is empty" in str(it.faults[0])
    it.path.write_text('extends = "default"\n')
    assert it.watch.reload() is True
    assert it.timeout_s != 5


def test_an_empty_file_that_is_extended_is_refused_too(it: Watched) -> None:
    base = it.path.with_name("base.toml")
    base.write_text("")
    write(it.path, "7")
    it.path.write_text(f'extends = "base.toml"\n{it.path.read_text()}')

    assert it.watch.reload() is False
    assert "base.toml: is empty" in str(it.faults[0])
    base.write_text("# All of it is in x.toml.\n")
    assert it.watch.reload() is True


async def test_a_file_that_is_being_written_is_not_taken_yet(it: Watched) -> None:
    async with it.watch:
        it.path.write_text("")
        await it.clock.advance(1.5)
        write(it.path, "7")
        await it.clock.advance(1)
        assert it.timeout_s == 5
        await it.clock.advance(1)

    assert it.timeout_s == 7


async def test_a_broken_file_leaves_the_old_policy_and_is_reported(it: Watched) -> None:
    async with it.watch:
        write(it.path, "0")
        await it.clock.advance(10)

    assert it.timeout_s == 5
    assert len(it.faults) == 1
    assert it.watch.fault is it.faults[0]
    assert "must be above 0" in str(it.watch.fault)


async def test_a_broken_file_that_was_mended_is_taken(it: Watched) -> None:
    async with it.watch:
        write(it.path, "0")
        await it.clock.advance(3)
        write(it.path, "8")
        await it.clock.advance(3)

    assert it.timeout_s == 8
    assert it.watch.fault is None


async def test_a_policy_that_one_tool_cannot_work_under_changes_no_tool(it: Watched) -> None:
    write(
        it.path,
        "7",
        '[families.all]\nmatch = "*"\nbreaker.cooldown_s = 300\n[tools.other]\ntimeout_s = 1\n',
    )

    assert not it.watch.reload()
    assert it.timeout_s == 5


async def test_a_file_that_went_leaves_the_old_policy(it: Watched) -> None:
    async with it.watch:
        it.path.unlink()
        await it.clock.advance(3)
        assert it.timeout_s == 5
        write(it.path, "9")
        await it.clock.advance(3)

    assert it.timeout_s == 9


async def test_a_file_that_is_extended_is_watched_too(tmp_path: Path) -> None:
    base, clock = tmp_path / "base.toml", FakeClock()
    write(base, "5")
    (tmp_path / "x.toml").write_text('extends = "base.toml"\n')
    policies = Policies.load(tmp_path / "x.toml")
    pipeline = Pipeline([scripted(name="tool")], policies=policies, clock=clock)

    async with watched(tmp_path / "x.toml", pipeline):
        write(base, "6")
        await clock.advance(3)

    assert pipeline.policy_of("tool").timeout_s == 6


async def test_a_call_under_way_ends_under_the_old_policy(it: Watched) -> None:
    running = asyncio.ensure_future(it.pipeline.call("tool"))
    await it.clock.advance(1)
    write(it.path, "60")

    assert it.watch.reload()

    early = await it.clock.run(running)
    assert early.failure is not None
    assert early.failure.code is FailureCode.TIMEOUT
    assert (await it.clock.run(it.pipeline.call("tool"))).text == "late"


async def test_what_limits_and_circuits_hold_survives(tmp_path: Path) -> None:
    path, clock = tmp_path / "x.toml", FakeClock()
    more = 'rate = "2/minute"\nbreaker.threshold = 1\n[tools.sick]\nbreaker.threshold = 1\n'
    write(path, "5", more)
    sick = scripted(ConnectionError("down"), name="sick")
    pipeline = Pipeline(
        [scripted("done", name="tool"), sick], policies=Policies.load(path), clock=clock
    )
    watch = watched(path, pipeline)
    for name in ("tool", "tool", "sick"):
        await clock.run(pipeline.call(name))

    write(path, "6", more)
    assert watch.reload()

    codes = [(await clock.run(pipeline.call(name))).failure for name in ("tool", "sick")]
    assert [failure and failure.code for failure in codes] == [
        FailureCode.RATE_LIMITED,
        FailureCode.CIRCUIT_OPEN,
    ]


async def test_the_environment_counts_at_each_reload(tmp_path: Path) -> None:
    path = tmp_path / "x.toml"
    write(path, "5")
    pipeline = Pipeline([scripted(name="tool")], policies=Policies.load(path))
    said = {"SEAWALL_POLICY__TOOLS__tool__TIMEOUT_S": "3s"}

    watched(path, pipeline, environment=said).reload()

    assert pipeline.policy_of("tool").timeout_s == 3


def test_a_look_needs_a_time_between() -> None:
    with pytest.raises(ValueError, match="every_s must be above 0"):
        watched("x.toml", Pipeline([]), every_s=0)
