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


def fault_in(raw: bytes) -> str | None:
    message = messages.read(raw)
    assert message is not None
    return messages.fault_of(message)


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b'{"id":1,"Method":"tools/call","params":{}}', "the case of its letters"),
        (b'{"id":1,"method":"ping","METHOD":"tools/call"}', "the case of its letters"),
        (b'{"id":1,"\\u004dethod":"tools/call"}', "the case of its letters"),
        ('{"id":1,"method":"ping","paramſ":{}}'.encode(), "the case of its letters"),
        (b'{"id":1,"method":"tools/call","method":"ping"}', "twice"),
        (b'{"id":1,"\\u006dethod":"tools/call","method":"ping"}', "twice"),
        (b'{"id":1,"method":"ping","params":{"a":1},"params":{"a":1}}', "twice"),
        (b'{"id":1,"id":2,"method":"ping"}', "twice"),
        (b'{"id":1,"method":"ping","params":[{"deep":{"a":1,"b":2,"a":3}}]}', "twice"),
        (b'{"id":1, "method":"ping","params":{"n":1e999,"a":1,"a":2}}', "twice"),
        (b'{"id":"x","result":{"a":1,"a":2}}', "twice"),
        (b'{"id":1,"method":"ping","result":{}}', "an answer at once"),
        (b'{"id":1,"method":"ping","error":{}}', "an answer at once"),
        (b'{"method":"tools/call","params":{"name":"t"}}', "needs an id"),
        (b'{"id":null,"method":"tools/call"}', "needs an id"),
        (b'{"id":true,"method":"tools/call"}', "needs an id"),
        (b'{"id":{"a":1},"method":"tools/call"}', "needs an id"),
        (b'{"id":[1],"method":"tools/call"}', "needs an id"),
        (b'{"id":1,"method":"Tools/Call"}', "nearly"),
        (b'{"id":1,"method":" tools/call\\n"}', "nearly"),
        (b'{"id":1,"method":"tools/call\\u0000x"}', "nearly"),
        (b'{"id":1,"method":"/tools//call/"}', "nearly"),
        ('{"id":1,"method":"ｔools/call"}'.encode(), "nearly"),
        (b'{"method":"TOOLS/CALL"}', "nearly"),
    ],
)
def test_a_message_that_some_servers_read_otherwise_has_a_fault(raw: bytes, said: str) -> None:
    assert said in str(fault_in(raw))


@pytest.mark.parametrize(
    "raw",
    [
        b'{"id":1,"method":"ping","x-own":1,"params":{"Method":"GET","method":"a"}}',
        b'{"id": 1, "method": "x/tools/call_back", "params": [{"a": 1}, {"a": 2}]}',
        b'{"id":1,"method":"tools/call","method":"tools/call","params":{"name":"a","name":"b"}}',
        b'{"id":"","method":"tools/call"}',
        b'{"id":0,"method":"tools/call"}',
        b'{"id":1,"method":"ping","params":{"n":12345678901234567890123,"z":1.0}}',
        b'{"id":null,"error":{"code":-32700,"message":"m"}}',
    ],
)
def test_what_all_read_alike_or_is_written_anew_has_no_fault(raw: bytes) -> None:
    assert fault_in(raw) is None


@pytest.mark.parametrize(
    ("raw", "heard"),
    [
        (b'{"id":1,"result":{"tools":[]},"result":{"a":1}}', {"id": 1, "result": {"a": 1}}),
        (b'{"id":1,"result":{"t":"x","t":"y"}}', {"id": 1, "result": {"t": "y"}}),
        (b'{"id":1,"Result":{"t":"x"},"result":{}}', {"id": 1, "result": {}}),
        (b'{"id":1,"result":{"a":1},"error":null}', {"id": 1, "result": {"a": 1}}),
        (b'{"id":1,"result":{"a":1},"error":{"code":1}}', {"id": 1, "error": {"code": 1}}),
        (b'{"method":"x","params":{"a":1},"params":{}}', {"method": "x", "params": {}}),
    ],
)
def test_what_a_server_says_is_written_anew_where_clients_could_differ(
    raw: bytes, heard: dict[str, Any]
) -> None:
    message = messages.heard(raw)

    assert message is not None
    assert json.loads(message.raw) == heard
    assert not messages.is_doubled(message.raw)


def test_what_all_clients_read_alike_keeps_its_bytes() -> None:
    raw = b'{"id": 1, "result": {"a": 1.50, "b": [1e2, "\\u00e9"]}}'

    message = messages.heard(raw)

    assert message is not None
    assert message.raw is raw


def test_a_servers_request_that_is_an_answer_too_is_not_heard() -> None:
    assert messages.heard(b'{"id":1,"method":"x","result":{"tools":[]}}') is None


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


@pytest.mark.parametrize(
    "message",
    [
        messages.notification(messages.PROGRESS, {"progress": 1, "message": "short"}),
        messages.notification(messages.PROGRESS, {"progress": 1, "message": ["x" * 20_000]}),
        messages.notification("notifications/message", {"message": "x" * 20_000}),
    ],
)
def test_what_is_no_long_line_of_progress_stays_as_it_came(message: messages.Message) -> None:
    assert messages.shortened(message) is message


def test_a_long_line_of_progress_is_cut_and_nothing_else_of_it() -> None:
    params = {"progressToken": "p", "progress": 1, "message": "é" * 20_000, "x": 1}

    found = messages.shortened(messages.notification(messages.PROGRESS, params))

    said = found.envelope.parameters()
    assert said.pop("message").endswith("é… [cut: it has 20,000 characters]")
    assert said == {"progressToken": "p", "progress": 1, "x": 1}
