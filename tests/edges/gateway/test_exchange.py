"""Answers as they leave, over real sockets."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest
from tests.edges.gateway.serving import TOOLS, listening

from seawall import Pipeline
from seawall.edges.gateway.calls import Calls
from seawall.edges.gateway.connection import Connection
from seawall.edges.gateway.exchange import SHORT, Exchange, address_of
from seawall.edges.requests import WHOLE

BODY = b'{"tool": "add", "arguments": {"a": 1, "b": %d}, "requestId": "%d"}'


async def _connected(base: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection("127.0.0.1", int(base.rpartition(":")[2]))


async def _answered(base: str, request: bytes) -> bytes:
    """Give all that comes back until the server closes the connection."""
    reader, writer = await _connected(base)
    writer.write(request)
    said = await reader.read()
    writer.close()
    return said


def _request(number: int, *more: bytes) -> bytes:
    body = BODY % (number, number)
    head = [
        b"POST /tools/call HTTP/1.1",
        b"Host: localhost",
        b"Content-Type: application/json",
        b"Content-Length: %d" % len(body),
        *more,
    ]
    return b"\r\n".join(head) + b"\r\n\r\n" + body


async def test_a_whole_answer_is_one_piece_and_the_connection_goes_on() -> None:
    async with listening(Pipeline(TOOLS)) as base:
        reader, writer = await _connected(base)
        for number in (1, 2):
            writer.write(_request(number))
            head, _, body = (await reader.read(65_536)).partition(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 200 OK\r\n")
            assert b"content-length: %d" % len(body) in head
            assert b"\r\ndate: " in head
            assert b"connection:" not in head
            assert b'"requestId":"%d"' % number in body
        writer.close()


async def test_requests_sent_ahead_are_answered_in_their_order() -> None:
    numbers = range(1, 21)
    async with listening(Pipeline(TOOLS)) as base:
        reader, writer = await _connected(base)
        writer.write(b"".join(_request(number) for number in numbers))
        writer.write(_request(99, b"Connection: close"))
        said = await reader.read()
        writer.close()

    found = [int(part.partition(b'"')[0]) for part in said.split(b'"requestId":"')[1:]]
    assert found == [*numbers, 99]
    assert said.count(b"connection: close") == 1


async def test_a_client_that_wants_no_more_is_let_go_after_its_answer() -> None:
    async with listening(Pipeline(TOOLS)) as base:
        said = await _answered(base, b"GET /healthz HTTP/1.0\r\n\r\n")

    assert b"connection: close\r\n" in said
    assert said.endswith(b'{"status":"ok"}')


async def test_a_head_is_told_the_length_and_gets_no_body() -> None:
    async with listening(Pipeline(TOOLS)) as base:
        said = await _answered(
            base, b"HEAD /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        )

    assert b"content-length: 15\r\n" in said
    assert said.endswith(b"\r\n\r\n")


async def test_a_connection_that_asks_nothing_more_is_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    short = property(lambda _: 0.05, lambda _self, _given: None)
    monkeypatch.setattr(Connection, "timeout_keep_alive", short, raising=False)
    async with listening(Pipeline(TOOLS)) as base:
        said = await _answered(base, b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")

    assert said.startswith(b"HTTP/1.1 200 OK\r\n")
    assert b"connection: close" not in said


@pytest.mark.parametrize("value", [b"a\r\nset-cookie: b", b"a\x00"])
async def test_a_header_that_would_begin_another_is_not_sent(value: bytes) -> None:
    sent: list[bytes] = []
    exchange = _exchange(sent)
    with pytest.raises(RuntimeError, match="cannot be a header"):
        await exchange.send(
            {"type": WHOLE, "status": 200, "headers": ((b"x", value),), "body": b""}
        )

    assert sent == []
    assert not exchange.response_started


async def test_an_application_that_breaks_down_is_answered_for(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: Any) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(Calls, "serve", broken)
    async with listening(Pipeline(TOOLS)) as base, httpx.AsyncClient(base_url=base) as client:
        answer = await client.post("/tools/call", json={})

    assert answer.status_code == 500
    assert answer.headers["connection"] == "close"
    failure = answer.json()["failure"]
    assert (failure["reason"], failure["mayHaveRun"]) == ("gateway_failed", None)
    assert "ZeroDivisionError" in capfd.readouterr().err
    assert "ZeroDivisionError" not in answer.text


async def test_an_answer_is_not_begun_twice() -> None:
    sent: list[bytes] = []
    exchange = _exchange(sent)
    answer = {"type": WHOLE, "status": 200, "headers": (), "body": b""}
    await exchange.send(answer)
    with pytest.raises(RuntimeError, match="begun already"):
        await exchange.send(answer)

    assert len(sent) == 1


def _exchange(sent: list[bytes]) -> Exchange:
    class Transport:
        def write(self, data: bytes) -> None:
            sent.append(data)

    class Flow:
        write_paused = False

    transport: Any = Transport()
    flow: Any = Flow()
    scope: Any = {"method": "GET"}
    nobody: Any = None
    return Exchange(
        scope,
        transport,
        flow,
        nobody,
        nobody,
        False,
        [],
        asyncio.Event(),
        False,
        True,
        lambda: None,
    )


@pytest.mark.parametrize("length", [1, SHORT * 2])
def test_an_address_is_read_the_same_however_long_it_is(length: int) -> None:
    name = b"%20" * length

    for _ in range(2):
        path, raw, query = address_of(b"/tools/" + name + b"?a=%20")
        assert (path, raw, query) == (f"/tools/{' ' * length}", b"/tools/" + name, b"a=%20")
