"""A server's output cut into lines, each of bounded length; and the last of what it said."""

from __future__ import annotations

import re

import msgspec

from seawall.pipeline.foreign import masked

STDERR_BYTES = 8 * 1024
"""Kept of what a server writes beside the protocol."""

_EDGE = 4096
_ID = rb"""(?P<id>-?\d{1,18}|"[^"\\]{1,64}")"""
_HEAD = re.compile(rb"""\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*""" + _ID + rb"\s*,")
_TAIL = re.compile(
    rb"""[}\]"\w]\s*,\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*"id"\s*:\s*"""
    + _ID
    + rb"""|"id"\s*:\s*"""
    + _ID.replace(b"<id>", b"<id2>")
    + rb"""\s*,\s*"jsonrpc"\s*:\s*"2\.0")\s*\}\s*$"""
)


class TooLong(msgspec.Struct, frozen=True):
    """A line that was longer than allowed, and was thrown away."""

    answers: int | str | None
    """The id of the request that it answers, where its ends say so."""


class Lines:
    """Cuts what is fed to it; never holds more than one line of `most` bytes."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._parts: list[bytes] = []
        self._size = 0
        self._head: bytes | None = None
        self._tail = b""

    def feed(self, data: bytes) -> list[bytes | TooLong]:
        """Take the next bytes; give the lines that are now whole."""
        found: list[bytes | TooLong] = []
        *ended, rest = data.split(b"\n")
        for piece in ended:
            self._take(piece)
            found.append(self._end())
        self._take(rest)
        return found

    def _take(self, piece: bytes) -> None:
        if self._head is None and self._size + len(piece) > self._most:
            line = b"".join([*self._parts, piece])
            self._head, piece = line[:_EDGE], line
            self._parts = []
        if self._head is not None:
            self._tail = (self._tail + piece)[-_EDGE:]
            return
        if piece:
            self._parts.append(piece)
            self._size += len(piece)

    def _end(self) -> bytes | TooLong:
        if self._head is None:
            line: bytes | TooLong = b"".join(self._parts)
        else:
            line = TooLong(_answered_in(self._head, self._tail))
        self._parts, self._size, self._head, self._tail = [], 0, None, b""
        return line


def answered(line: bytes) -> int | str | None:
    """Find whose answer a line is that cannot be read as a whole."""
    return _answered_in(line[:_EDGE], line[-_EDGE:])


def _answered_in(head: bytes, tail: bytes) -> int | str | None:
    """Find whose answer a message is by its first or last fields; nothing inside it is asked."""
    found = _HEAD.match(head) or _TAIL.search(tail)
    if found is None:
        return None
    raw = found["id"] if found.re is _HEAD else found["id"] or found["id2"]
    return raw[1:-1].decode("utf-8", "replace") if raw.startswith(b'"') else int(raw)


class Tail:
    """The last of what a server said beside the protocol, to explain what went wrong."""

    def __init__(self, most: int = STDERR_BYTES) -> None:
        self._most = most
        self._kept = b""
        self.total = 0
        """Bytes there were in all."""

    def add(self, data: bytes) -> None:
        """Take more; what is too old is forgotten."""
        self.total += len(data)
        self._kept = (self._kept + data)[-self._most :]

    def text(self, lines: int = 5, characters: int = 500) -> str:
        """The last lines, without what looks like a secret."""
        said = self._kept.decode("utf-8", "replace")
        kept = [line.strip() for line in said.splitlines() if line.strip()][-lines:]
        found = masked("".join(char if char.isprintable() else " " for char in " | ".join(kept)))
        return found if len(found) <= characters else "…" + found[-characters + 1 :]
