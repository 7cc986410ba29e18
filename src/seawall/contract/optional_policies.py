"""Settings of the layers that are off until a policy asks for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from seawall.contract.failure import REASONS, FailureCode
from seawall.contract.policy_faults import Faults

NEVER_REPLACED = (
    FailureCode.INVALID_ARGUMENT,
    FailureCode.PERMISSION_DENIED,
    FailureCode.UNKNOWN,
)
"""What no fallback answers: a model's own mistake, a person's or a policy's no, a doubt."""


class FallbackPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """What answers in place of a tool that failed: another tool, or a fixed result."""

    tool: str | None = None
    """Called with the same arguments, through all of its own layers."""
    text: str | None = None
    """A fixed answer instead."""
    structured_content: Mapping[str, Any] | None = None
    """Goes with `text`, or is the answer alone."""
    on: tuple[str, ...] = ("timeout", "rate_limited", "circuit_open", "execution_failed")
    """The codes and reasons it is for."""
    tell: bool = True
    """Tell the model too, by a line below the answer; metadata and spans say it always."""

    def __post_init__(self) -> None:
        faults = Faults("fallback.")
        faults.texts(on=self.on)
        faults.flags(tell=self.tell)
        for key in ("tool", "text"):
            value: Any = getattr(self, key)
            if value is not None and (not isinstance(value, str) or not value.strip()):
                faults.add(key, f"must be a text, not {value!r}")
        fixed: Any = self.structured_content
        if fixed is not None and not isinstance(fixed, Mapping):
            faults.add("structured_content", f"must be a table, not {fixed!r}")
        given = (self.tool is not None, self.text is not None or fixed is not None)
        if not faults.found and given[0] == given[1]:
            faults.add("tool", "give either a tool, or a fixed text or structured_content")
        if not faults.found:
            self._check_kinds(faults)
        faults.check()

    def _check_kinds(self, faults: Faults) -> None:
        if not self.on:
            faults.add("on", "is empty; leave it out for the usual kinds of failure")
        for kind in self.on:
            code = REASONS.get(kind)
            if kind in NEVER_REPLACED or code in NEVER_REPLACED:
                faults.add("on", f"must not name {kind!r}: such a refusal is the answer")
            elif code is None and kind not in set(FailureCode):
                faults.add("on", f"{kind!r} is neither a code nor a reason of a failure")


class CachePolicy(msgspec.Struct, frozen=True, kw_only=True):
    """For how long, and for whom, an answer of a read-only tool is given again."""

    ttl_s: float = 60.0
    """How old an answer may be, in seconds."""
    max_entries: int = 256
    """Answers kept for one tool; the least recently used go first."""
    max_bytes: int = 4 * 1024 * 1024
    """Bytes of the answers kept for one tool."""
    scope: Literal["session", "caller", "all"] = "session"
    """Who is given an answer again: its session alone, its caller, or everybody."""

    def __post_init__(self) -> None:
        faults = Faults("cache.")
        faults.above_zero(ttl_s=self.ttl_s)
        faults.at_least(1, max_entries=self.max_entries)
        faults.at_least(256, max_bytes=self.max_bytes)
        faults.one_of(scope=(self.scope, ("session", "caller", "all")))
        faults.check()


class RetryBudgetPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """How many of a tool's attempts may be retries and hedges, over a sliding window."""

    share: float = 0.2
    """Retries and hedges for each call in the window."""
    min_retries: int = 3
    """So many in a window are allowed in any case, so that a tool in little use is retried."""
    window_s: float = 60.0
    """Over which calls and retries are counted, in seconds."""
    mode: Literal["on", "shadow", "off"] = "on"
    """In shadow, attempts beyond it are made all the same, and noted."""

    def __post_init__(self) -> None:
        faults = Faults("retry_budget.")
        faults.one_of(mode=(self.mode, ("on", "shadow", "off")))
        faults.shares(share=self.share)
        faults.at_least(0, min_retries=self.min_retries)
        faults.above_zero(window_s=0 if self.window_s is None else self.window_s)
        faults.check()


class HedgePolicy(msgspec.Struct, frozen=True, kw_only=True):
    """When a second attempt of a read-only tool is begun beside a slow first one."""

    delay_s: float = 2.0
    """After so long; with `quantile` only until `min_samples` latencies are known."""
    quantile: float | None = None
    """After the time in which this share of the last attempts was answered: 0.95."""
    min_samples: int = 20
    """Calls that must have been measured before one is begun by their times."""
    max_extra: int = 1
    """Attempts beside the first, each after another delay."""

    def __post_init__(self) -> None:
        faults = Faults("hedge.")
        faults.not_negative(delay_s=self.delay_s)
        faults.at_least(1, min_samples=self.min_samples, max_extra=self.max_extra)
        faults.shares(quantile=self.quantile)
        if not faults.found and self.max_extra > MAX_EXTRA:
            faults.add("max_extra", f"must be at most {MAX_EXTRA}")
        if not faults.found and self.min_samples > MAX_SAMPLES:
            faults.add("min_samples", f"must be at most {MAX_SAMPLES}, which are kept")
        faults.check()


MAX_EXTRA = 10
MAX_SAMPLES = 100
"""Latencies that are remembered for the quantile."""


class AdaptiveLimitPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """Between which bounds the number of calls under way follows what the tool can take."""

    initial: int = 20
    """Calls under way that are let through at first."""
    min_limit: int = 1
    """Never fewer than this."""
    max_limit: int = 200
    """Never more than this."""
    mode: Literal["on", "shadow", "off"] = "on"
    """`shadow` finds the number and refuses nobody."""

    def __post_init__(self) -> None:
        faults = Faults("adaptive_limit.")
        faults.at_least(1, initial=self.initial, min_limit=self.min_limit, max_limit=self.max_limit)
        faults.one_of(mode=(self.mode, ("on", "shadow", "off")))
        if not faults.found and not self.min_limit <= self.initial <= self.max_limit:
            faults.add("initial", f"must be from {self.min_limit} to {self.max_limit}")
        faults.check()
