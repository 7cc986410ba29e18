"""Whether what a program gives is what it was asked for: told where it is given.

Else it would be told by an `AttributeError` deep inside, or at the first call.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from seawall.contract.errors import ConfigurationError, Fault
from seawall.layers.environment import Environment
from seawall.orchestration.loop_policy import LoopPolicy
from seawall.pipeline.foreign import type_name
from seawall.pipeline.session import Session
from seawall.policy.model import Policies
from seawall.policy.ready_made import ready_made_names

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Test = tuple["Callable[[Any], bool]", str]


def _has(*methods: str) -> Callable[[Any], bool]:
    return lambda value: all(callable(getattr(value, method, None)) for method in methods)


def _is(*kinds: type) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, kinds)


_RECORDER = "a recorder, with the methods for_tool and unknown"
_MAY_BE: Mapping[str, Test] = {
    "environment": (_is(Environment), "an Environment"),
    "trace": (_has("for_tool", "unknown", "spans"), "a TraceRecorder"),
    "usage": (_has("for_tool", "unknown", "snapshot"), "a UsageTracker"),
    "metrics": (_has("for_tool", "unknown", "watch"), "Metrics"),
    "clock": (_has("now", "wall", "call_later", "sleep"), "a Clock"),
    "chance": (_has("uniform", "integer", "token"), "a Chance"),
    "digest_key": (_is(bytes), "bytes"),
    "on_progress": (
        lambda value: callable(value) and not inspect.iscoroutinefunction(value),
        "a plain function of a report, done and total",
    ),
    "loop": (_is(LoopPolicy), "a LoopPolicy, or None for no detector"),
    "shared": (
        lambda value: isinstance(value, str) or _has("start", "forget_loop", "aclose")(value),
        "a Shared, or the URL of a Redis or Valkey",
    ),
    "layers": (
        lambda value: isinstance(value, Iterable) and not isinstance(value, str),
        "a list of layers",
    ),
}
_MUST_BE: Mapping[str, Test] = {
    "hooks": (
        lambda value: isinstance(value, Iterable) and not isinstance(value, str),
        "a list of hooks",
    ),
    "on_defect": (lambda value: value in ("result", "raise"), "result or raise"),
}


def check_given(policies: Any, recorders: Iterable[Any], **given: Any) -> None:
    """Raise `ConfigurationError` with everything that a pipeline cannot be made of."""
    faults = [*_policy_faults(policies), *_recorder_faults(recorders)]
    for key, value in given.items():
        fine, said = _MAY_BE.get(key) or _MUST_BE[key]
        if not (fine(value) or (value is None and key in _MAY_BE)):
            faults.append(Fault(f"must be {said}, not {_shown(value, key)}", key=key))
    if faults:
        raise ConfigurationError(faults)


def checked_width(width: Any) -> int:
    """Give how many calls of a turn run at once; raises `ConfigurationError` for what says none."""
    if isinstance(width, bool) or not isinstance(width, int) or width < 1:
        said = f"must be a whole number, at least 1 (got {width!r})"
        raise ConfigurationError([Fault(said, key="max_turn_width")])
    return width


def check_policies(policies: Any) -> None:
    """Raise `ConfigurationError` if these are none."""
    if faults := _policy_faults(policies, is_needed=True):
        raise ConfigurationError(faults)


def _policy_faults(policies: Any, *, is_needed: bool = False) -> list[Fault]:
    if isinstance(policies, Policies) or (policies is None and not is_needed):
        return []
    said = f"must be Policies, not {_shown(policies)}"
    if isinstance(policies, str):
        how = f'ready_made("{policies}")' if policies in ready_made_names() else f'"{policies:.40}"'
        said += f"; a file is read by Policies.load({how})"
    return [Fault(said, key="policies")]


def _recorder_faults(recorders: Any) -> list[Fault]:
    if not isinstance(recorders, Iterable):
        return [Fault(f"must be a list, not {_shown(recorders)}", key="recorders")]
    return [
        Fault(f"{_shown(one)} is not {_RECORDER}; give one", key=f"recorders[{position}]")
        for position, one in enumerate(recorders)
        if not _has("for_tool", "unknown")(one)
    ]


def _shown(value: Any, key: str = "") -> str:
    """Write what was given; of what may be secret, or long, its type alone."""
    if isinstance(value, (str, int, float)) and key != "digest_key":
        return f"{value!r:.40}"
    return f"a {type_name(value)}"


def check_session(session: Any) -> None:
    """Raise `TypeError` for what is no session."""
    if not isinstance(session, Session):
        how = f"; give Session({session!r:.40})" if isinstance(session, str) else ""
        raise TypeError(f"session must be a Session, not a {type(session).__name__}{how}")


def check_limits(**limits: Any) -> None:
    """Raise `TypeError` or `ValueError` for limits of a call that are no seconds above 0."""
    for name, seconds in limits.items():
        if seconds is None:
            continue
        if isinstance(seconds, bool) or not isinstance(seconds, (int, float)):
            raise TypeError(f"{name} must be a number of seconds, or None; it is {seconds!r:.40}")
        if not seconds > 0:
            raise ValueError(f"{name} must be above 0, or None for no limit; it is {seconds!r:.40}")
