"""Who has to make room: whoever has most of it, so that nobody can push others out."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence


class Share(NamedTuple):
    """A thing that is kept, and whose room it takes."""

    key: str
    holder: str
    size: int


def to_drop(kept: Sequence[Share], most: int) -> list[str]:
    """Say what has to go until the rest fits: each time the first of who then has most.

    `kept` begins with what is to go first. Of holders that have the same, the one whose thing
    stands first.
    """
    room: Counter[str] = Counter()
    for share in kept:
        room[share.holder] += share.size
    taken = sum(room.values())
    if taken <= most:
        return []
    queues: dict[str, list[Share]] = {}
    for share in reversed(kept):
        queues.setdefault(share.holder, []).append(share)
    order = {share.holder: -at for at, share in reversed(list(enumerate(kept)))}
    dropped: list[str] = []
    while taken > most:
        holder = max(
            (one for one in queues if queues[one]), key=lambda one: (room[one], order[one])
        )
        share = queues[holder].pop()
        room[holder] -= share.size
        taken -= share.size
        dropped.append(share.key)
    return dropped
