"""Tell a task group's cancel of its own task from one that comes from outside.

A group whose body has ended waits for its tasks; if one of them fails then, the group cancels the
task that waits and, before Python 3.13, never takes that cancel back. The task would seem to be
cancelled for the rest of its life.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

_TAKEN_BACK = sys.version_info >= (3, 13)
_WAITING = asyncio.TaskGroup.__aexit__.__code__


def cancelling_group(coro: Any, task: asyncio.Task[Any]) -> asyncio.TaskGroup | None:
    """Give the group that `coro` waits in the end of, if it was this that cancelled `task`."""
    if _TAKEN_BACK:
        return None
    while coro is not None:
        if getattr(coro, "cr_code", None) is _WAITING:
            group: asyncio.TaskGroup = coro.cr_frame.f_locals["self"]
            ours = group._parent_task is task  # type: ignore[attr-defined]  # noqa: SLF001  # nothing else tells
            requested = group._parent_cancel_requested  # type: ignore[attr-defined]  # noqa: SLF001  # as above
            return group if ours and requested else None
        coro = getattr(coro, "cr_await", None)
    return None
