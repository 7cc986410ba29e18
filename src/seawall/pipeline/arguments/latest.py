"""What is found out about a schema is kept for the schemas that needed it last, not for all."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Protocol
from weakref import ref

if TYPE_CHECKING:

    class Forgetful(Protocol):
        """Whoever keeps something that can be made again."""

        def forget(self) -> None:
            """Let go of it."""


class Latest:
    """Lets those forget what they made who made it longest ago, once there are too many.

    Nobody is kept alive by it. Several threads may use it at once.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._order: deque[ref[Forgetful]] = deque()

    def made(self, keeper: Forgetful) -> None:
        """Note that somebody has made something to keep, and not before or not any more."""
        self._order.append(ref(keeper))
        while len(self._order) > self._most:
            oldest = self._order.popleft()()
            if oldest is not None:
                oldest.forget()
