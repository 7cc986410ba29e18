"""What holds for every bundled tool, whatever it is sent."""

import asyncio
import inspect
import json
import socket
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seawall.contract.failure import FailureCode, ToolFailed
from seawall.contract.tool import Tool
from seawall.pipeline.chance import SystemChance
from seawall.registry.function import tool
from seawall.toolkit.base_convert import base_convert
from seawall.toolkit.calculate import calculate
from seawall.toolkit.clocks import TimeNow, Wait
from seawall.toolkit.cron_next import CronNext
from seawall.toolkit.csv_query import csv_query
from seawall.toolkit.date_time import date_time
from seawall.toolkit.duration_convert import duration_convert
from seawall.toolkit.file_hash import FileHash
from seawall.toolkit.http_check import HttpCheck
from seawall.toolkit.json_path import json_path
from seawall.toolkit.json_transform import json_transform
from seawall.toolkit.local_status import LocalStatus
from seawall.toolkit.notes import Notebook, Notes
from seawall.toolkit.patterns import Patterns
from seawall.toolkit.random_generate import RandomGenerate
from seawall.toolkit.string_distance import string_distance
from seawall.toolkit.text_diff import text_diff
from seawall.toolkit.text_transform import text_transform
from seawall.toolkit.unit_convert import unit_convert
from seawall.toolkit.uuid_generate import UuidGenerate
from seawall.toolkit.version_compare import version_compare
from seawall.toolkit.xml_extract import xml_extract


def _wall() -> float:
    return 1_767_225_600.0


async def _sleep(_seconds: float) -> None:
    return


def _nowhere(_host: str, _port: int) -> list[tuple[Any, ...]]:
    raise socket.gaierror


_book = Notebook(Notes(), _wall)
_patterns = Patterns(_wall)
TOOLS = [
    tool(function)
    for function in (
        base_convert,
        calculate,
        TimeNow(_wall).time_now,
        Wait(_sleep, _wall).wait,
        CronNext(_wall).cron_next,
        csv_query,
        date_time,
        duration_convert,
        FileHash(Path(__file__).parent).file_hash,
        HttpCheck(_wall, resolve=_nowhere).http_check,
        json_path,
        json_transform,
        LocalStatus().local_status,
        _book.note_add,
        _book.note_search,
        _patterns.regex_extract,
        _patterns.regex_replace,
        RandomGenerate(SystemChance()).random_generate,
        string_distance,
        text_diff,
        text_transform,
        unit_convert,
        UuidGenerate(_wall, SystemChance()).uuid_generate,
        version_compare,
        xml_extract,
    )
]
_names = [one.name for one in TOOLS]
_context = SimpleNamespace(session_id="s", caller="")

_words = st.sampled_from(
    [
        *("", "0", "-1", "1e9", "9**9**9", "1 + 1", "a", "a.b", "v1.0-rc", "km", "UTC", "PT1H"),
        *("2026-01-01", "* * * * *", "$..*", "//a", "http://a/", "(a+)+$", "\\1", "a,b\n1,2"),
        *("[1,{}]", "\ud800", "\x00"),
    ]
)
_json = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=20)
    | _words,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_words, inner, max_size=4),
    max_leaves=8,
)


def _values(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Draw what the schema likes about as often as what it does not."""
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    likely: dict[str, st.SearchStrategy[Any]] = {
        "string": _words | st.text(max_size=40),
        "integer": st.integers(0, 10) | st.integers(),
        "number": st.floats(allow_nan=False, allow_infinity=False),
        "boolean": st.booleans(),
        "array": st.lists(_json, max_size=4),
    }
    return likely.get(schema.get("type", ""), _json) | _json


def _arguments(one: Tool) -> st.SearchStrategy[dict[str, Any]]:
    properties = one.input_schema["properties"]
    required = one.input_schema.get("required", [])
    drawn = {name: _values(schema) for name, schema in properties.items()}
    return st.fixed_dictionaries(
        {name: drawn[name] for name in required},
        optional={name: drawn[name] for name in properties if name not in required},
    )


def _outcome(one: Tool, arguments: dict[str, Any]) -> Any:
    try:
        found = one.executor(arguments, _context)
        return asyncio.run(found) if inspect.iscoroutine(found) else found
    except ToolFailed as refused:
        return refused.failure


@pytest.mark.parametrize("one", TOOLS, ids=_names)
@given(data=st.data())
@settings(max_examples=60, deadline=3000)
def test_any_arguments_give_a_result_that_is_json_or_a_refusal(
    one: Tool, data: st.DataObject
) -> None:
    arguments = data.draw(_arguments(one))

    found = _outcome(one, arguments)

    if hasattr(found, "code"):
        assert found.code in (
            FailureCode.INVALID_ARGUMENT,
            FailureCode.PERMISSION_DENIED,
            FailureCode.NOT_FOUND,
            FailureCode.UNSUPPORTED,
            FailureCode.EXECUTION_FAILED,
        )
        assert len(found.render()) < 2500
    else:
        json.dumps(found, allow_nan=False)


@pytest.mark.parametrize("one", TOOLS, ids=_names)
def test_every_tool_tells_a_model_what_it_does_in_one_line(one: Tool) -> None:
    first = one.description.split("\n", 1)[0]

    assert first.endswith((".", ":"))
    assert 20 < len(first) <= 100
    assert len(one.description) < 1000


@pytest.mark.parametrize("one", TOOLS, ids=_names)
def test_every_schema_is_valid_and_says_what_its_texts_and_lists_are_bounded_by(one: Tool) -> None:
    jsonschema_rs.validator_for(dict(one.input_schema))

    for name, schema in one.input_schema["properties"].items():
        if schema.get("type") == "string" and "enum" not in schema:
            assert "maxLength" in schema or "pattern" in schema, name
