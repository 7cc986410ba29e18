"""The state of one breaker: closed, open after failures in a row, half-open while it is probed.

    closed ── `threshold` failures in a row ──▶ open ── cooldown over, somebody asks ──▶ half-open
      ▲                                          ▲                                          │
      │                                          └──── a probe fails: cooldown doubles ─────┤
      └──────────── `permits` probes succeed: cooldown is the first one again ──────────────┘

Where the policy gives a rate, the share of failed or slow calls in a window decides instead, and
while half-open the share of them among `permits` probes.

pybreaker counts failures in a row and holds the state; when it is asked is decided here. Its lock
is never held while a tool runs: outcomes are told to it afterwards. Times are those of the
monotonic clock that is handed in, never pybreaker's. One event loop uses a circuit; nothing here
waits.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NoReturn, TypeAlias

import msgspec

from seawall.layers.breaker.probes import Probes
from seawall.layers.breaker.windows import Rates, rates_for

if TYPE_CHECKING:
    from collections.abc import Callable

    from pybreaker import CircuitBreaker

    from seawall.contract.policy import BreakerPolicy

Permit: TypeAlias = int
"""Leave to make one attempt. Settle each exactly once; what comes too late is ignored."""

FIRST_PERMIT: Permit = 1
"""What a new circuit hands out first, so that it need not be made before something fails."""

_NOT_CLOSED: Permit = -1
_SLOW = "slow calls"
_LONGEST_KIND = 160
_HINT_WHILE_PROBED_S = 1.0
_LAPSE_MARGIN_S = 10.0
_NAMES = {"closed": "closed", "open": "open", "half-open": "half_open"}


class FailureReported(Exception):  # noqa: N818  # names what happened; only pybreaker sees it
    """How a failure is told to pybreaker; its listeners get it with the kind of error."""


class Counts(msgspec.Struct, kw_only=True):
    """What has happened to a circuit since it was made or reset."""

    successes: int = 0
    failures: int = 0
    neutral: int = 0
    """Attempts that said nothing about the tool's health."""
    given_back: int = 0
    """Attempts that were not made, or were cancelled."""
    stale: int = 0
    """Outcomes that came too late to count."""
    refused: int = 0
    opened: int = 0
    """How often it opened, by itself or by hand."""
    lapsed: int = 0
    """Probes that were never settled."""


