"""What is left of a tool's rate, in the fields of draft-ietf-httpapi-ratelimit-headers-10."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING

from seawall.layers.rate_limit.strategies import parse_rate

if TYPE_CHECKING:
    from seawall.edges.gateway.answers import Headers
    from seawall.orchestration.pipeline import Pipeline


def quota_headers(pipeline: Pipeline, tool: str) -> Headers:
    """Say a tool's rate and what is left, once that is less than half.

    Nothing without a rate, or with one per caller, or where processes have a part of it each. A
    client that is far from the limit need not slow down, and every header costs as much as a layer.
    """
    policy = pipeline.policy_of(tool)
    if policy is None or policy.rate is None:
        return ()
    slots = pipeline.states.find(tool)
    level = None if slots is None else slots.find("tokens_left")
    if slots is None or level is None:
        return ()
    quota, window_s, said = _said(policy.rate)
    if slots.find("tokens_most") != quota:
        return ()  # one process's part of the rate says nothing of what the others have left
    left: float = level()
    if left > quota / 2:
        return ()
    full_in_s = math.ceil((quota - left) * window_s / quota)
    return (said, (b"ratelimit", b'"tool";r=%d;t=%d' % (left, full_in_s)))


@lru_cache(maxsize=256)
def _said(rate: str) -> tuple[int, int, tuple[bytes, bytes]]:
    item = parse_rate(rate)
    quota, window_s = item.amount, item.get_expiry()
    return quota, window_s, (b"ratelimit-policy", b'"tool";q=%d;w=%d' % (quota, window_s))
