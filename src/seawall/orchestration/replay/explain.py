"""Where a replay of a live run ends otherwise than it did: at which boundary, and how near to it.

Two decisions that lie a few microseconds apart may fall the other way when they are made again. A
call that ended otherwise changes the circuit, the rate or the line for those after it, so of each
tool's differences the first is told with its boundary, and the others follow from it.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

import msgspec

from seawall.orchestration.replay.simulate import recorded_end

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from seawall.contract.policy import RunPolicy
    from seawall.contract.span import Span
    from seawall.orchestration.replay.simulate import Ended, Simulation
    from seawall.recording.trace_file import Recorded, Trace

FOLLOWS_S = 60.0
"""How long after a difference another of the same tool may come of it."""

_BY_REASON = {
    "circuit_open": "circuit",
    "rate_limited": "rate",
    "overloaded": "room",
    "deadline_exceeded": "deadline",
    "attempt_timeout": "timeout",
}
"""What decides between two ends, by the reason of either; the first that is found."""


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """A call that ended otherwise in a replay than it did."""

    call_id: str
    tool: str
    arrival_s: float
    was: str
    """How it ended, and after how many attempts: `tool_failed after 2`."""
    would_be: str
    boundary: str
    """What decides between the two: `circuit`, `rate`, `room`, `deadline` or `timeout`."""
    distance_ms: float | None
    """How near one of its decisions is to that boundary; None if nothing is known."""
    follows: str = ""
    """The id of an earlier call of the tool that this one may come of; then that counts."""


def differences(
    trace: Trace, ended: Sequence[Ended | None], replay: Simulation
) -> list[Difference]:
    """Tell what differs between a run and its replay under the same policy, by arrival."""
    found: list[Difference] = []
    roots: dict[str, Difference] = {}
    for number, (call, after) in enumerate(zip(trace.calls, ended, strict=True)):
        if after is None or recorded_end(call).same(after):
            continue
        root = roots.get(call.tool)
        if root is not None and call.arrival_s - root.arrival_s > FOLLOWS_S:
            root = None
        one = _difference(call, after, replay, number, "" if root is None else root.call_id)
        roots[call.tool] = root or one
        found.append(one)
    return found


def _difference(
    call: Recorded, after: Ended, replay: Simulation, number: int, follows: str
) -> Difference:
    before = recorded_end(call)
    reasons = {before.reason, after.reason}
    boundary = next((_BY_REASON[one] for one in _BY_REASON if one in reasons), "circuit")
    policy = replay.policies[call.tool]
    near = [*_DISTANCES[boundary](call, policy, replay)]
    short_s = replay.short.get(number)
    if short_s is not None:
        near.append(short_s * 1000)
    return Difference(
        call_id=call.call_id,
        tool=call.tool,
        arrival_s=call.arrival_s,
        was=_said(before),
        would_be=_said(after),
        boundary=boundary,
        distance_ms=min(near, default=None),
        follows=follows,
    )


def _said(end: Ended) -> str:
    return f"{end.reason or end.outcome} after {end.attempts}"


def _short(call: Recorded) -> Iterator[float]:
    """How much later a refusal of it would have been none."""
    last = None if call.end is None else call.end.instants
    for instants in (*(span.instants for span in call.spans), last):
        if instants is not None and instants.short_ms is not None:
            yield instants.short_ms


def _moments(call: Recorded) -> Iterator[float]:
    """When something was decided about it, in milliseconds after its arrival."""
    for span in call.spans:
        yield from (span.queue_ms, span.queue_ms + span.duration_ms)
        if span.instants is not None and span.instants.asked_ms is not None:
            yield span.instants.asked_ms
    if call.end is not None:
        yield call.end.elapsed_ms


def _to(call: Recorded, times: Sequence[float]) -> Iterator[float]:
    """How near these times come to its moments, in milliseconds."""
    for moment_ms in _moments(call):
        at = call.arrival_s + moment_ms / 1000
        place = bisect_left(times, at)
        for near in times[max(place - 1, 0) : place + 1]:
            yield abs(near - at) * 1000


def _circuit(call: Recorded, _: RunPolicy, replay: Simulation) -> Iterator[float]:
    yield from _short(call)
    yield from _to(call, replay.turned.get(call.tool, ()))


def _rate(call: Recorded, _: RunPolicy, __: Simulation) -> Iterator[float]:
    yield from _short(call)


def _room(call: Recorded, _: RunPolicy, replay: Simulation) -> Iterator[float]:
    yield from _to(call, replay.left.get(call.tool, ()))


def _deadline(call: Recorded, policy: RunPolicy, _: Simulation) -> Iterator[float]:
    own = call.spans[0].instants
    limit_ms = None if own is None else own.deadline_ms
    if limit_ms is None and policy.deadline_s is not None:
        limit_ms = policy.deadline_s * 1000
    if limit_ms is None:
        return
    for span in call.spans:
        ended_ms = span.queue_ms + span.duration_ms
        for wait_s in (0.0, *policy.delays_s):
            yield abs(ended_ms + wait_s * 1000 - limit_ms)


def _timeout(call: Recorded, policy: RunPolicy, _: Simulation) -> Iterator[float]:
    for span in call.spans:
        limit_ms = _limit_ms(span, policy)
        if span.attempt and limit_ms is not None:
            yield abs(span.duration_ms - limit_ms)


def _limit_ms(span: Span, policy: RunPolicy) -> float | None:
    if span.instants is not None and span.instants.limit_ms is not None:
        return span.instants.limit_ms
    return None if policy.timeout_s is None else policy.timeout_s * 1000


_DISTANCES = {
    "circuit": _circuit,
    "rate": _rate,
    "room": _room,
    "deadline": _deadline,
    "timeout": _timeout,
}
