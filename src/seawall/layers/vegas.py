"""How many calls a tool can take at once, learnt from how long they take. Pure: no clock, no waits.

TCP Vegas (Brakmo and Peterson, 1995) as a limit of concurrency, with the steps of Netflix's
`concurrency-limits` (`VegasLimit`). What is under way beyond what the tool works on waits there,
and shows as latency: `queue = limit * (1 - base / latency)`. Once in a round trip the limit goes
up while the queue is short, and down while it is long; it goes down by a tenth when most of what
is under way waits, or when calls ran into their timeout, the decrease of AIMD (Chiu and Jain,
1989). A round is known by the mean of its
latencies, as in the paper, without the slowest fifth, so that stragglers do not look like a queue.

`base` is the latency without a queue: the least that a round had. It is measured anew from time to
time by halving the limit for two rounds, as BBR does (Cardwell and others, 2016): else a tool that
became slower for good would seem to have a queue for ever.
"""

from __future__ import annotations

import math

PROBE_EVERY_S = 30.0
"""So long a base latency is believed that no call has come near to."""

ROUND_SAMPLES = 10
"""Samples of a round at least, or as many as the limit if that is less."""

MOST_SAMPLES = 1_000
"""Samples of a round at most."""

TRIMMED = 5
"""The slowest of so many samples does not count."""

NEAR = 1.05
DECREASE = 0.9
DRAIN_ROUNDS = 2


class Vegas:
    """A limit that follows the latencies it is told of."""

    __slots__ = (
        "_base_s",
        "_began",
        "_confirmed",
        "_drain_rounds",
        "_dropped",
        "_peak",
        "_resume",
        "_samples",
        "least",
        "limit",
        "most",
    )

    def __init__(self, initial: float, least: int, most: int) -> None:
        self.limit = float(initial)
        self.least = least
        self.most = most
        self._base_s = math.inf
        self._confirmed = self._began = -math.inf
        self._drain_rounds = 0
        self._resume = self.limit
        self._samples: list[float] = []
        self._peak = 0
        self._dropped = False

    @property
    def base_s(self) -> float:
        """The latency without a queue, as far as is known."""
        return self._base_s

    def bound(self, least: int, most: int) -> None:
        """Go on within other bounds."""
        self.least, self.most = least, most
        self.limit = min(max(self.limit, least), most)

    def sample(self, at: float, latency_s: float, in_flight: int) -> bool:
        """Learn from a call that was answered; whether the limit has changed."""
        samples = self._samples
        samples.append(latency_s)
        self._peak = max(self._peak, in_flight)
        if self._dropped or len(samples) < min(ROUND_SAMPLES, int(self.limit)):
            return False
        # A round trip has passed once the calls that began with it have ended.
        if at - self._began < latency_s and len(samples) < MOST_SAMPLES:
            return False
        return self._round_over(at, _trimmed_mean(samples))

    def drop(self, at: float, latency_s: float, in_flight: int) -> bool:
        """Learn from a call that ran into its timeout, or that the tool sent away."""
        self._dropped = True
        self._peak = max(self._peak, in_flight)
        return at - self._began >= latency_s and self._round_over(at, math.inf)

    def _round_over(self, at: float, latency_s: float) -> bool:
        before = int(self.limit)
        if latency_s <= self._base_s * NEAR:
            self._base_s = min(self._base_s, latency_s)
            self._confirmed = at
        if self._dropped:
            self._drain_rounds = 0
            self._to(self.limit * DECREASE)
        elif self._drain_rounds:
            self._drained(at, latency_s)
        else:
            self._step(at, latency_s)
        self._new_round(at)
        return int(self.limit) != before

    def _step(self, at: float, latency_s: float) -> None:
        if at - self._confirmed > PROBE_EVERY_S:
            self._resume, self._drain_rounds = self.limit, DRAIN_ROUNDS
            self._to(self.limit / 2)
        elif 2 * self._peak >= self.limit:
            self._follow(latency_s)

    def _follow(self, latency_s: float) -> None:
        limit = self.limit
        step = max(math.log10(limit), 1.0)
        queue = limit * (1 - self._base_s / latency_s) if latency_s else 0.0
        if queue <= step:
            self._to(limit + 6 * step)
        elif queue < 3 * step:
            self._to(limit + step)
        elif queue > 6 * step:
            far_off = queue > limit / 2
            self._to(min(limit * DECREASE, limit - step) if far_off else limit - step)

    def _drained(self, at: float, latency_s: float) -> None:
        """With the queue gone, take what is measured for the base, and go on as before."""
        self._drain_rounds -= 1
        if self._drain_rounds:
            return
        self._base_s = latency_s
        self._confirmed = at
        self._to(self._resume)

    def _to(self, limit: float) -> None:
        self.limit = min(max(limit, self.least), self.most)

    def _new_round(self, at: float) -> None:
        self._began = at
        self._samples = []
        self._peak = 0
        self._dropped = False


def _trimmed_mean(samples: list[float]) -> float:
    kept = sorted(samples)[: len(samples) - len(samples) // TRIMMED]
    return sum(kept) / len(kept)
