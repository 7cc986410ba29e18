"""The probes of a half-open circuit that are out, and when each is given up."""

from __future__ import annotations


class Probes:
    """At most `at_once` permits; one that is never settled lapses, so that it blocks nobody."""

    __slots__ = ("_lapse_at", "at_once", "lapsed")

    def __init__(self, at_once: int) -> None:
        self.at_once = at_once
        self._lapse_at: dict[int, float] = {}
        self.lapsed = 0
        """How many were given up."""

    def has_room(self, at: float) -> bool:
        """Say whether one more may be out; changes nothing."""
        return sum(lapse_at > at for lapse_at in self._lapse_at.values()) < self.at_once

    def are_out(self, at: float) -> bool:
        """Say whether any is out; changes nothing."""
        return any(lapse_at > at for lapse_at in self._lapse_at.values())

    def hand_out(self, permit: int, at: float, lapse_at: float) -> bool:
        """Let one more out if there is room."""
        self._drop_lapsed(at)
        if len(self._lapse_at) >= self.at_once:
            return False
        self._lapse_at[permit] = lapse_at
        return True

    def take_back(self, permit: int, at: float) -> bool:
        """Say whether this probe is still out, and so counts; it no longer is."""
        self._drop_lapsed(at)
        return self._lapse_at.pop(permit, None) is not None

    def clear(self) -> None:
        """Give up all: what they bring is about a time that is over."""
        self._lapse_at.clear()

    def _drop_lapsed(self, at: float) -> None:
        for permit in [one for one, lapse_at in self._lapse_at.items() if lapse_at <= at]:
            del self._lapse_at[permit]
            self.lapsed += 1
