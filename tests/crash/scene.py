"""What is killed: a turn of three calls that a person has approved, on a real database.

Its effects go to a file of their own. `Killing` stands between a pipeline and its store, and ends
the process by SIGKILL at a named point; the product knows nothing of it.
"""

from __future__ import annotations

import asyncio
import os
import signal
from typing import TYPE_CHECKING, Any

from seawall import Annotations, ApprovalSettings, Pipeline, Risk, Tool, ToolResult
from seawall.stores import open_state
from seawall.stores.approvals import approvals_in

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from seawall.contract.approval import Frozen
    from seawall.stores.memory_approvals import MemoryApprovals
    from seawall.stores.sql_approvals import SqlApprovals

STEPS = ("decide", "take", "begin", "settle", "finish")
PLACES = ("before", "within", "after")
POINTS = (
    *(f"{place}:{step}" for step in STEPS for place in PLACES),
    "tool:before_effect",
    "tool:after_effect",
    "after:resume",
)
"""Every point at which the process may be killed on its way from the answer to the last write."""

IN_DOUBT = {
    "after:begin",
    "before:settle",
    "within:settle",
    "tool:before_effect",
    "tool:after_effect",
}
"""Where nobody can know afterwards whether the call that was on its way took effect."""

CALLS = ("first", "second", "third")


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)
    signal.pause()


class Killing:
    """A store that ends the process when it comes to a point, for the call that is meant."""

    def __init__(self, store: MemoryApprovals | SqlApprovals, point: str, skip: int) -> None:
        self._store = store
        self._point = point
        self._left = skip

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def change(
        self,
        batch_id: str,
        step: Any,
        payloads: Mapping[str, bytes] | None = None,
        noting: Any = None,
    ) -> Frozen:
        meant = self._point.endswith(f":{step.name}") and self._is_next()
        where = self._point.partition(":")[0] if meant else ""

        def within(frozen: Frozen) -> Frozen:
            changed: Frozen = step(frozen)
            if where == "within":
                die()
            return changed

        within.name = step.name  # type: ignore[attr-defined]  # as steps have one
        if where == "before":
            die()
        found = await self._store.change(batch_id, within, payloads, noting)
        if where == "after":
            die()
        return found

    def _is_next(self) -> bool:
        self._left -= 1
        return self._left < 0


class Scene:
    """A pipeline of one process, on the state of the run."""

    def __init__(
        self, url: str, effects: Path, *, replay: bool = False, point: str = "", skip: int = 0
    ) -> None:
        self.effects = effects
        self.state = open_state(url)
        store: Any = approvals_in(self.state)
        self._point = point
        self._skip = skip
        if point:
            store = Killing(store, point, skip)
        self.pipeline = Pipeline(
            [self._tool(name, replay=replay) for name in CALLS],
            approvals=ApprovalSettings(store=store),
            state=self.state,
        )

    def _tool(self, name: str, *, replay: bool) -> Tool:
        async def run(arguments: dict[str, Any], _: Any) -> str:
            meant = name == CALLS[min(self._skip, len(CALLS) - 1)]
            if meant and self._point == "tool:before_effect":
                die()
            note(self.effects, f"{arguments['run']} {name}")
            if meant and self._point == "tool:after_effect":
                die()
            return f"{name} done"

        return Tool(
            name=name,
            description="Does something that must happen once.",
            input_schema={"type": "object", "properties": {"run": {"type": "string"}}},
            executor=run,
            annotations=Annotations.for_changing(),
            risk=Risk.HIGH if name == "first" else Risk.LOW,
            execution="sequential",
            replay="safe" if replay else "never",
        )

    async def frozen(self, run: str) -> str:
        """Have a turn wait; its id."""
        calls = [(name, {"run": run}, name) for name in CALLS]
        outcome = await self.pipeline.turn(calls)
        assert outcome.approval is not None, outcome
        return outcome.approval.id

    async def close(self) -> None:
        await self.pipeline.aclose()
        await self.state.aclose()


def note(effects: Path, line: str) -> None:
    """Have an effect, which stays whatever becomes of this process."""
    handle = os.open(effects, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(handle, f"{line}\n".encode())
        os.fsync(handle)
    finally:
        os.close(handle)


def effects_of(effects: Path, run: str) -> dict[str, int]:
    """How often each call of a run took effect."""
    lines = effects.read_text("utf-8").splitlines() if effects.exists() else []
    return {name: lines.count(f"{run} {name}") for name in CALLS}


def in_child(work: Callable[[], Any]) -> int:
    """Run in a process of its own; the signal that ended it, 0 if it came to its end."""
    child = os.fork()
    if not child:
        code = 70
        try:
            asyncio.run(work())
            code = 0
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return os.WTERMSIG(status)
    assert os.WEXITSTATUS(status) == 0, "the child failed by itself"
    return 0


def outcomes(results: tuple[ToolResult, ...]) -> dict[str, str]:
    """How each call ended, in one word."""
    return {
        result.call_id: "ok" if result.failure is None else result.failure.reason
        for result in results
    }
