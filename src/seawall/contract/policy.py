"""How calls of a tool are run: numbers only, checked when they are made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import msgspec

from seawall.contract.errors import ConfigurationError, Fault

if TYPE_CHECKING:
    from collections.abc import Mapping

Mode = Literal["on", "shadow", "off"]
"""A layer that refuses can be on, off, or only say what it would have done."""


class BreakerPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """When a tool that keeps failing is left alone, and for how long."""

    threshold: int = 5
    """Infrastructure failures in a row that open the circuit."""
    cooldown_s: float = 15.0
    """From opening to the first probe; doubled by each failed probe."""
    max_cooldown_s: float = 120.0
    ignore: tuple[str, ...] = ()
    """Exception type names, base types included, that say nothing about the tool's health."""
    permits: int = 1
    """Probes at once while half-open."""
    mode: Mode = "on"
    shared: str | None = None
    """Tools that give the same name share one circuit."""
    outside_retry: bool = False
    """Guard the whole call instead of each attempt: a call then counts once."""

    def __post_init__(self) -> None:
        faults = _Faults("breaker.")
        faults.at_least(1, threshold=self.threshold, permits=self.permits)
        faults.above_zero(cooldown_s=self.cooldown_s, max_cooldown_s=self.max_cooldown_s)
        if not faults.found and self.max_cooldown_s < self.cooldown_s:
            faults.add("max_cooldown_s", f"is below cooldown_s ({self.cooldown_s:g})")
        faults.texts(ignore=self.ignore)
        faults.one_of(mode=(self.mode, ("on", "shadow", "off")))
        faults.check()


class RunPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """How calls of a tool are run. None is no limit; 0 is refused where it would mean nothing."""

    timeout_s: float | None = None
    """Per attempt."""
    deadline_s: float | None = None
    """The whole call: gates, waits and all attempts together."""
    idle_timeout_s: float | None = None
    """Without progress; renewed by each progress report."""
    grace_s: float = 1.0
    """How long a cancelled tool may take to end before it is let go."""
    max_threads: int = 8
    """Worker threads for a sync tool, those included that outlived their timeout."""
    max_retries: int = 0
    base_delay_s: float = 0.0
    """Full jitter: the n-th wait, n from 0, is uniform in 0 … min(max_delay_s, base * 2**n)."""
    max_delay_s: float = 30.0
    delays_s: tuple[float, ...] = ()
    """Exact waits instead of jitter."""
    rate: str | None = None
    """As `limits` reads it: `120/minute`."""
    rate_strategy: str = "token-bucket"
    """Or one of `limits`: `fixed-window`, `moving-window`, `sliding-window-counter`."""
    rate_key: tuple[str, ...] = ("tool",)
    """What has a budget of its own: any of `tool`, `caller`, `session`; or `global` alone."""
    rate_mode: Mode = "on"
    cost: int = 1
    on_store_down: Literal["fail-open", "fail-closed"] = "fail-open"
    breaker: BreakerPolicy | None = None
    max_concurrency: int | None = None
    max_concurrency_mode: Mode = "on"
    max_result_bytes: int | None = None
    coercion: Literal["careful", "lenient", "off"] = "careful"
    check_mode: Mode = "on"
    gate_mode: Mode = "on"
    output: Literal["check", "warn", "off"] = "check"
    """What happens when a tool breaks its own output schema."""
    ledger: Literal["on", "off"] = "on"
    """Write down effects before and after; counts with a state that outlives the process only."""
    ledger_keep_s: float = 86_400.0
    """How long the outcome of a call with an idempotency key is kept."""

    def __post_init__(self) -> None:
        faults = _Faults()
        faults.above_zero(
            timeout_s=self.timeout_s,
            deadline_s=self.deadline_s,
            idle_timeout_s=self.idle_timeout_s,
            max_delay_s=self.max_delay_s,
            ledger_keep_s=self.ledger_keep_s,
        )
        faults.not_negative(grace_s=self.grace_s, base_delay_s=self.base_delay_s)
        delays: Any = self.delays_s  # values come from anywhere, whatever their types say
        if isinstance(delays, (tuple, list)):
            for position, delay in enumerate(delays):
                faults.not_negative(**{f"delays_s[{position}]": delay})
        else:
            faults.add("delays_s", f"must be a list of seconds, not {delays!r}")
        faults.at_least(0, max_retries=self.max_retries)
        faults.at_least(
            1,
            max_threads=self.max_threads,
            cost=self.cost,
            max_concurrency=self.max_concurrency,
        )
        faults.at_least(256, max_result_bytes=self.max_result_bytes)
        faults.one_of(
            coercion=(self.coercion, ("careful", "lenient", "off")),
            output=(self.output, ("check", "warn", "off")),
            ledger=(self.ledger, ("on", "off")),
            on_store_down=(self.on_store_down, ("fail-open", "fail-closed")),
            **{
                name: (getattr(self, name), ("on", "shadow", "off"))
                for name in ("rate_mode", "check_mode", "gate_mode", "max_concurrency_mode")
            },
        )
        faults.texts(rate_key=self.rate_key)
        if not faults.found and not _is_rate_key(self.rate_key):
            faults.add("rate_key", "takes any of tool, caller, session, or global alone")
        breaker: Any = self.breaker
        if breaker is not None and not isinstance(breaker, BreakerPolicy):
            faults.add("breaker", "must be a BreakerPolicy, or None for no breaker")
        faults.check()

    @property
    def attempts(self) -> int:
        """How often the executor may be started for one call of a retry-safe tool."""
        return 1 + (len(self.delays_s) if self.delays_s else self.max_retries)