class Circuit:
    """Decides whether an attempt may be made, and learns from what came of it.

    An attempt that began before a change of state can neither close nor reopen the
    circuit. While half-open as many probes as `policy.permits` are out at once; so
    many have to succeed, and one that fails opens it again. A probe that is never
    settled lapses after twice the cooldown and 10 s. Opening by itself happens only
    when a failure is reported, half-opening only in `acquire`: there is no timer.
    `on_change` is told the old and the new state after each change, and is not to use
    the circuit meanwhile.
    """

    is_closed: bool
    """Whether every attempt gets leave."""
    decided: float
    """When it last looked at the clock to decide: to ask, to open, to let a call into a window."""

    __slots__ = (
        "_cooldown_over",
        "_counts",
        "_epoch",
        "_held_open",
        "_is_shown",
        "_kind",
        "_machine",
        "_now",
        "_on_change",
        "_policy",
        "_probes",
        "_rates",
        "_serial",
        "_storage",
        "decided",
        "is_closed",
    )

    def __init__(
        self,
        policy: BreakerPolicy,
        now: Callable[[], float],
        on_change: Callable[[str, str], None] | None = None,
    ) -> None:
        # Imported with the first circuit: pybreaker brings redis and tornado if they are there.
        import pybreaker  # noqa: PLC0415

        self._policy = policy
        self._now = now
        self._on_change = on_change
        self._is_shown = False
        self._storage = pybreaker.CircuitMemoryStorage(pybreaker.STATE_CLOSED)
        self._machine = pybreaker.CircuitBreaker(
            fail_max=policy.threshold,
            reset_timeout=policy.cooldown_s,
            success_threshold=policy.permits,
            state_storage=self._storage,
            throw_new_error_on_trip=False,
        )
        self._serial = FIRST_PERMIT
        # The permit of all attempts while closed; one that nobody holds while it is not.
        self._epoch: Permit = FIRST_PERMIT
        self.is_closed = True
        self._probes = Probes(policy.permits)
        self._rates: Rates | None = rates_for(policy, None, policy)
        self._cooldown_over = 0.0
        self._held_open = False
        self._kind = ""
        self._counts = Counts()
        self.decided = 0.0

    @property
    def machine(self) -> CircuitBreaker:
        """The object of pybreaker, to add listeners to; do not call through it."""
        # Until somebody has it, nobody hears what it does: while closed its counter is all of it.
        self._is_shown = True
        return self._machine

    @property
    def state(self) -> str:
        """`closed`, `open` or `half_open`; open also after the cooldown, until somebody asks."""
        return _NAMES[self._machine.current_state]

    @property
    def failures(self) -> int:
        """Failures in a row, which the threshold is about; or in the window, with a rate."""
        rates = self._rates
        return self._machine.fail_counter if rates is None else rates.window.failed

    @property
    def successes(self) -> int:
        """Probes that succeeded since it is half-open, which `permits` is about."""
        return self._machine.success_counter

    @property
    def last_error(self) -> str:
        """The kind of the last failure, cut to a bound; empty after a success."""
        return self._kind

    @property
    def cooldown_s(self) -> float:
        """How long it stays open this time, or will the next time."""
        return self._machine.reset_timeout

    @property
    def is_probed(self) -> bool:
        """Whether a probe is out, or some have succeeded and others are to follow."""
        judged = self.successes if self._rates is None else self._rates.probes.calls
        return self.state == "half_open" and (judged > 0 or self._probes.are_out(self._now()))

    @property
    def held_open(self) -> bool:
        """Whether it was opened by hand, so that no probe is let through."""
        return self._held_open

    @property
    def counts(self) -> Counts:
        """What has happened so far; a copy."""
        return msgspec.structs.replace(self._counts, lapsed=self._probes.lapsed)

    def acquire(self) -> Permit | None:
        """Return leave for one attempt, or None: the tool is to be left alone."""
        epoch = self._epoch
        return epoch if epoch > 0 else self._probe()

    def success(self, permit: Permit, *, slow: bool = False) -> None:
        """Settle an attempt that did what it should; with a rate, it counts whether it was slow."""
        if permit != self._epoch:
            self._probe_succeeded(permit, slow=slow)
            return
        self._counts.successes += 1
        if self._rates is not None:
            self._weigh(self._rates, failed=False, slow=slow)
        elif self._storage.counter:
            self._kind = ""
            if self._is_shown:
                self._machine.call(_succeed)
            else:
                self._storage.reset_counter()

    def failure(
        self,
        permit: Permit,
        error_kind: str,
        *,
        slow: bool = False,
        retry_after_s: float | None = None,
    ) -> None:
        """Settle an attempt that failed by a fault of the tool or of what it stands on.

        If it opens the circuit, that stays open for `retry_after_s` at least, within its bound.
        """
        probing = permit != self._epoch
        if probing and not self._settled(permit):
            return
        self._counts.failures += 1
        self._kind = error_kind[:_LONGEST_KIND] or self._kind
        opened = self._counts.opened
        if self._rates is None:
            is_last = probing or self._storage.counter + 1 >= self._policy.threshold
            if not (is_last or self._is_shown):
                self._storage.increment_counter()
                return
            self._fail(probing=probing)
        elif probing:
            self._judge(self._rates, failed=True, slow=slow)
        else:
            self._weigh(self._rates, failed=True, slow=slow)
        if retry_after_s is not None and self._counts.opened > opened:
            least_s = min(retry_after_s, self._policy.max_cooldown_s)
            self._cooldown_over = max(self._cooldown_over, self._now() + least_s)

    def _fail(self, *, probing: bool) -> None:
        before = self.state
        try:
            self._machine.call(_fail, self._kind)
        except FailureReported:
            pass
        finally:
            # Also when a listener of the machine raises: the two must not disagree.
            if self.state == "open":
                self._opened(before, widen=probing)

    def answered(self, permit: Permit, *, slow: bool = False) -> None:
        """Settle an attempt that the tool answered by an error of its own: it is in reach.

        That closes a half-open circuit; while closed it does not end a row of failures, but in a
        window it is a call that did not fail.
        """
        if permit != self._epoch:
            self._probe_succeeded(permit, slow=slow)
            return
        self._counts.neutral += 1
        if self._rates is not None:
            self._weigh(self._rates, failed=False, slow=slow)

    def neutral(self, permit: Permit) -> None:
        """Settle an attempt that says nothing of the tool's health; a probe is handed back."""
        if permit == self._epoch or self._settled(permit):
            self._counts.neutral += 1

    def give_back(self, permit: Permit) -> None:
        """Settle an attempt that was cancelled or not made; a probe is handed back."""
        if permit == self._epoch or self._settled(permit):
            self._counts.given_back += 1

    def seconds_to_probe(self) -> float:
        """Seconds until `acquire` would give leave; only a hint while probed or held open.

        Exact while it cools down: who asks then is not refused, if nobody else has asked.
        """
        if self._epoch > 0:
            return 0.0
        if self._held_open:
            return self._policy.max_cooldown_s
        at = self._now()
        if self.state == "open" or at < self._cooldown_over:
            return _seconds_until(self._cooldown_over, at)
        self._probes.at_once = self._probes_left()
        return 0.0 if self._probes.has_room(at) else _HINT_WHILE_PROBED_S

    def follow_open(self, left_s: float, cooldown_s: float, kind: str) -> None:
        """Be open, to be probed after so long, because another process says so."""
        if self._held_open:
            return
        before = self.state
        self._kind = kind[:_LONGEST_KIND]
        self._machine.reset_timeout = min(
            max(cooldown_s, self._policy.cooldown_s), self._policy.max_cooldown_s
        )
        if before != "open":
            self._machine.open()
            self._opened(before, widen=False)
        self._cooldown_over = self._now() + left_s

    def follow_close(self) -> None:
        """Be closed because another process says so, unless it was opened by hand here."""
        if not self._held_open and self._epoch < 0:
            self.force_close()

    def put_off(self, seconds: float) -> None:
        """Let no probe through for so long: another process has one out."""
        self._cooldown_over = max(self._cooldown_over, self._now() + seconds)

    def force_open(self) -> None:
        """Open it by hand. No probe is let through until `force_close` or `reset`."""
        before = self.state
        self._held_open = True
        if before != "open":
            self._machine.open()
            self._opened(before, widen=False)

    def force_close(self) -> None:
        """Close it by hand, with no failures counted and the first cooldown."""
        self._held_open = False
        if self._epoch > 0:
            self._kind = ""
            self._storage.reset_counter()
            if self._rates is not None:
                self._rates.clear()
            return
        before = self.state
        self._machine.close()
        self._closed(before)

    def reset(self) -> None:
        """Forget everything: it is as new, and attempts still running no longer count."""
        self.force_close()
        self._epoch = self._next_serial()
        self._counts = Counts()
        self._probes.lapsed = 0

    def retune(self, policy: BreakerPolicy) -> None:
        """Go on under other numbers: state, streak and the probes that are out stay.

        A cooldown that was widened stays so, within the new bounds, and counts from the next
        opening; one that runs ends when it was going to. A window that is another begins anew.
        """
        self._rates = rates_for(policy, self._rates, self._policy)
        widened = self._machine.reset_timeout > self._policy.cooldown_s
        self._policy = policy
        self._machine.fail_max = policy.threshold
        self._machine.success_threshold = policy.permits
        wanted = max(self._machine.reset_timeout, policy.cooldown_s) if widened else 0.0
        self._machine.reset_timeout = min(max(wanted, policy.cooldown_s), policy.max_cooldown_s)

    def _probe(self) -> Permit | None:
        at = self.decided = self._now()
        if self._held_open or at < self._cooldown_over:
            self._counts.refused += 1
            return None
        if self.state == "open":
            self._machine.half_open()
            self._tell("open", "half_open")
        self._probes.at_once = self._probes_left()
        permit = self._next_serial()
        lapse_at = at + 2 * self._machine.reset_timeout + _LAPSE_MARGIN_S
        if self._probes.hand_out(permit, at, lapse_at):
            return permit
        self._counts.refused += 1
        return None

    def _probes_left(self) -> int:
        """How many probes may be out: with a rate, as many as are still to be judged."""
        judged = 0 if self._rates is None else self._rates.probes.calls
        return self._policy.permits - judged

    def _weigh(self, rates: Rates, *, failed: bool, slow: bool) -> None:
        """Let a call into the window, and open if too many of its calls went wrong."""
        self.decided = self._now()
        rates.window.add(self.decided, failed=failed, slow=slow)
        if not rates.exceeded():
            return
        self._kind = self._kind if rates.window.failed else _SLOW
        self._machine.open()
        self._opened("closed", widen=False)

    def _judge(self, rates: Rates, *, failed: bool, slow: bool) -> None:
        """Let a probe count, and decide once all have."""
        rates.probes.add(0.0, failed=failed, slow=slow)
        too_many = rates.probed()
        if too_many is None:
            return
        before = self.state
        if too_many:
            self._kind = self._kind or _SLOW
            self._machine.open()
            self._opened(before, widen=True)
        else:
            self._machine.close()
            self._closed(before)

    def _probe_succeeded(self, permit: Permit, *, slow: bool) -> None:
        if not self._settled(permit):
            return
        self._counts.successes += 1
        if self._rates is not None:
            self._judge(self._rates, failed=False, slow=slow)
            return
        before = self.state
        try:
            self._machine.call(_succeed)
        finally:
            if self.state == "closed":
                self._closed(before)

    def _settled(self, permit: Permit) -> bool:
        """Take back a probe's permit and say whether its outcome counts."""
        counts = self._probes.take_back(permit, self._now())
        if not counts:
            self._counts.stale += 1
        return counts

    def _opened(self, before: str, *, widen: bool) -> None:
        if widen:
            doubled = 2 * self._machine.reset_timeout
            self._machine.reset_timeout = min(doubled, self._policy.max_cooldown_s)
        self.decided = self._now()
        self._cooldown_over = self.decided + self._machine.reset_timeout
        self._epoch = _NOT_CLOSED
        self.is_closed = False
        self._probes.clear()
        if self._rates is not None:
            self._rates.clear()
        self._counts.opened += 1
        self._tell(before, "open")

    def _closed(self, before: str) -> None:
        self._machine.reset_timeout = self._policy.cooldown_s
        self._kind = ""
        self._probes.clear()
        if self._rates is not None:
            self._rates.clear()
        self._epoch = self._next_serial()
        self.is_closed = True
        self._tell(before, "closed")

    def _next_serial(self) -> int:
        self._serial += 1
        return self._serial

    def _tell(self, before: str, after: str) -> None:
        if self._on_change is not None:
            self._on_change(before, after)


def _succeed() -> None:
    """Do nothing: how pybreaker learns of a success."""


def _fail(kind: str) -> NoReturn:
    raise FailureReported(kind)


def _seconds_until(due: float, at: float) -> float:
    wait_s = max(due - at, 0.0)
    # The difference may be rounded down, and then the sum is not yet there.
    while at + wait_s < due:
        wait_s = math.nextafter(wait_s, math.inf)
    return wait_s
