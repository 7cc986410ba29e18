"""What result limits cut, for as long as the process lives."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from seawall.contract.ownership import holder_of
from seawall.contract.spill import SpillPart
from seawall.stores.shares import Share, to_drop

if TYPE_CHECKING:
    from seawall.pipeline.clock import Clock

PER_OWNER_BYTES = 16 * 1024 * 1024
TOTAL_BYTES = 64 * 1024 * 1024
"""Bounds: the oldest of an owner give way, then the oldest of the caller who has most."""


class _Kept(NamedTuple):
    owner: str
    data: bytes
    page_bytes: int
    expires: float


class MemorySpills:
    """Keeps texts in memory."""

    def __init__(
        self,
        clock: Clock,
        *,
        per_owner_bytes: int = PER_OWNER_BYTES,
        total_bytes: int = TOTAL_BYTES,
    ) -> None:
        self._clock = clock
        self._per_owner = per_owner_bytes
        self._total = total_bytes
        self._kept: dict[str, _Kept] = {}
        """The oldest first."""

    async def keep(
        self, spill_id: str, owner: str, data: bytes, page_bytes: int, keep_s: float
    ) -> None:
        """Keep a text; the oldest give way."""
        now = self._clock.now()
        for key in [key for key, kept in self._kept.items() if kept.expires <= now]:
            del self._kept[key]
        self._kept[spill_id] = _Kept(owner, data, page_bytes, now + keep_s)
        self._shrink([k for k, kept in self._kept.items() if kept.owner == owner], self._per_owner)
        self._shrink(list(self._kept), self._total)

    async def part(self, spill_id: str, owner: str, start: int, size: int) -> SpillPart | None:
        """Give some bytes of a text; None if it is gone, or somebody else's."""
        kept = self._kept.get(spill_id)
        if kept is None or kept.owner != owner or kept.expires <= self._clock.now():
            return None
        return SpillPart(kept.data[start : start + size], len(kept.data), kept.page_bytes)

    def _shrink(self, keys: list[str], most: int) -> None:
        """Drop the oldest of whoever has most of these until they fit."""
        kept = ((key, self._kept[key]) for key in keys)
        shares = [Share(key, holder_of(one.owner), len(one.data)) for key, one in kept]
        for key in to_drop(shares, most):
            del self._kept[key]
