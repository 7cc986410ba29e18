from __future__ import annotations

import asyncio

from seawall.edges.gathering import AT_ONCE_BYTES, Gathering, Turn


class _Transport:
    """Keeps what was sent, piece by piece."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []
        self.closed = False

    def write(self, data: bytes) -> None:
        self.sent.append(data)

    def close(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed

    def peer(self) -> str:
        return "somebody"


async def test_what_is_written_in_one_turn_leaves_in_one_piece_at_its_end() -> None:
    transport = _Transport()
    gathering = Gathering(transport, Turn())

    gathering.write(b"head ")
    gathering.write(b"body")
    before = list(transport.sent)
    await asyncio.sleep(0)

    assert (before, transport.sent) == ([], [b"head body"])


async def test_each_connection_of_a_turn_gets_its_own() -> None:
    turn, transports = Turn(), [_Transport(), _Transport()]
    one, two = (Gathering(transport, turn) for transport in transports)

    one.write(b"1")
    two.write(b"2")
    await asyncio.sleep(0)
    two.write(b"again")
    await asyncio.sleep(0)

    assert [transport.sent for transport in transports] == [[b"1"], [b"2", b"again"]]


async def test_much_leaves_at_once() -> None:
    transport = _Transport()

    Gathering(transport, Turn()).write(b"x" * (AT_ONCE_BYTES + 1))

    assert [len(piece) for piece in transport.sent] == [AT_ONCE_BYTES + 1]


async def test_closing_sends_first() -> None:
    transport = _Transport()
    gathering = Gathering(transport, Turn())

    gathering.write(b"last words")
    gathering.close()

    assert (transport.sent, transport.closed) == ([b"last words"], True)


async def test_nothing_is_sent_on_a_connection_that_was_lost_meanwhile() -> None:
    transport = _Transport()

    Gathering(transport, Turn()).write(b"too late")
    transport.closed = True
    await asyncio.sleep(0)

    assert transport.sent == []


async def test_all_else_is_the_transports() -> None:
    assert Gathering(_Transport(), Turn()).peer() == "somebody"
