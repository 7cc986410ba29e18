"""Chance that is handed in, so that tests can fix it and replays repeat it."""

from __future__ import annotations

import random
import secrets
from typing import Protocol


class Chance(Protocol):
    """Draws numbers."""

    def uniform(self, low: float, high: float) -> float:
        """Draw a number between `low` and `high`, ends included."""
        ...

    def integer(self, low: int, high: int) -> int:
        """Draw a whole number between `low` and `high`, ends included."""
        ...

    def token(self, n: int) -> str:
        """Draw `n` bytes, written in hexadecimal."""
        ...


class SystemChance:
    """Real chance; tokens come from the system's secure source."""

    def __init__(self, seed: int | None = None) -> None:
        self._random = random.Random(seed)  # noqa: S311  # jitter is no secret
        self._seeded = seed is not None

    def uniform(self, low: float, high: float) -> float:
        """Draw a number between `low` and `high`."""
        return self._random.uniform(low, high)

    def integer(self, low: int, high: int) -> int:
        """Draw a whole number; from the secure source unless a seed was given."""
        if self._seeded:
            return self._random.randint(low, high)
        return low + secrets.randbelow(high - low + 1)

    def token(self, n: int) -> str:
        """Draw `n` bytes in hexadecimal; from the secure source unless a seed was given."""
        return self._random.randbytes(n).hex() if self._seeded else secrets.token_hex(n)
