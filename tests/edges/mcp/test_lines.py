import json
import random

import pytest

from seawall.edges.mcp.lines import Lines, Tail, TooLong


def test_lines_are_the_same_however_the_bytes_arrive() -> None:
    chance = random.Random(7)
    lines = [bytes(chance.choices(b"abc{}", k=chance.randrange(40))) for _ in range(200)]
    data = b"\n".join(lines) + b"\n"
    found: list[bytes | TooLong] = []
    cutter = Lines(100)

    while data:
        size = chance.randrange(1, 30)
        found += cutter.feed(data[:size])
        data = data[size:]

    assert found == lines


def answer(**fields: object) -> bytes:
    return json.dumps(fields).encode()


BIG = {"content": [{"id": 9, "text": 'x", "id": 8, "y": ' * 1000}]}


@pytest.mark.parametrize(
    ("line", "answers"),
    [
        (answer(jsonrpc="2.0", id=5, result=BIG), 5),
        (answer(id="call-1", jsonrpc="2.0", result=BIG), "call-1"),
        (answer(result=BIG, jsonrpc="2.0", id=5), 5),
        (answer(result=BIG, id=5, jsonrpc="2.0"), 5),
        (answer(result={"id": 9, **BIG}), None),
        (answer(jsonrpc="2.0", method="m", params={"id": 4, **BIG}), None),
        (answer(jsonrpc="2.0", result={**BIG, "jsonrpc": "2.0", "id": 3}), None),
        (b"x" * 100_000, None),
    ],
)
@pytest.mark.parametrize("chunk", [7, 4096, 1_000_000])
def test_a_line_too_long_is_dropped_and_names_whose_answer_it_was(
    line: bytes, answers: int | str | None, chunk: int
) -> None:
    cutter = Lines(1000)
    data = line + b"\nnext\n"

    found = [one for at in range(0, len(data), chunk) for one in cutter.feed(data[at : at + chunk])]

    assert found == [TooLong(answers), b"next"]


def test_a_line_of_exactly_the_bound_is_taken() -> None:
    assert Lines(5).feed(b"abcde\nabcdef\n") == [b"abcde", TooLong(None)]


def test_a_line_without_end_holds_no_memory() -> None:
    cutter = Lines(1000)

    for _ in range(1000):
        assert cutter.feed(b"x" * 65_536) == []

    assert sum(map(len, cutter._parts)) + len(cutter._tail) < 10_000


def test_the_tail_keeps_the_last_lines_without_secrets() -> None:
    tail = Tail(200)
    tail.add(b"old\n" * 1000)
    tail.add(b"token=abcdef123456\x1b[31m\n\nlast\xff\n")

    assert tail.total > 4000
    assert "abcdef" not in tail.text()
    assert tail.text().endswith("last\N{REPLACEMENT CHARACTER}")
    assert "\x1b" not in tail.text()
    assert len(tail.text(characters=50)) <= 50
