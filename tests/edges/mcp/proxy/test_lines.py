"""A stream is cut into lines."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

import pytest

from seawall.edges.mcp.proxy import lines
from seawall.edges.mcp.proxy.lines import Splitter, reading, writing

if TYPE_CHECKING:
    from pathlib import Path


def split(*pieces: bytes) -> tuple[list[bytes], int]:
    found: list[bytes] = []
    dropped: list[int] = []
    splitter = Splitter(found.append, lambda: dropped.append(1))
    for piece in pieces:
        splitter.feed(piece)
    splitter.end()
    return found, len(dropped)


@pytest.mark.parametrize(
    "pieces",
    [
        (b"one\ntwo\r\n\n  \nthree\n",),
        (b"on", b"e\nt", b"wo\n", b"thr", b"ee"),
        (b"one\n", b"two\n", b"three\n"),
        tuple(bytes([byte]) for byte in b"one\ntwo\nthree\n"),
    ],
)
def test_lines_are_the_same_however_they_come(pieces: tuple[bytes, ...]) -> None:
    assert split(*pieces) == ([b"one", b"two", b"three"], 0)


def test_a_line_beyond_the_bound_is_dropped_and_the_next_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lines, "MAX_MESSAGE_BYTES", 4)

    assert split(b"123456", b"78\nabc\n") == ([b"abc"], 1)


async def test_files_serve_as_well_as_pipes(tmp_path: Path) -> None:
    given, taken = tmp_path / "in", tmp_path / "out"
    given.write_bytes(b"one\ntwo")
    found: list[bytes] = []
    over = asyncio.Event()

    incoming = os.open(given, os.O_RDONLY)
    outgoing = os.open(taken, os.O_WRONLY | os.O_CREAT)
    await reading(incoming, Splitter(found.append, lambda: None), over.set)
    output = await writing(outgoing)
    await asyncio.wait_for(over.wait(), 5)
    for line in found:
        output.write(line)
    os.close(incoming)
    os.close(outgoing)

    assert taken.read_bytes() == b"one\ntwo\n"
