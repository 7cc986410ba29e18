"""The last latencies of a tool, and how long a share of them took at most."""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections import deque


class Latencies:
    """The last `most` of them."""

    __slots__ = ("_most", "_ordered", "_recent")

    def __init__(self, most: int) -> None:
        self._most = most
        self._recent: deque[float] = deque()
        self._ordered: list[float] = []

    def __len__(self) -> int:
        return len(self._recent)

    def add(self, seconds: float) -> None:
        """Remember one, and forget the oldest."""
        self._recent.append(seconds)
        insort(self._ordered, seconds)
        if len(self._recent) > self._most:
            del self._ordered[bisect_left(self._ordered, self._recent.popleft())]

    def quantile(self, share: float) -> float:
        """Give the least latency that at least this share of all did not exceed."""
        # Nearest rank; the product may be a hair above the whole number that is meant.
        rank = math.ceil(share * len(self._ordered) - 1e-9)
        return self._ordered[max(rank, 1) - 1]
