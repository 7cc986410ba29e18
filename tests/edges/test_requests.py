"""Requests, hosts and tokens, as all servers of ours take them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from seawall.edges.requests import (
    MAX_SEEN,
    WHOLE,
    Gone,
    Hosts,
    Incoming,
    TooLarge,
    bearer_in,
    ended_first,
    with_named,
)


class _Client:
    """The other side of a request."""

    def __init__(self, *events: Any, **scope: Any) -> None:
        self.events = list(events)
        self.got: list[Any] = []
        self.left = asyncio.Event()
        given: dict[str, Any] = {"method": "POST", "path": "/", "headers": [], **scope}
        self.request = Incoming(given, self._receive, self._send)

    async def _receive(self) -> Any:
        if self.events:
            return self.events.pop(0)
        await self.left.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Any) -> None:
        self.got.append(message)


def piece(body: bytes, *, more: bool = False) -> dict[str, Any]:
    return {"type": "http.request", "body": body, "more_body": more}


@pytest.mark.parametrize(
    "events",
    [
        [piece(b"12345")],
        [piece(b"12", more=True), piece(b"345")],
        [piece(b"", more=True), piece(b"12345", more=True), piece(b"")],
    ],
)
async def test_a_body_is_read_whole_in_however_many_pieces_it_comes(events: list[Any]) -> None:
    assert await _Client(*events).request.read(5) == b"12345"


@pytest.mark.parametrize(
    ("events", "announced"),
    [
        ([piece(b"12345")], None),
        ([piece(b"12", more=True), piece(b"345")], None),
        ([piece(b"12", more=True), piece(b"345", more=True)], None),
        ([], b"5"),
        ([], b"9" * 5_000),
    ],
)
async def test_a_body_beyond_the_bound_is_not_read_on(
    events: list[Any], announced: bytes | None
) -> None:
    headers = [] if announced is None else [(b"content-length", announced)]
    client = _Client(*events, headers=headers)

    with pytest.raises(TooLarge):
        await client.request.read(4)

    assert client.events == []


@pytest.mark.parametrize("before", [[], [piece(b"1", more=True)]])
async def test_a_client_that_goes_before_its_body_was_there_is_gone(before: list[Any]) -> None:
    client = _Client(*before, {"type": "http.disconnect"})

    with pytest.raises(Gone):
        await client.request.read(4)


def test_of_a_header_that_came_twice_the_first_counts_and_all_are_there() -> None:
    sent = [(b"a", b"1"), (b"b", b"2"), (b"a", b"3")]
    request = _Client(headers=sent).request

    assert (request.header(b"a"), request.header(b"b"), request.header(b"c")) == ("1", "2", "")
    assert request.all(b"a") == [b"1", b"3"]
    assert request.repeated(frozenset({b"a", b"b"})) == "a"
    assert request.repeated(frozenset({b"b"})) == ""
    assert request.header_bytes == 6


@pytest.mark.parametrize(("method", "body"), [("POST", b"words"), ("HEAD", b"")])
async def test_a_whole_answer_says_its_length(method: str, body: bytes) -> None:
    client = _Client(method=method)
    await client.request.whole(200, b"words", [(b"x", b"y")])

    start, end = client.got
    assert start["headers"] == [(b"x", b"y"), (b"content-length", b"5")]
    assert end["body"] == body


async def test_a_server_that_takes_an_answer_whole_is_given_it_so() -> None:
    client = _Client(extensions={WHOLE: {}})
    await client.request.whole(200, b"words", [(b"x", b"y")])

    assert client.got == [
        {"type": WHOLE, "status": 200, "headers": ((b"x", b"y"),), "body": b"words"}
    ]


async def test_work_is_waited_for_while_the_client_is_there_and_not_cancelled() -> None:
    client, done = _Client(), asyncio.Event()
    work = asyncio.ensure_future(done.wait())
    waiting = asyncio.ensure_future(ended_first(work, client.request))
    await asyncio.sleep(0)
    client.left.set()

    assert await waiting is False
    assert not work.done()
    done.set()
    assert await ended_first(work, _Client().request) is True


@pytest.mark.parametrize(
    ("sent", "known"),
    [
        (b"localhost", True),
        (b"LOCALHOST:1", True),
        (b"[::1]", True),
        (b"[::1]:80", True),
        (b"localhost:", False),
        (b"localhost:80:80", False),
        (b"localhost.evil.example", False),
        (b"", False),
        (b"[", False),
        (b"\xff", False),
    ],
)
def test_a_name_is_known_with_any_port(sent: bytes, known: bool) -> None:
    hosts = Hosts(["LocalHost", "[::1]"])

    assert [sent in hosts for _ in range(2)] == [known, known]


def test_what_is_remembered_of_hosts_has_a_bound() -> None:
    hosts = Hosts(["localhost"])

    assert all(b"localhost:%d" % port in hosts for port in range(MAX_SEEN * 2))
    assert len(hosts._seen) == MAX_SEEN


@pytest.mark.parametrize(
    ("header", "token"),
    [
        (b"Bearer abc", b"abc"),
        (b"bEARER   abc ", b"abc"),
        (b"Bearer ", b""),
        (b"Bearer", None),
        (b"Basic abc", None),
        (b"", None),
    ],
)
def test_a_bearer_token_is_what_stands_behind_the_word(header: bytes, token: bytes | None) -> None:
    assert bearer_in(header) == token


@pytest.mark.parametrize(
    ("target", "sent", "hosts"),
    [
        (b"/a?to=http://b", [b"a"], [b"a"]),
        (b"*", [b"a"], [b"a"]),
        (b"http://A:1/b", [b"a:1"], [b"a:1"]),
        (b"http://a", [], [b"a"]),
        (b"https://u:p@a?b", [b"b"], [b"b", b"a"]),
        (b"http:///b", [b"a"], [b"a", b""]),
    ],
)
def test_a_host_in_the_address_is_one_more_unless_the_header_says_the_same(
    target: bytes, sent: list[bytes], hosts: list[bytes]
) -> None:
    headers = [(b"host", host) for host in sent]

    with_named(headers, target)

    assert headers == [(b"host", host) for host in hosts]
