"""A store of somebody's own that hangs."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from seawall import Annotations, ApprovalSettings, MemoryApprovals, Pipeline, Session, Tool
from seawall.contract.approval import ApprovalStatus
from seawall.contract.errors import ConfigurationError, StoreUnavailable
from seawall.orchestration.approvals.bounded import BoundedStore
from seawall.testing import FakeClock

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from seawall.orchestration.approvals.desk import Approvals


class Own:
    """A store of somebody's own: one in memory, whose steps may be made to hang."""

    def __init__(self) -> None:
        self._inner = MemoryApprovals()
        self.hanging: set[str] = set()
        self.is_deaf = False
        """Whether what hangs goes on when it is told to end."""
        self.released = asyncio.Event()

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if name not in self.hanging:
            return found

        async def hang(*arguments: Any, **options: Any) -> Any:
            while not self.released.is_set():
                try:
                    await self.released.wait()
                except asyncio.CancelledError:
                    if not self.is_deaf:
                        raise
            return await found(*arguments, **options)

        return hang


class Scene:
    def __init__(self) -> None:
        self.clock = FakeClock()
        self.store: Any = Own()
        self.ran = 0
        tool = Tool(
            name="delete",
            description="A tool.",
            input_schema={"type": "object"},
            executor=self._run,
            annotations=Annotations.for_destroying(),
        )
        settings = ApprovalSettings(store=self.store, store_timeout_s=3)
        self.pipeline = Pipeline([tool], approvals=settings, clock=self.clock)

    async def _run(self, *_: Any) -> str:
        self.ran += 1
        return "done"

    async def asked(self) -> str:
        result = await self.pipeline.call("delete", {}, session=Session())
        assert result.metadata is not None, result
        return str(result.metadata["approval_id"])


@pytest.mark.parametrize(
    ("method", "operation"),
    [
        ("page", lambda desk, _: desk.list()),
        ("page", lambda desk, _: desk.refresh()),
        ("load", lambda desk, request: desk.show(request)),
        ("payloads", lambda desk, request: desk.show(request)),
        ("change", lambda desk, request: desk.approve(request)),
        ("change", lambda desk, request: desk.deny(request)),
        ("change", lambda desk, request: desk.withdraw(request)),
        ("change", lambda desk, request: desk.expire(request)),
        ("prune", lambda desk, _: desk.expire()),
    ],
)
@pytest.mark.parametrize("is_deaf", [False, True])
async def test_no_operation_waits_longer_than_the_settings_say(
    method: str, operation: Callable[[Approvals, str], Awaitable[object]], *, is_deaf: bool
) -> None:
    scene = Scene()
    request = await scene.asked()
    scene.store.hanging, scene.store.is_deaf = {method}, is_deaf
    before = scene.clock.now()

    with pytest.raises(StoreUnavailable, match=r"Own .*no answer within 3 s") as raised:
        await scene.clock.run(operation(scene.pipeline.approvals, request))

    assert scene.clock.now() - before == 3
    assert raised.value.may_have_written is (method in ("change", "prune"))
    scene.store.released.set()
    await scene.clock.settle()


async def test_a_call_whose_request_comes_too_late_is_refused_and_the_request_withdrawn() -> None:
    scene = Scene()
    scene.store.hanging, scene.store.is_deaf = {"add"}, True

    refused = await scene.clock.run(scene.pipeline.call("delete", {}, session=Session()))
    assert refused.failure is not None
    assert refused.failure.reason == "gate_failed"
    await scene.clock.advance(20)
    scene.store.released.set()
    await scene.clock.advance(5)

    (found,) = await scene.pipeline.approvals.list(None)
    assert (found.status, scene.ran) == (ApprovalStatus.WITHDRAWN, 0)


async def test_what_a_store_answers_and_raises_is_passed_on() -> None:
    scene = Scene()
    request = await scene.asked()
    desk = scene.pipeline.approvals
    assert isinstance(desk.store, BoundedStore)

    await desk.approve(request)
    assert (await scene.pipeline.resume(request)).results[0].text == "done"
    assert [one.id for one in await desk.list(None)] == [request]
    with pytest.raises(LookupError):
        await desk.show("apr_none")


async def test_a_caller_that_is_cancelled_takes_the_step_along() -> None:
    scene = Scene()
    scene.store.hanging = {"page"}
    listing = asyncio.ensure_future(scene.pipeline.approvals.list())
    await scene.clock.settle()
    before = len(asyncio.all_tasks())

    listing.cancel()
    await scene.clock.settle()

    assert listing.cancelled()
    assert len(asyncio.all_tasks()) == before - 2


def test_a_limit_of_nothing_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="store_timeout_s"):
        ApprovalSettings(store_timeout_s=0)
