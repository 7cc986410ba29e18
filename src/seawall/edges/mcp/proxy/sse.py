"""Server-sent events, cut apart without changing a byte."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from seawall.edges.mcp.proxy.messages import MAX_MESSAGE_BYTES, on_one_line
from seawall.pipeline.foreign import log

if TYPE_CHECKING:
    from seawall.edges.mcp.proxy.messages import Message

_BREAK = rb"(?:\r\n|\n|\r(?!\n))"
_END = re.compile(_BREAK + _BREAK)
_LINE = re.compile(rb"\r\n|\n|\r")


NOTHING = b": \r\n\r\n"
"""What stands in a stream for an event that is left out."""


class Event(msgspec.Struct, frozen=True):
    """One event: its bytes, with the blank line that ends it, and what it says."""

    raw: bytes
    data: bytes
    id: bytes = b""
    retry: bytes = b""
    kind: bytes = b""


class TooLong(Exception):  # noqa: N818  # named by what is wrong with it
    """An event beyond the bound for one message."""


class Events:
    """Takes a stream in pieces and gives its events."""

    def __init__(self) -> None:
        self._rest = b""
        self._looked = 0

    def feed(self, data: bytes) -> list[Event]:
        """Give the events that are complete now; raises `TooLong`."""
        rest = self._rest + data if self._rest else data
        found: list[Event] = []
        start, look = 0, max(self._looked - 3, 0)
        while (end := _END.search(rest, look)) is not None:
            found.append(_event(rest[start : end.end()]))
            start = look = end.end()
        self._rest = rest[start:]
        self._looked = len(self._rest)
        if self._looked > MAX_MESSAGE_BYTES:
            raise TooLong
        return found


def _event(raw: bytes) -> Event:
    data: list[bytes] = []
    fields: dict[bytes, bytes] = {}
    for line in _LINE.split(raw):
        name, colon, value = line.partition(b":")
        if not name or not colon:
            continue  # blank, or a comment
        value = value.removeprefix(b" ")
        if name == b"data":
            data.append(value)
        else:
            fields[name] = value
    return Event(
        raw,
        b"\n".join(data),
        fields.get(b"id", b""),
        fields.get(b"retry", b""),
        fields.get(b"event", b""),
    )


def unread(event: Event) -> bytes:
    """Give what goes on of an event that says what is no message: nothing, if it says anything.

    Who cuts the stream apart otherwise, or reads what is no JSON, would hear what nobody looked at.
    """
    if not event.data:
        return event.raw
    log.warning("the server sent an event that is no message: %r", event.data[:200])
    return NOTHING


def passed(event: Event, message: Message) -> bytes:
    """Give an event as it came, or written anew if its message was."""
    return event.raw if message.raw is event.data else written(message.raw, event.id)


def written(data: bytes, event_id: bytes = b"") -> bytes:
    """Write one message as an event."""
    head = b"event: message\r\n"
    if event_id:
        head += b"id: " + event_id + b"\r\n"
    return head + b"data: " + on_one_line(data) + b"\r\n\r\n"
