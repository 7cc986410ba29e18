"""One run: let a turn wait, approve and resume it in a process that is killed; resume again."""

from __future__ import annotations

import asyncio
import signal
from collections import Counter
from typing import TYPE_CHECKING

from tests.crash.scene import CALLS, IN_DOUBT, POINTS, Scene, effects_of, in_child, outcomes

from seawall import ApprovalStatus

if TYPE_CHECKING:
    from pathlib import Path


def killed_runs(url: str, effects: Path, runs: int) -> Counter[str]:
    """Go through the points again and again; how the calls ended. Raises for what must not be."""
    found: Counter[str] = Counter()
    for number in range(runs):
        point = POINTS[number % len(POINTS)]
        turn = number // len(POINTS)
        found.update(_one(url, effects, f"run{number}", point, turn % 3, replay=turn % 2 == 1))
    return found


def _one(url: str, effects: Path, run: str, point: str, skip: int, *, replay: bool) -> Counter[str]:
    if point.partition(":")[2] in ("decide", "take", "finish", "resume"):
        skip = 0  # these come once
    batch_id = asyncio.run(_frozen(url, effects, run))
    ended_by = in_child(lambda: _killed(url, effects, batch_id, point, skip, replay=replay))
    assert ended_by == signal.SIGKILL, f"{run}: {point} was not reached"
    before = effects_of(effects, run)
    said, again, read = asyncio.run(_recovered(url, effects, batch_id, replay=replay))
    after = effects_of(effects, run)
    where = (
        f"{run}, killed at {point} of call {skip}, replay={replay}: {before} then {after}, {said}"
    )
    _hold(where, point, skip, after, said, replay=replay)
    assert again == said or set(again.values()) == {"approval_used"}, f"{where}: again {again}"
    assert read == said, f"{where}: read {read}"
    return Counter(said.values())


def _hold(
    where: str,
    point: str,
    skip: int,
    effects: dict[str, int],
    said: dict[str, str],
    *,
    replay: bool,
) -> None:
    for position, name in enumerate(CALLS):
        in_doubt = point in IN_DOUBT and position == skip
        if replay and in_doubt:
            assert said[name] == "ok", where
            assert 1 <= effects[name] <= 2, where
        elif in_doubt:
            assert said[name] == "outcome_unknown", where
            assert effects[name] <= 1, where
        else:
            assert said[name] == "ok", where
            assert effects[name] == 1, where


async def _frozen(url: str, effects: Path, run: str) -> str:
    scene = Scene(url, effects)
    try:
        return await scene.frozen(run)
    finally:
        await scene.close()


async def _killed(
    url: str, effects: Path, batch_id: str, point: str, skip: int, *, replay: bool
) -> None:
    scene = Scene(url, effects, replay=replay, point=point, skip=skip)
    await scene.pipeline.approvals.approve(batch_id, by="somebody")
    await scene.pipeline.resume(batch_id)
    if point == "after:resume":
        from tests.crash.scene import die  # noqa: PLC0415  # not for those who live

        die()


async def _recovered(
    url: str, effects: Path, batch_id: str, *, replay: bool
) -> tuple[dict[str, str], dict[str, str], dict[str, str]]:
    """Do what an operator does afterwards; how the calls ended, said by three ways of asking."""
    scene = Scene(url, effects, replay=replay)
    try:
        pipeline = scene.pipeline
        batch = await pipeline.approvals.show(batch_id)
        if batch.status is ApprovalStatus.PENDING:
            await pipeline.approvals.approve(batch_id, by="somebody")
        if batch.status is not ApprovalStatus.DONE:
            said = outcomes((await pipeline.resume(batch_id)).results)
        else:
            said = outcomes((await pipeline.outcome(batch_id)).results)
        again = outcomes((await pipeline.resume(batch_id)).results)
        read = outcomes((await pipeline.outcome(batch_id)).results)
        return said, again, read
    finally:
        await scene.close()
