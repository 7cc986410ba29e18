"""What a client may send before there is a request, and for how long, over real sockets."""

from __future__ import annotations

import asyncio

import pytest
from tests.edges.gateway.serving import TOOLS, count_to, listening

from seawall import Annotations, Pipeline, tool

HEAD = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"
POST = (
    b"POST /tools/call HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n"
)
PIECE = b"a" * 65_536


async def _connected(base: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection("127.0.0.1", int(base.rpartition(":")[2]))


@pytest.mark.parametrize(
    ("begin", "again"),
    [
        (HEAD, b"X: " + PIECE + b"\r\n"),
        (HEAD + b"X: ", PIECE),
        (b"GET /", PIECE),
        (POST + b"0\r\n", b"X: " + PIECE + b"\r\n"),
        (POST + b"0\r\nX: ", PIECE),
    ],
    ids=["many headers", "one header", "an address", "many trailers", "one trailer"],
)
async def test_what_has_no_end_is_not_read_on(begin: bytes, again: bytes) -> None:
    async with listening(Pipeline(TOOLS)) as base:
        reader, writer = await _connected(base)
        writer.write(begin)
        sent = 0
        try:
            while not reader.at_eof() and sent < 64 * 1024 * 1024:
                writer.write(again)
                sent += len(again)
                await writer.drain()
                await asyncio.sleep(0)
        except ConnectionError:
            pass
        writer.close()
    assert sent < 16 * 1024 * 1024


@pytest.mark.parametrize(
    "begin", [b"", HEAD, POST, POST + b"5\r\nab"], ids=["nothing", "a head", "no body", "a piece"]
)
async def test_a_request_that_does_not_come_is_not_waited_for(begin: bytes) -> None:
    async with listening(Pipeline(TOOLS), read_s=0.2) as base:
        reader, writer = await _connected(base)
        writer.write(begin)
        said = await reader.read()
        writer.close()
    assert said.startswith(b"HTTP/1.1 408 ")


async def test_a_request_that_came_is_waited_for_however_long_its_call_takes() -> None:
    @tool(annotations=Annotations.for_reading())
    async def slow() -> str:
        """Take a while."""
        await asyncio.sleep(2.5)
        return "done"

    body = b'{"tool": "slow"}'
    async with listening(Pipeline([slow, count_to]), read_s=0.2) as base:
        reader, writer = await _connected(base)
        whole = POST + b"%x\r\n" % len(body) + body + b"\r\n0\r\n\r\n"
        writer.write(whole + b"GET /heal")  # and half a request behind it
        said = await reader.read(65_536)
        writer.close()
    assert said.startswith(b"HTTP/1.1 200 OK")


async def test_a_body_that_lost_itself_to_an_upgrade_is_explained() -> None:
    head = POST.replace(b"Transfer-Encoding: chunked\r\n", b"Content-Length: 2\r\n")[:-2]
    async with listening(Pipeline(TOOLS)) as base:
        reader, writer = await _connected(base)
        writer.write(head + b"Connection: Upgrade\r\nUpgrade: h2c\r\n\r\n{}")
        said = await reader.readuntil(b'"approval":null}')
        writer.close()
    assert said.startswith(b"HTTP/1.1 400 ")
    assert b"HttpClient.Version.HTTP_1_1" in said
