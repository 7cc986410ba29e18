"""What is known about the surroundings that tools need: a network, a browser, root.

Each flag is true, false or unknown. Unknown is not false: a flag that nobody has set, or whose
time is over, forbids nothing. The same summary goes into a prompt and into the gate's refusals.
"""

from __future__ import annotations

import inspect
import math
from typing import TYPE_CHECKING, Any

import msgspec

from seawall.contract.errors import ConfigurationError
from seawall.pipeline.foreign import guarded

if TYPE_CHECKING:
    from collections.abc import Callable

STANDARD_REPAIRS = {
    "accessibility": "Ask the user to turn on the accessibility service.",
    "keyboard": "Focus a text field first, so that the keyboard opens.",
    "network": "Ask the user to connect to the internet.",
    "root": "Ask the user to grant root access, or use a tool that works without it.",
    "shizuku": "Ask the user to start Shizuku and to authorise it.",
    "ubuntu": "Ask the user to install or start the Ubuntu environment.",
    "terminal_session": "Open a terminal session first.",
    "browser": "Open a page in the browser first.",
    "power": "Ask the user to connect the device to power.",
}
"""The standard flags in the order of the summary, and what to do when one of them is off."""

STANDARD_FLAGS = tuple(STANDARD_REPAIRS)

NOTHING_KNOWN = "Environment: nothing is known."

MAX_NAME = 64
MAX_REPAIR = 300


class _Fact(msgspec.Struct, frozen=True):
    value: bool
    until: float
    """Monotonic seconds; from then on it is unknown."""


class Environment:
    """Three-state flags; `now` gives monotonic seconds.

    What was set is believed until it expires or is taken back; then the flag's source, if it has
    one, is asked. May be set from any thread, as each flag is replaced as a whole.
    """

    def __init__(self, now: Callable[[], float], *, max_flags: int = 64) -> None:
        self._now = now
        self._max_flags = max_flags
        self._facts: dict[str, _Fact] = {}
        self._sources: dict[str, _Source] = {}
        self._repairs: dict[str, str] = {}

    def set(
        self,
        flag: str,
        value: bool | None,  # noqa: FBT001  # `set("network", False)` reads as it is meant
        ttl_s: float | None = None,
        repair: str | None = None,
    ) -> None:
        """Say that a flag is on or off, for `ttl_s` seconds or until further notice; None: unknown.

        `repair` tells a model what to do while the flag is off; it holds until the flag is
        set to None. Raises `ConfigurationError` for the 65th flag (`max_flags`).
        """
        _check_name(flag)
        if value is None:
            self._forget(flag)
            return
        if value is not True and value is not False:
            raise ConfigurationError(
                f"environment flag {flag!r} must be True, False or None, not {value!r:.40}"
            )
        self._make_room(flag)
        self._facts[flag] = _Fact(value, self._until(flag, ttl_s))
        self._keep_repair(flag, repair)

    def source(
        self,
        flag: str,
        ask: Callable[[], bool | None],
        *,
        fresh_s: float | None = None,
        repair: str | None = None,
    ) -> None:
        """Have a flag looked up when somebody needs it, and not again for `fresh_s` seconds.

        `ask` is called in the event loop, so it must answer at once. While it raises, or gives
        anything but True or False, the flag is unknown.
        """
        _check_name(flag)
        if not callable(ask) or inspect.iscoroutinefunction(ask):
            raise ConfigurationError(f"the source of environment flag {flag!r} must be a function")
        if fresh_s is not None:
            _check_seconds(flag, "fresh_s", fresh_s)
        self._make_room(flag)
        self._sources[flag] = _Source(flag, ask, fresh_s)
        self._keep_repair(flag, repair)

    def get(self, flag: str) -> bool | None:
        """Tell what is known now; None for unknown."""
        fact = self._facts.get(flag)
        if fact is not None and self._now() < fact.until:
            return fact.value
        source = self._sources.get(flag)
        return None if source is None else source.value(self._now())

    def flags(self) -> dict[str, bool]:
        """All that is known now: the standard flags in their order, then the others by name."""
        names = {*self._facts, *self._sources}
        others = sorted(names.difference(STANDARD_FLAGS))
        known = ((name, self.get(name)) for name in (*STANDARD_FLAGS, *others) if name in names)
        return {name: value for name, value in known if value is not None}

    def summary(self) -> str:
        """One line for a prompt; unknown flags are left out."""
        flags = self.flags()
        if not flags:
            return NOTHING_KNOWN
        said = ", ".join(f"{name} {'on' if value else 'off'}" for name, value in flags.items())
        return f"Environment: {said}."

    def repair(self, flag: str) -> str:
        """Tell what to do while the flag is off."""
        own = self._repairs.get(flag) or STANDARD_REPAIRS.get(flag)
        return own or f"Ask the user to make {flag} available."

    def _until(self, flag: str, ttl_s: float | None) -> float:
        if ttl_s is None:
            return math.inf
        _check_seconds(flag, "ttl_s", ttl_s)
        return self._now() + ttl_s

    def _keep_repair(self, flag: str, repair: str | None) -> None:
        if repair is not None:
            self._repairs[flag] = repair.strip()[:MAX_REPAIR]

    def _forget(self, flag: str) -> None:
        self._facts.pop(flag, None)
        if flag not in self._sources:
            self._repairs.pop(flag, None)

    def _make_room(self, flag: str) -> None:
        if flag in self._facts or flag in self._sources:
            return
        if len({*self._facts, *self._sources}) >= self._max_flags:
            self._drop_expired()
        if len({*self._facts, *self._sources}) >= self._max_flags:
            raise ConfigurationError(
                f"environment flag {flag!r} is one too many: there are {self._max_flags} already;"
                " set those to None that are no longer needed"
            )

    def _drop_expired(self) -> None:
        now = self._now()
        for flag, fact in tuple(self._facts.items()):
            if fact.until <= now:
                self._forget(flag)


class _Source:
    """A flag that is looked up when somebody needs it."""

    __slots__ = ("_ask", "_fresh_s", "_known", "_until", "_what")

    def __init__(self, flag: str, ask: Callable[[], Any], fresh_s: float | None) -> None:
        self._what = f"the source of environment flag {flag!r} raised"
        self._ask = ask
        self._fresh_s = fresh_s
        self._known: bool | None = None
        self._until = -math.inf

    def value(self, now: float) -> bool | None:
        if now < self._until:
            return self._known
        said = guarded(self._what, self._ask, _unknown)
        known = said if said is True or said is False else None
        if self._fresh_s is not None:
            self._known, self._until = known, now + self._fresh_s
        return known


def _unknown(_: BaseException) -> None:
    return None


def _check_name(flag: str) -> None:
    fine = isinstance(flag, str) and flag.strip() == flag != "" and flag.isprintable()
    if not fine or len(flag) > MAX_NAME:
        raise ConfigurationError(
            f"{flag!r:.80} is no name for an environment flag: use 1 to {MAX_NAME} printable"
            " characters without blanks around them"
        )


def _check_seconds(flag: str, setting: str, seconds: float) -> None:
    if isinstance(seconds, bool) or not 0 < seconds < math.inf:
        raise ConfigurationError(
            f"{setting} of environment flag {flag!r} must be above 0 (got {seconds!r});"
            " leave it out for no limit"
        )
