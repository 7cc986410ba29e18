"""What is kept for a client that reads slowly."""

from __future__ import annotations

from typing import Any

import pytest

from seawall.edges.gateway.asked import Asked
from seawall.edges.gateway.stream import MAX_WAITING, MAX_WAITING_BYTES, Stream
from seawall.pipeline.clock import SystemClock


async def _sent(sizes: list[int]) -> list[bytes]:
    """What a client gets that did not read while events of these sizes came."""
    got: list[bytes] = []

    async def send(message: Any) -> None:
        got.append(message.get("body", b""))

    async def receive() -> Any:
        raise AssertionError

    stream = Stream(
        Asked({"method": "GET", "path": "/events", "headers": []}, receive, send), SystemClock()
    )
    for number, size in enumerate(sizes):
        stream.put("event", f"{number} {'x' * size}")
    stream.end()
    await stream.drain()
    assert len(got) <= 2  # the headers, and all that waited at once
    return [b"%s\n\n" % event for event in b"".join(got).split(b"\n\n") if event]


@pytest.mark.parametrize(
    ("sizes", "kept"),
    [
        ([1] * 10, 10),
        ([1] * (MAX_WAITING + 10), MAX_WAITING),
        ([MAX_WAITING_BYTES // 4] * 10, 3),
        ([MAX_WAITING_BYTES * 2], 1),
        ([1, MAX_WAITING_BYTES * 2], 1),
        ([MAX_WAITING_BYTES * 2, 1], 1),
    ],
)
async def test_the_newest_events_are_kept_within_a_number_and_a_size(
    sizes: list[int], kept: int
) -> None:
    events = await _sent(sizes)
    assert len(events) == kept
    assert events[-1].startswith(b'event: event\ndata: "%d ' % (len(sizes) - 1))
