"""Checks of the numbers in a policy, all told at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from seawall.contract.errors import ConfigurationError, Fault

if TYPE_CHECKING:
    from collections.abc import Mapping


class Faults:
    """Collects what is wrong, so that all of it is told at once."""

    def __init__(self, prefix: str = "") -> None:
        self._prefix = prefix
        self.found: list[Fault] = []

    def add(self, key: str, message: str) -> None:
        """Note what is wrong with a key."""
        self.found.append(Fault(message, key=self._prefix + key))

    def above_zero(self, **values: float | None) -> None:
        """Numbers that must be above 0, or None where that means no limit."""
        self._numbers("must be above 0; leave it out for no limit", lambda n: n > 0, values)

    def not_negative(self, **values: float | None) -> None:
        """Numbers of which 0 is the least."""
        self._numbers("must not be negative", lambda n: n >= 0, values)

    def at_least(self, bound: int, **values: Any) -> None:
        """Whole numbers with a least value."""
        for key, value in values.items():
            if isinstance(value, float):
                self.add(key, f"must be a whole number, not {value!r}")
            else:
                self._numbers(f"must be at least {bound}", lambda n: n >= bound, {key: value})

    def shares(self, **values: float | None) -> None:
        """Shares of a whole: above 0, and 1 at most."""
        self._numbers("must be above 0 and at most 1", lambda n: 0 < n <= 1, values)

    def flags(self, **values: Any) -> None:
        """True or false."""
        for key, value in values.items():
            if not isinstance(value, bool):
                self.add(key, f"must be true or false, not {value!r}")

    def texts(self, **values: Any) -> None:
        """Lists of texts."""
        for key, value in values.items():
            fine = isinstance(value, (tuple, list)) and all(isinstance(v, str) for v in value)
            if not fine:
                self.add(key, f"must be a list of texts, not {value!r}")

    def one_of(self, **values: tuple[str, tuple[str, ...]]) -> None:
        """Words out of a list of words."""
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
        """Raise what was found as one `ConfigurationError`."""
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
    "failure_rate",
    "slow_rate",
    "slow_call_s",
    "window_s",
    "quantile",
}
