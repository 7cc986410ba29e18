import json

import mcp_types as types
import pytest

from seawall.edges.mcp.codes import MALFORMED
from seawall.edges.mcp.messages import mended, message_of


@pytest.mark.parametrize(
    ("said", "read"),
    [
        (rb'"\ud83d"', "\ufffd"),
        (rb'"a\ud83d\ude00b\ude00"', "a\U0001f600b\ufffd"),
        (rb'"\\ud83d"', "\\ud83d"),
        (b'"caf\xe9"', "caf\ufffd"),
        (b'"caf\xc3\xa9"', "caf\xe9"),
    ],
)
def test_what_is_no_character_is_replaced_and_the_rest_is_kept(said: bytes, read: str) -> None:
    message = message_of(b'{"jsonrpc": "2.0", "id": 7, "result": {"text": ' + said + b"}}")

    assert isinstance(message, types.JSONRPCResponse)
    assert (message.id, message.result) == (7, {"text": read})


def test_a_mark_of_byte_order_is_no_harm() -> None:
    assert isinstance(
        message_of(b'\xef\xbb\xbf{"jsonrpc": "2.0", "id": 7, "result": {}}'), types.JSONRPCResponse
    )


@pytest.mark.parametrize(
    "line",
    [
        b'{"jsonrpc": "2.0", "id": 7, "result": "text"}',
        b'{"jsonrpc": "2.0", "id": 7, "result": null}',
        b'{"jsonrpc": "2.0", "id": 7, "error": {}}',
        b'{"id": 7, "result": {}}',
        b'{"jsonrpc": "2.0", "id": 7, "result": {"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}}",
        b'{"result": {"a": 1}, "jsonrpc": "2.0", "id": 7,}'.replace(b",}", b" }").replace(
            b"1", b""
        ),
    ],
)
def test_an_answer_that_cannot_be_read_is_an_error_of_its_request(line: bytes) -> None:
    message = message_of(line)

    assert isinstance(message, types.JSONRPCError)
    assert (message.id, message.error.code) == (7, MALFORMED)


@pytest.mark.parametrize(
    "line", [b"listening on 8000", b"{not json}", b"[1, 2]", b"{", b'"id": 7,']
)
def test_what_is_no_message_of_anybody_is_none(line: bytes) -> None:
    assert message_of(line) is None


def test_mending_is_for_json_only() -> None:
    assert json.loads(mended(b'["\\udfff"]')) == ["\ufffd"]
    with pytest.raises(ValueError, match="Expecting"):
        mended(b"plain")
