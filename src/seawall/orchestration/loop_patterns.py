"""Repetition in a row of keys: pure arithmetic."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def repeated(keys: Sequence[int], window: int, threshold: int) -> dict[int, int]:
    """Keys that stand at least `threshold` times among the last `window`, with their counts."""
    return {key: n for key, n in Counter(keys[-window:]).items() if n >= threshold}


def rounds(keys: Sequence[int], length: int) -> int:
    """How many times the last `length` keys stand in a row at the end; 0 if they are all one."""
    cycle = keys[-length:]
    if len(cycle) < length or len(set(cycle)) == 1:
        return 0
    count, end = 1, len(keys) - length
    while end >= length and keys[end - length : end] == cycle:
        count, end = count + 1, end - length
    return count
