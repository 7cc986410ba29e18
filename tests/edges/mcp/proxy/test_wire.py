"""The HTTP client for servers nearby."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from seawall.edges.mcp.proxy.exchange import ServerGone
from seawall.edges.mcp.proxy.wire import WireClient
from seawall.pipeline.clock import SystemClock

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


class Spoken:
    """A server that says what it is given, once for each request, and counts its connections."""

    def __init__(self, *answers: bytes) -> None:
        self.answers = list(answers)
        self.connections = 0
        self.heard = b""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        while self.answers:
            try:
                self.heard += await reader.readuntil(b"\r\n\r\n")
            except asyncio.IncompleteReadError:
                break
            answer = self.answers.pop(0)
            writer.write(answer)
            if b"connection: close" in answer or b"HTTP/1.1 200 OK\r\n\r\n" in answer:
                break
            if not answer.endswith((b"no", b"0\r\n\r\n")):
                break
        writer.close()
        await writer.wait_closed()


@asynccontextmanager
async def client_of(spoken: Spoken) -> AsyncIterator[WireClient]:
    server = await asyncio.start_server(spoken.serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    client = WireClient(f"http://127.0.0.1:{port}/mcp", SystemClock(), 5.0)
    try:
        yield client
    finally:
        client.close()
        server.close()
        await asyncio.sleep(0.05)  # until both sides have heard of the end


async def got(client: WireClient) -> tuple[int, bytes]:
    async with client.open("POST", "/mcp", [(b"a", b"b")], b"") as connection:
        body = b"".join([piece async for piece in connection.pieces()])
        return connection.status, body


CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"
LENGTH = b"HTTP/1.1 404 Not Found\r\ncontent-length: 2\r\n\r\nno"
EARLY = b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n" + LENGTH
CLOSED = b"HTTP/1.1 200 OK\r\n\r\nuntil the end"


async def test_bodies_are_read_however_they_are_framed() -> None:
    spoken = Spoken(CHUNKED, LENGTH, EARLY, CLOSED)
    async with client_of(spoken) as client:
        found = [await got(client) for _ in range(4)]

    assert found == [(200, b"abcde"), (404, b"no"), (404, b"no"), (200, b"until the end")]
    assert spoken.connections == 1
    assert b"host: 127.0.0.1" in spoken.heard
    assert b"content-length: 0" in spoken.heard


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\nconnection: close\r\n\r\nshort",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n3\r\nab",
        b"no HTTP at all\r\n\r\n",
        b"",
    ],
)
async def test_an_answer_that_breaks_off_is_no_answer(answer: bytes) -> None:
    spoken = Spoken(answer)
    async with client_of(spoken) as client:
        with pytest.raises(ServerGone) as gone:
            await asyncio.wait_for(got(client), 5)

    assert gone.value.may_have_run is True


async def test_nobody_there_means_that_nothing_was_run() -> None:
    client = WireClient("http://127.0.0.1:1/mcp", SystemClock(), 5.0)

    with pytest.raises(ServerGone) as gone:
        await got(client)

    assert gone.value.may_have_run is False


async def test_a_header_cannot_smuggle_another() -> None:
    async with client_of(Spoken(LENGTH)) as client:
        with pytest.raises(ServerGone):
            async with client.open("GET", "/", [(b"a", b"b\r\nevil: 1")], b""):
                pass
