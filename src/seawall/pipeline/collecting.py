"""When the garbage collector is to wait."""

from __future__ import annotations

import gc
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def uncollected() -> Iterator[None]:
    """Make much that stays: nothing is collected meanwhile, in no thread.

    A collection looks through all that there is, again and again as that grows: of 10,000 tools
    this took three times as long as making them.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
