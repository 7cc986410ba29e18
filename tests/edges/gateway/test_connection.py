"""What a client may send before there is a request, and for how long, over real sockets."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from tests.edges.gateway.serving import TOOLS, count_to, listening

from seawall import Annotations, Pipeline, tool
from seawall.edges.gateway import server
from seawall.edges.gateway.connection import SLACK_BYTES, Connection

HEAD = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"
POST = (
    b"POST /tools/call HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n"
)
PIECE = b"a" * 65_536


@pytest.fixture(autouse=True)
def _looks_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look for requests that do not come ten times a second, instead of once."""
    monkeypatch.setattr(server, "TICKS_OF_A_LOOK", 1)


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


async def test_headers_that_are_too_large_before_there_is_a_request_are_said_to_be() -> None:
    async with listening(Pipeline(TOOLS)) as base:
        reader, writer = await _connected(base)
        writer.write(HEAD + b"X: ")
        await asyncio.sleep(0.1)  # what is read together with its beginning is not counted
        # One byte too many, and none behind it: what is not read takes the answer along.
        writer.write(b"a" * (Connection.max_header_bytes + SLACK_BYTES + 1))
        said = await reader.read()
        writer.close()
    assert said.startswith(b"HTTP/1.1 431 ")
    assert _failure(said)["reason"] == "headers_too_large"


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
    assert _failure(said)["reason"] == "request_timeout"


def _failure(said: bytes) -> Any:
    head, _, body = said.partition(b"\r\n\r\n")
    assert b"content-type: application/json" in head
    assert b"connection: close" in head
    assert b"content-length: %d" % len(body) in head
    found = json.loads(body)
    assert found["isError"]
    return found["failure"]


@pytest.mark.parametrize(
    "sent",
    [
        b"\x16\x03\x01\x02\x00\x01\x00",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX\x01: 1\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"CONNECT localhost:1 HTTP/1.1\r\n\r\n",
    ],
    ids=["TLS", "a version", "a header", "two lengths", "a tunnel"],
)
async def test_what_is_no_request_is_answered_in_the_shape_of_all_others(sent: bytes) -> None:
    async with listening(Pipeline(TOOLS)) as base:
        reader, writer = await _connected(base)
        writer.write(sent)
        said = await reader.read()
        writer.close()
    assert said.startswith(b"HTTP/1.1 400 ")
    assert _failure(said)["reason"] == "bad_request"


@pytest.mark.parametrize(
    ("target", "host", "status"),
    [
        (b"http://localhost/tools", b"localhost", 200),
        (b"HTTP://LOCALHOST:81/tools?view=brief", b"localhost:81", 200),
        (b"http://localhost/tools", None, 200),
        (b"http://localhost", b"localhost", 200),
        (b"/tools?of=http://evil.example/", b"localhost", 200),
        (b"http://evil.example/tools", b"evil.example", 421),
        (b"http://evil.example/tools", None, 421),
        (b"http://evil.example/tools", b"localhost", 400),
        (b"http://localhost/tools", b"evil.example", 400),
        (b"http://localhost@evil.example/tools", None, 421),
        (b"http://evil.example?localhost/tools", None, 421),
        (b"http://127.0.0.1/tools", b"localhost", 400),
    ],
)
async def test_a_host_in_the_address_counts_like_the_header(
    target: bytes, host: bytes | None, status: int
) -> None:
    header = b"" if host is None else b"Host: " + host + b"\r\n"
    async with listening(Pipeline(TOOLS)) as base:
        reader, writer = await _connected(base)
        writer.write(b"GET " + target + b" HTTP/1.1\r\n" + header + b"Connection: close\r\n\r\n")
        said = await reader.read()
        writer.close()

    assert said.startswith(b"HTTP/1.1 %d " % status), said


async def test_a_request_that_came_is_waited_for_however_long_its_call_takes() -> None:
    @tool(annotations=Annotations.for_reading())
    async def slow() -> str:
        """Take a while."""
        await asyncio.sleep(0.8)  # several looks
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
