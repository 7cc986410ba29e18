"""Events are cut apart without changing a byte."""

from __future__ import annotations

import pytest

from seawall.edges.mcp.proxy import sse
from seawall.edges.mcp.proxy.messages import Message, heard
from seawall.edges.mcp.proxy.sse import NOTHING, Event, Events, TooLong, passed, unread, written

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


def test_breaks_of_two_kinds_end_an_event_too() -> None:
    events = Events().feed(b"data: 1\n\r\ndata: 2\r\n\ndata: 3\r\rdata: 4\n\r")

    assert [event.data for event in events] == [b"1", b"2", b"3", b"4"]


def test_a_break_cut_in_two_is_one() -> None:
    events = Events()

    found = [*events.feed(b"data: 1\r"), *events.feed(b"\ndata: 2\r"), *events.feed(b"\n\r\n")]

    assert [event.data for event in found] == [b"1\n2"]


def test_an_event_that_says_what_is_no_message_does_not_go_on() -> None:
    said, quiet = Events().feed(b"data: {oops\n\n: ping\n\n")

    assert unread(said) == NOTHING
    assert unread(quiet) == b": ping\n\n"


def test_an_event_goes_on_as_it_came_unless_its_message_was_written_anew() -> None:
    plain, twice = Events().feed(
        b'id: 1\ndata: {"id":1,"result":{}}\n\nid: 2\ndata: {"id":1,"id":2,"result":{}}\n\n'
    )

    assert passed(plain, _heard(plain)) == plain.raw
    anew = passed(twice, _heard(twice))
    assert anew == b'event: message\r\nid: 2\r\ndata: {"id":2,"result":{}}\r\n\r\n'


def _heard(event: Event) -> Message:
    message = heard(event.data)
    assert message is not None
    return message
