"""How calls of a tool are run: numbers only, checked when they are made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import msgspec

from seawall.contract.optional_policies import (
    AdaptiveLimitPolicy,
    CachePolicy,
    FallbackPolicy,
    HedgePolicy,
    RetryBudgetPolicy,
)
from seawall.contract.policy_faults import Faults

if TYPE_CHECKING:
    from collections.abc import Mapping

Mode = Literal["on", "shadow", "off"]
"""A layer that refuses can be on, off, or only say what it would have done."""


MAX_WINDOW_CALLS = 10_000
"""Calls that a window of calls may remember."""


class BreakerPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """When a tool that keeps failing is left alone, and for how long."""

    threshold: int = 5
    """Infrastructure failures in a row that open the circuit; not asked where a rate is given."""
    failure_rate: float | None = None
    """Share of the calls in the window that open it by failing: 0.5 is half of them."""
    slow_rate: float | None = None
    """Share of the calls in the window that open it by taking longer than `slow_call_s`."""
    slow_call_s: float | None = None
    """Seconds beyond which a call counts as slow, for `slow_rate`."""
    window_calls: int = 100
    """The window of the rates is so many calls; or, with `window_s`, a time."""
    window_s: float | None = None
    """The window in seconds, instead of the newest `window_calls`."""
    min_calls: int = 10
    """Calls in the window below which no rate is reckoned; all of a smaller window of calls."""
    cooldown_s: float = 15.0
    """From opening to the first probe; doubled by each failed probe."""
    max_cooldown_s: float = 120.0
    """Each probe that fails doubles the wait, up to this."""
    ignore: tuple[str, ...] = ()
    """Exception type names, base types included, that say nothing about the tool's health."""
    permits: int = 1
    """Probes while half-open, all at once if they come so."""
    honour_retry_after: bool = False
    """A failure that says when to come back keeps it open so long, up to `max_cooldown_s`."""
    mode: Mode = "on"
    """`shadow` lets through what it would refuse, and says so."""
    shared: str | None = None
    """Tools that give the same name share one circuit."""
    outside_retry: bool = False
    """Guard the whole call instead of each attempt: a call then counts once."""

    def __post_init__(self) -> None:
        faults = Faults("breaker.")
        faults.at_least(
            1,
            threshold=self.threshold,
            permits=self.permits,
            window_calls=self.window_calls,
            min_calls=self.min_calls,
        )
        faults.above_zero(
            cooldown_s=self.cooldown_s,
            max_cooldown_s=self.max_cooldown_s,
            slow_call_s=self.slow_call_s,
            window_s=self.window_s,
        )
        faults.shares(failure_rate=self.failure_rate, slow_rate=self.slow_rate)
        faults.flags(honour_retry_after=self.honour_retry_after, outside_retry=self.outside_retry)
        if not faults.found and self.max_cooldown_s < self.cooldown_s:
            faults.add("max_cooldown_s", f"is below cooldown_s ({self.cooldown_s:g})")
        faults.texts(ignore=self.ignore)
        faults.one_of(mode=(self.mode, ("on", "shadow", "off")))
        if not faults.found:
            self._check_windows(faults)
        faults.check()

    def _check_windows(self, faults: Faults) -> None:
        if self.window_calls > MAX_WINDOW_CALLS:
            faults.add("window_calls", f"is above {MAX_WINDOW_CALLS:,}; give window_s for a time")
        if self.slow_rate is not None and self.slow_call_s is None:
            faults.add("slow_rate", "needs slow_call_s, beyond which a call is slow")

    @property
    def by_rate(self) -> bool:
        """Whether shares of the calls in a window open it, and not failures in a row."""
        return self.failure_rate is not None or self.slow_rate is not None


class RunPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """How calls of a tool are run. None is no limit; 0 is refused where it would mean nothing."""

    timeout_s: float | None = None
    """Per attempt."""
    timeout_mode: Mode = "on"
    """For `timeout_s` alone: limits that a call brings, deadlines and silence always count."""
    deadline_s: float | None = None
    """The whole call: gates, waits and all attempts together."""
    idle_timeout_s: float | None = None
    """Without progress; renewed by each progress report."""
    grace_s: float = 1.0
    """How long a cancelled tool may take to end before it is let go."""
    max_threads: int = 8
    """Worker threads for a sync tool, those included that outlived their timeout."""
    max_retries: int = 0
    """Attempts after the first, of retry-safe tools only."""
    base_delay_s: float = 0.0
    """Full jitter: the n-th wait, n from 0, is uniform in 0 … min(max_delay_s, base * 2**n)."""
    max_delay_s: float = 30.0
    """Ceiling of a wait; a tool that asks for a longer one ends the call."""
    delays_s: tuple[float, ...] = ()
    """Exact waits instead of jitter."""
    rate: str | None = None
    """As `limits` reads it: `120/minute`."""
    rate_strategy: str = "token-bucket"
    """Or one of `limits`: `fixed-window`, `moving-window`, `sliding-window-counter`."""
    rate_key: tuple[str, ...] = ("tool",)
    """What has a budget of its own: any of `tool`, `caller`, `session`; or `global` alone."""
    rate_mode: Mode = "on"
    """`shadow` counts and refuses nobody; `off` does not count."""
    cost: int = 1
    """Tokens that one call takes."""
    on_store_down: Literal["fail-open", "fail-closed"] = "fail-open"
    """What a shared rate does without its store: count by itself, or refuse."""
    breaker: BreakerPolicy | None = None
    """None: no breaker."""
    fallback: FallbackPolicy | None = None
    """None: a failure stays one."""
    cache: CachePolicy | None = None
    """None: every call runs."""
    retry_budget: RetryBudgetPolicy | None = None
    """None: retries are bounded by `max_retries` alone."""
    hedge: HedgePolicy | None = None
    """None: one attempt at a time."""
    adaptive_limit: AdaptiveLimitPolicy | None = None
    """None: only `max_concurrency` counts."""
    max_concurrency: int | None = None
    """Calls under way at once."""
    max_concurrency_mode: Mode = "on"
    """`shadow` counts and refuses nobody."""
    max_result_bytes: int | None = None
    """Of what comes back, 256 at least; what is beyond is cut in the middle."""
    coercion: Literal["careful", "lenient", "off"] = "careful"
    """How arguments are mended: without loss, as lenient parsers do, or not at all."""
    check_mode: Mode = "on"
    """`shadow` runs calls whose arguments do not fit, and says so."""
    unknown_arguments: Literal["ignore", "refuse"] = "ignore"
    """What happens to arguments that neither the schema nor the function knows by name."""
    gate_mode: Mode = "on"
    """`shadow` asks nobody and denies nothing, and says what it would have done."""
    output: Literal["check", "warn", "off"] = "check"
    """What happens when a tool breaks its own output schema."""
    ledger: Literal["on", "off"] = "on"
    """Write down effects before and after; counts with a state that outlives the process only."""
    ledger_keep_s: float = 86_400.0
    """How long the outcome of a call with an idempotency key is kept."""
    spill: bool = False
    """Keep the text of results that `max_result_bytes` cuts, to be read with `result_read`; counts
    with a state only."""
    spill_keep_s: float = 3600.0
    """How long such a text is kept."""

    def __post_init__(self) -> None:
        faults = Faults()
        self._check_times(faults)
        self._check_counts(faults)
        self._check_words(faults)
        for name, kind in SECTIONS.items():
            section: Any = getattr(self, name)
            if section is not None and not isinstance(section, kind):
                faults.add(name, f"must be a {kind.__name__}, or None for none")
        faults.check()

    def _check_times(self, faults: Faults) -> None:
        faults.above_zero(
            timeout_s=self.timeout_s,
            deadline_s=self.deadline_s,
            idle_timeout_s=self.idle_timeout_s,
            max_delay_s=self.max_delay_s,
            ledger_keep_s=self.ledger_keep_s,
            spill_keep_s=self.spill_keep_s,
        )
        faults.not_negative(grace_s=self.grace_s, base_delay_s=self.base_delay_s)
        delays: Any = self.delays_s  # values come from anywhere, whatever their types say
        if isinstance(delays, (tuple, list)):
            for position, delay in enumerate(delays):
                faults.not_negative(**{f"delays_s[{position}]": delay})
        else:
            faults.add("delays_s", f"must be a list of seconds, not {delays!r}")

    def _check_counts(self, faults: Faults) -> None:
        faults.at_least(0, max_retries=self.max_retries)
        faults.at_least(
            1,
            max_threads=self.max_threads,
            cost=self.cost,
            max_concurrency=self.max_concurrency,
        )
        faults.at_least(256, max_result_bytes=self.max_result_bytes)

    def _check_words(self, faults: Faults) -> None:
        faults.one_of(
            coercion=(self.coercion, ("careful", "lenient", "off")),
            unknown_arguments=(self.unknown_arguments, ("ignore", "refuse")),
            output=(self.output, ("check", "warn", "off")),
            ledger=(self.ledger, ("on", "off")),
            on_store_down=(self.on_store_down, ("fail-open", "fail-closed")),
            **{name: (getattr(self, name), ("on", "shadow", "off")) for name in _MODES},
        )
        spill: Any = self.spill
        if not isinstance(spill, bool):
            faults.add("spill", f"must be true or false, not {self.spill!r}")
        faults.texts(rate_key=self.rate_key)
        if not faults.found and not _is_rate_key(self.rate_key):
            faults.add("rate_key", "takes any of tool, caller, session, or global alone")

    @property
    def attempts(self) -> int:
        """How often the executor may be started for one call of a retry-safe tool."""
        return 1 + (len(self.delays_s) if self.delays_s else self.max_retries)


SECTIONS: Mapping[str, type[msgspec.Struct]] = {
    "breaker": BreakerPolicy,
    "fallback": FallbackPolicy,
    "cache": CachePolicy,
    "retry_budget": RetryBudgetPolicy,
    "hedge": HedgePolicy,
    "adaptive_limit": AdaptiveLimitPolicy,
}
"""The parts of a policy that are tables of their own; each is None where it is off."""


_MODES = ("timeout_mode", "rate_mode", "check_mode", "gate_mode", "max_concurrency_mode")


def _is_rate_key(parts: tuple[str, ...]) -> bool:
    alone = "global" not in parts or len(parts) == 1
    return bool(parts) and alone and set(parts) <= {"tool", "caller", "session", "global"}


PRESETS: Mapping[str, RunPolicy] = {
    "quick_read": RunPolicy(
        timeout_s=30,
        max_retries=1,
        base_delay_s=0.4,
        rate="120/minute",
        breaker=BreakerPolicy(),
    ),
    "network": RunPolicy(
        timeout_s=90,
        max_retries=2,
        base_delay_s=0.8,
        rate="30/minute",
        breaker=BreakerPolicy(),
    ),
    "mutating": RunPolicy(timeout_s=60, breaker=BreakerPolicy()),
    "ladder": RunPolicy(
        timeout_s=90,
        # Longest wait first allowed by max_delay_s is 160 s, so the ceiling must be above it.
        max_delay_s=180,
        delays_s=(2, 5, 10, 20, 40, 80, 160),
        rate="30/minute",
        breaker=BreakerPolicy(),
    ),
    "legacy": RunPolicy(),
}
"""Ready-made policies; a policy file names them with `preset = "…"`."""