class _Faults:
    """Collects what is wrong, so that all of it is told at once."""

    def __init__(self, prefix: str = "") -> None:
        self._prefix = prefix
        self.found: list[Fault] = []

    def add(self, key: str, message: str) -> None:
        self.found.append(Fault(message, key=self._prefix + key))

    def above_zero(self, **values: float | None) -> None:
        self._numbers("must be above 0; leave it out for no limit", lambda n: n > 0, values)

    def not_negative(self, **values: float | None) -> None:
        self._numbers("must not be negative", lambda n: n >= 0, values)

    def at_least(self, bound: int, **values: Any) -> None:
        for key, value in values.items():
            if isinstance(value, float):
                self.add(key, f"must be a whole number, not {value!r}")
            else:
                self._numbers(f"must be at least {bound}", lambda n: n >= bound, {key: value})

    def texts(self, **values: Any) -> None:
        for key, value in values.items():
            fine = isinstance(value, (tuple, list)) and all(isinstance(v, str) for v in value)
            if not fine:
                self.add(key, f"must be a list of texts, not {value!r}")

    def one_of(self, **values: tuple[str, tuple[str, ...]]) -> None:
        for key, (value, allowed) in values.items():
            if value not in allowed:
                self.add(key, f"is {value!r}; use one of {', '.join(allowed)}")

    def _numbers(self, complaint: str, fine: Any, values: Mapping[str, float | None]) -> None:
        for key, value in values.items():
            if value is None and key in _OPTIONAL:
                continue
            if not isinstance(value, (int, float)) or isinstance(value, bool):
                self.add(key, f"must be a number, not {value!r}")
            elif not abs(value) <= _LARGEST or not fine(value):
                shown = f"{value:g}" if abs(value) <= _LARGEST else "not a number of this size"
                self.add(key, f"{complaint} (got {shown})")

    def check(self) -> None:
        if self.found:
            raise ConfigurationError(self.found)


_LARGEST = 1e15
"""Larger numbers of seconds, bytes or calls are slips; NaN is not below it either."""

_OPTIONAL = {
    "timeout_s",
    "deadline_s",
    "idle_timeout_s",
    "max_concurrency",
    "max_result_bytes",
}


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
