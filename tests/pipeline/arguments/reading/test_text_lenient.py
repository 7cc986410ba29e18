from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any

import pytest

from seawall.pipeline.arguments.reading.reader import (
    MAX_BYTES,
    MAX_DEPTH,
    MAX_DIGITS,
    ArgumentTextFault,
)
from seawall.pipeline.arguments.reading.text_lenient import parse_lenient

VECTORS = json.loads(
    (Path(__file__).parents[3] / "vectors" / "rawtext.json").read_text(encoding="utf-8")
)


def fault_of(text: str) -> ArgumentTextFault:
    with pytest.raises(ArgumentTextFault) as caught:
        parse_lenient(text)
    return caught.value


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["id"])
def test_text_is_read_as_the_vectors_say(vector: dict[str, Any]) -> None:
    if vector["expect"]["ok"]:
        assert parse_lenient(vector["text"]) == vector["expect"]["arguments"]
    else:
        assert fault_of(vector["text"]).message


@pytest.mark.parametrize("text", ["", " \n", "\u00a0\ufeff\u2003"])
def test_blank_text_is_no_arguments(text: str) -> None:
    assert parse_lenient(text) == {}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("null", "arguments_not_object"),
        ('""', "arguments_not_object"),
        ("[1]", "arguments_not_object"),
        ('{"a": 1', "arguments_truncated"),
        ('{"a": "x', "arguments_truncated"),
        ('{"a": [1', "arguments_truncated"),
        ("{'a': 1}", "arguments_not_json"),
        ('{"a": 1,}', "arguments_not_json"),
        ("```\n{}\n```", "arguments_not_json"),
        ("\ufeff{}", "arguments_not_json"),
        ('{"a": NaN}', "arguments_not_json"),
        ('{"a": "\\ud800", "b": }', "arguments_not_json"),
        ("\x85", "arguments_not_json"),
        ('{"n": ' + "9" * (MAX_DIGITS + 1) + "}", "too_large"),
        ('{"t": "' + "x" * MAX_BYTES + '"}', "too_large"),
        ('{"a":' * (MAX_DEPTH + 1) + "1" + "}" * (MAX_DEPTH + 1), "too_deep"),
        ("[" * 100_000, "too_deep"),
    ],
)
def test_nothing_else_is_mended(text: str, reason: str) -> None:
    assert fault_of(text).reason == reason


def test_the_last_of_equal_keys_wins() -> None:
    assert parse_lenient('{"a": 1, "b": 3, "a": 2}') == {"a": 2, "b": 3}


def test_an_overflowing_number_is_infinite() -> None:
    assert parse_lenient('{"a": 1e400}') == {"a": math.inf}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (r'{"a": "\\d \d \n \/ \u00e9 \u00"}', {"a": "\\d \\d \n / é \\u00"}),
        ('{"a": "\\d\n"}', {"a": "\\d\n"}),
        (r'{"a\q": 1}', {"a\\q": 1}),
    ],
)
def test_an_unknown_escape_keeps_its_backslash(text: str, value: Any) -> None:
    assert parse_lenient(text) == value


def test_a_process_that_allows_fewer_digits_gets_a_refusal() -> None:
    allowed = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(640)
    try:
        assert fault_of('{"n": ' + "9" * 1000 + "}").reason == "too_large"
    finally:
        sys.set_int_max_str_digits(allowed)


def test_a_stack_that_is_nearly_used_up_gives_a_refusal_or_an_answer() -> None:
    text = '{"a": ' + "[" * 100 + "]" * 100 + "}"

    def deeper(frames: int) -> Any:
        return deeper(frames - 1) if frames else parse_lenient(text)

    frame, used = sys._getframe(), 0
    while frame.f_back is not None:
        frame, used = frame.f_back, used + 1

    left = sys.getrecursionlimit() - used - 30
    if sys.version_info >= (3, 12):  # where frames of C are counted apart
        assert deeper(left) == json.loads(text)
        return
    with pytest.raises(ArgumentTextFault):
        deeper(left)
