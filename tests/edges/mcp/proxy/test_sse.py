"""Events are cut apart without changing a byte."""

from __future__ import annotations

import pytest

from seawall.edges.mcp.proxy import sse
from seawall.edges.mcp.proxy.sse import Events, TooLong, written

STREAM = (
    b"id: 7\r\nretry: 100\r\ndata: \r\n\r\n"
    b": a comment\n\n"
    b'event: message\ndata: {"a":\ndata: 1}\n\n'
    b"data:x\r\r"
)


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7, 1000])
def test_events_are_the_same_however_they_come(size: int) -> None:
    events = Events()

    found = [e for at in range(0, len(STREAM), size) for e in events.feed(STREAM[at : at + size])]

    assert b"".join(event.raw for event in found) == STREAM
    assert [event.data for event in found] == [b"", b"", b'{"a":\n1}', b"x"]
    assert (found[0].id, found[0].retry) == (b"7", b"100")
    assert found[2].kind == b"message"


def test_what_is_written_is_read() -> None:
    (event,) = Events().feed(written(b'{"a":1}', b"9"))

    assert (event.data, event.id, event.kind) == (b'{"a":1}', b"9", b"message")


def test_an_event_without_an_end_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse, "MAX_MESSAGE_BYTES", 10)

    with pytest.raises(TooLong):
        Events().feed(b"data: 12345678901")


def test_a_message_of_several_lines_is_one_event() -> None:
    (event,) = Events().feed(written(b'{"id":1,\r\n"result":\n{}}', b"7"))

    assert (event.id, event.data) == (b"7", b'{"id":1,  "result": {}}')
