"""Where a replay of a live run ends otherwise than it did: at which boundary, and how near to it.

Two decisions that lie a few microseconds apart may fall the other way when they are made again. A
call that ended otherwise changes the circuit, the rate or the line for those after it, so of each
tool's differences the first is told with its boundary, and the others follow from it.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

import msgspec

from seawall.orchestration.replay.plan import entered_ms
from seawall.orchestration.replay.simulate import recorded_end

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from seawall.contract.policy import RunPolicy
    from seawall.orchestration.replay.simulate import Ended
    from seawall.recording.trace_file import Recorded, Trace

FOLLOWS_S = 60.0
"""How long after a difference another of the same tool may come of it."""

_CIRCUIT = frozenset({"circuit_open"})
_RATE = frozenset({"rate_limited"})
_ROOM = frozenset({"overloaded"})


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """A call that ended otherwise in a replay than it did."""

    call_id: str
    tool: str
    arrival_s: float
    was: str
    """How it ended, with the attempts that it took: `tool_failed after 2 attempts`."""
    would_be: str
    boundary: str
    """What decides between the two: `circuit`, `rate`, `room`, `timeout` or `deadline`."""
    distance_ms: float | None
    """How near one of its decisions is to that boundary; None if nothing is known."""
    follows: str = ""
    """The id of an earlier call of the tool that this one may come of; then that counts."""


def differences(
    trace: Trace,
    ended: Sequence[Ended | None],
    policies: Mapping[str, RunPolicy],
    changes: Mapping[str, Sequence[float]],
) -> list[Difference]:
    """Tell the differences between what happened and a replay, in the order of arrival.

    `policies` are those of the replay by tool, `changes` the times at which it opened or closed
    the circuit of a tool, granted a probe, or let somebody out of its room.
    """
    found: list[Difference] = []
    roots: dict[str, Difference] = {}
    for call, after in zip(trace.calls, ended, strict=True):
        before = recorded_end(call)
        if after is None or before.same(after):
            continue
        boundary = _boundary(before, after)
        earlier = roots.get(call.tool)
        if earlier is not None and call.arrival_s - earlier.arrival_s > FOLLOWS_S:
            earlier = None
        near_ms = _distance_ms(call, boundary, policies[call.tool], changes.get(call.tool, ()))
        one = Difference(
            call_id=call.call_id,
            tool=call.tool,
            arrival_s=call.arrival_s,
            was=_said(before),
            would_be=_said(after),
            boundary=boundary,
            distance_ms=near_ms,
            follows="" if earlier is None else earlier.call_id,
        )
        roots[call.tool] = one if earlier is None else earlier
        found.append(one)
    return found
