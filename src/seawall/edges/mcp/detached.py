"""Work that goes on in a task of its own, so that whoever waits for it may leave at once."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

T = TypeVar("T")


async def detached(
    work: Coroutine[Any, Any, T],
    *,
    tasks: set[asyncio.Task[Any]],
    given_up: Callable[[asyncio.Task[T]], None] | None = None,
) -> T | None:
    """Wait for the work; None if it was cancelled by somebody else than who waits here.

    When who waits is cancelled, `given_up` is told, the work is cancelled too, and nobody waits for
    how it ends. `tasks` holds it meanwhile.
    """
    task = asyncio.create_task(work)
    tasks.add(task)
    task.add_done_callback(tasks.discard)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        if task.cancelled():
            return None
        if given_up is not None:
            given_up(task)
        task.add_done_callback(_looked_at)
        task.cancel()
        raise


def _looked_at(task: asyncio.Task[Any]) -> None:
    """Nobody waits for it any more: its error has no reader."""
    if not task.cancelled():
        task.exception()
