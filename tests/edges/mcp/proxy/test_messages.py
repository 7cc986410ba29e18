"""Messages are looked at and not rebuilt."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from seawall.edges.mcp.proxy import messages


def test_a_message_keeps_its_bytes() -> None:
    raw = b'{"jsonrpc": "2.0",  "id":1, "method":"x", "params": {"a":1.0}}'

    message = messages.read(raw)

    assert message is not None
    assert message.raw is raw
    assert message.envelope.parameters() == {"a": 1.0}


@pytest.mark.parametrize(
    ("raw", "is_request", "is_notification"),
    [
        (b'{"id":1,"method":"x"}', True, False),
        (b'{"id":null,"method":"x"}', True, False),
        (b'{"method":"x"}', False, True),
        (b'{"id":1,"result":{}}', False, False),
        (b'{"id":1,"error":{}}', False, False),
    ],
)
def test_requests_and_notifications_are_told_apart(
    raw: bytes, is_request: bool, is_notification: bool
) -> None:
    message = messages.read(raw)

    assert message is not None
    assert message.envelope.is_request is is_request
    assert message.envelope.is_notification is is_notification


@pytest.mark.parametrize("raw", [b"", b"null", b"7", b"[]", b"{", b'{"method":7}', b"hello\xff"])
def test_what_is_no_message_is_none(raw: bytes) -> None:
    assert messages.read(raw) is None


def test_the_last_of_two_equal_keys_counts_for_all_readers() -> None:
    message = messages.read(b'{"method":"tools/list","method":"tools/call","id":1}')

    assert message is not None
    assert message.envelope.method == "tools/call"


def test_what_strict_json_forbids_is_written_anew() -> None:
    message = messages.read(b'{"method":"x","params":{"n":Infinity}} ')

    # `Infinity` is only looked at where it stands outside; inside it is found when it is decoded.
    assert message is None or b"Infinity" not in message.raw


def test_a_batch_is_taken_apart() -> None:
    assert messages.batch(b'[{"id":1}, {"id":2}]') == [b'{"id":1}', b'{"id":2}']
    assert messages.batch(b'{"id":1}') is None
    assert messages.batch(b"[1") is None


def test_ids_of_different_kinds_are_different() -> None:
    keys = {messages.key_of(value) for value in (1, "1", None, True, [1], {"a": 1})}

    assert len(keys) == 6


def test_errors_have_their_data() -> None:
    said = json.loads(messages.error("a", -32602, "no", {"hints": []}))

    assert said["error"] == {"code": -32602, "message": "no", "data": {"hints": []}}
    assert json.loads(messages.error_of(2, msgspec.Raw(b'{"code":1}')))["id"] == 2


@pytest.mark.parametrize(
    "raw",
    [
        b'{"id":1,"Method":"tools/call","params":{}}',
        b'{"id":1,"method":"ping","METHOD":"tools/call"}',
        b'{"id":1,"\\u004dethod":"tools/call"}',
        '{"id":1,"method":"ping","paramſ":{}}'.encode(),
    ],
)
def test_a_message_that_some_servers_read_otherwise_is_known(raw: bytes) -> None:
    message = messages.read(raw)

    assert message is not None
    assert messages.is_ambiguous(message)


def test_fields_that_nobody_knows_are_not_ambiguous() -> None:
    message = messages.read(b'{"id":1,"method":"ping","x-own":1,"params":{"Method":"GET"}}')

    assert message is not None
    assert not messages.is_ambiguous(message)


@pytest.mark.parametrize(
    ("params", "odd"),
    [
        ({"name": "a", "Name": "b"}, "Name"),
        ({"name": "a", "ARGUMENTS": {}}, "ARGUMENTS"),
        ({"name": "a", "arguments": {"Name": 1}, "x": 1, "_meta": {}}, None),
    ],
)
def test_a_parameter_that_some_servers_take_for_another_is_named(
    params: dict[str, Any], odd: str | None
) -> None:
    assert messages.ambiguous_parameter(params) == odd


def test_a_message_is_put_on_one_line_and_says_the_same() -> None:
    raw = b'{"id":1,\r\n "method":"ping",\r"params":\n{"a":"b\\nc"}}'

    line = messages.on_one_line(raw)

    assert b"\n" not in line
    assert b"\r" not in line
    assert json.loads(line) == json.loads(raw)


def test_what_is_on_one_line_keeps_its_bytes() -> None:
    raw = b'{"id":1, "method":"ping"}'

    assert messages.on_one_line(raw) is raw
