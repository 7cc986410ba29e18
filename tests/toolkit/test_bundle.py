import asyncio
import importlib.util
import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from seawall.contract.annotations import Risk
from seawall.contract.failure import FailureCode
from seawall.contract.result import ToolResult
from seawall.contract.tool import Tool
from seawall.orchestration.pipeline import Pipeline
from seawall.pipeline.session import Session
from seawall.registry.registry import Registry
from seawall.testing import FakeClock, FixedChance
from seawall.toolkit import bundled
from seawall.toolkit.described import DESCRIBED
from seawall.toolkit.notes import Notes

HAS_RE2 = importlib.util.find_spec("re2") is not None
THERE = {name for name in DESCRIBED if HAS_RE2 or not name.startswith("regex_")}
PURE_OR_SAFE = sorted(THERE - {"http_check", "note_add"})


@pytest.fixture(name="clock")
def clock_fixture() -> FakeClock:
    return FakeClock()


@pytest.fixture(name="registry")
def registry_fixture(clock: FakeClock, tmp_path: Path) -> Registry:
    (tmp_path / "hello.txt").write_bytes(b"hello\n")
    return bundled(clock=clock, chance=FixedChance(0.5), root=tmp_path)


async def _called(
    registry: Registry, clock: FakeClock, calls: list[tuple[str, Any]]
) -> list[ToolResult]:
    session = Session("s1")
    async with Pipeline(registry, clock=clock) as pipeline:
        results = []
        for name, arguments in calls:
            work = pipeline.call(name, arguments, session=session)
            # A thread takes real time, in which a clock that runs ahead would time it out.
            results.append(await (clock.run(work) if name == "wait" else work))
        return results


def _undeclared(schema: Mapping[str, Any], value: Any) -> set[str]:
    """Members of a result that its schema does not name, at any depth."""
    if isinstance(value, list):
        items = schema.get("items")
        return set() if items is None else {m for v in value for m in _undeclared(items, v)}
    if not isinstance(value, dict) or "properties" not in schema:
        return set()
    named = schema["properties"]
    inside = {m for name in value if name in named for m in _undeclared(named[name], value[name])}
    return {name for name in value if name not in named} | inside


def test_all_tools_are_there(registry: Registry) -> None:
    assert set(registry.names()) == THERE


def test_no_file_can_be_read_unless_a_folder_is_named() -> None:
    assert "file_hash" not in bundled()


def test_regular_expressions_are_left_out_without_their_engine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("seawall.toolkit.bundle.find_spec", lambda _: None)

    names = bundled().names()

    assert not [name for name in names if name.startswith("regex_")]


def _examples() -> list[Any]:
    return [
        pytest.param(name, position, id=f"{name}-{position}")
        for name, described in DESCRIBED.items()
        if name in THERE and described.same_everywhere and name != "note_search"
        for position in range(len(described.examples))
    ]


@pytest.mark.parametrize(("name", "position"), _examples())
async def test_each_example_gives_what_it_says(
    registry: Registry, clock: FakeClock, name: str, position: int
) -> None:
    arguments, expected = DESCRIBED[name].examples[position]

    (result,) = await _called(registry, clock, [(name, arguments)])

    assert result.failure is None, result.text
    assert result.structured_content == expected


async def test_the_example_of_searching_notes_finds_that_of_adding_one(
    registry: Registry, clock: FakeClock
) -> None:
    ((added, _),) = DESCRIBED["note_add"].examples
    ((searched, expected),) = DESCRIBED["note_search"].examples

    _, found = await _called(registry, clock, [("note_add", added), ("note_search", searched)])

    assert found.structured_content == expected


async def test_the_example_of_the_machine_has_the_shape_of_a_real_answer(
    registry: Registry, clock: FakeClock
) -> None:
    ((arguments, shown),) = DESCRIBED["local_status"].examples

    (result,) = await _called(registry, clock, [("local_status", arguments)])

    assert result.failure is None
    assert set(result.structured_content) <= set(shown)


@pytest.mark.parametrize("name", DESCRIBED)
def test_each_example_fits_its_schemas(registry: Registry, name: str) -> None:
    described = DESCRIBED[name]
    tool = registry.get(name)

    for arguments, result in described.examples:
        if tool is not None:
            jsonschema_rs.validate(dict(tool.input_schema), arguments)
        if described.output_schema is not None:
            jsonschema_rs.validate(described.output_schema, result)
            assert not _undeclared(described.output_schema, result)


OTHERS: list[tuple[str, dict[str, Any]]] = [
    ("calculate", {"expression": "1 / 3"}),
    ("calculate", {"expression": "sin(1)"}),
    ("datetime", {"operation": "parse", "moment": "2024-03-31T02:30", "zone": "Europe/Berlin"}),
    ("datetime", {"operation": "add", "moment": "2024-01-31", "duration": "P1M"}),
    ("unit_convert", {"value": "451", "from_unit": "degF", "to_unit": "degC"}),
    ("uuid_generate", {}),
    ("uuid_generate", {"version": "v7", "count": 3}),
    ("random_generate", {"kind": "password"}),
    ("random_generate", {"kind": "shuffle", "items": [1, "a", None]}),
    ("version_compare", {"a": "1.0ubuntu2", "b": "1.0-rc.1"}),
    ("xml_extract", {"xml": "<a b='1'><c/></a>", "path": "//c"}),
    ("text_transform", {"text": "two words", "operation": "count"}),
    ("string_distance", {"a": "a", "b": "b", "measure": "jaro_winkler"}),
    ("csv_query", {"text": "a;b\n1;2\n", "delimiter": ";"}),
    ("note_search", {}),
    ("duration_convert", {"duration": 90.5}),
]


@pytest.mark.parametrize(("name", "arguments"), OTHERS)
async def test_what_a_tool_gives_is_what_its_schema_declares(
    registry: Registry, clock: FakeClock, name: str, arguments: dict[str, Any]
) -> None:
    (result,) = await _called(registry, clock, [(name, arguments)])

    schema = DESCRIBED[name].output_schema
    assert result.failure is None, result.text
    assert schema is not None
    jsonschema_rs.validate(schema, result.structured_content)
    assert not _undeclared(schema, result.structured_content)


@pytest.mark.skipif(not HAS_RE2, reason="needs google-re2")
async def test_what_a_regular_expression_finds_is_declared(
    registry: Registry, clock: FakeClock
) -> None:
    schema = DESCRIBED["regex_extract"].output_schema
    arguments = {"text": "ab", "pattern": "(a)|(?P<other>b)"}

    (result,) = await _called(registry, clock, [("regex_extract", arguments)])

    assert schema is not None
    jsonschema_rs.validate(schema, result.structured_content)
    assert not _undeclared(schema, result.structured_content)


async def test_http_check_asks_what_was_opened_to_it_and_nothing_else_on_this_machine() -> None:
    asked: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 204 No Content\r\nServer: test\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    url = {"url": f"http://127.0.0.1:{port}/"}
    async with (
        server,
        Pipeline(bundled()) as closed,
        Pipeline(bundled(http_allow=[f"127.0.0.1:{port}"])) as opened,
    ):
        refused = await closed.call("http_check", url)
        answered = await opened.call("http_check", url)

    schema = DESCRIBED["http_check"].output_schema
    assert refused.failure is not None
    assert refused.failure.code is FailureCode.PERMISSION_DENIED
    assert answered.structured_content["status"] == 204
    assert len(asked) == 1
    assert schema is not None
    jsonschema_rs.validate(schema, answered.structured_content)
    assert not _undeclared(schema, answered.structured_content)


async def test_an_address_that_does_not_answer_is_declared_too() -> None:
    schema = DESCRIBED["http_check"].output_schema
    async with Pipeline(bundled(http_allow=["127.0.0.0/8"])) as pipeline:
        result = await pipeline.call("http_check", {"url": "http://127.0.0.1:1/"})

    assert result.structured_content["reachable"] is False
    assert schema is not None
    assert not _undeclared(schema, result.structured_content)


@pytest.mark.parametrize("name", PURE_OR_SAFE)
def test_what_only_reads_is_low_risk_and_may_be_repeated(registry: Registry, name: str) -> None:
    tool = registry.get(name)

    assert tool is not None
    assert tool.retry_safe
    assert not tool.annotations.is_destructive
    assert not tool.annotations.is_open_world
    assert tool.effective_risk is Risk.LOW


def test_asking_web_servers_is_medium_risk(registry: Registry) -> None:
    tool = _tool(registry, "http_check")

    assert tool.effective_risk is Risk.MEDIUM
    assert tool.annotations.is_open_world


def test_a_note_is_not_added_twice_by_a_retry(registry: Registry) -> None:
    assert not _tool(registry, "note_add").retry_safe


@pytest.mark.parametrize("name", sorted(THERE))
def test_every_tool_says_where_it_belongs(registry: Registry, name: str) -> None:
    tool = _tool(registry, name)

    assert tool.category != "utility"
    assert tool.family
    assert tool.examples
    assert tool.description.strip()


async def test_a_long_wait_is_not_cut_by_the_timeout_of_reading_tools(
    registry: Registry, clock: FakeClock
) -> None:
    (result,) = await _called(registry, clock, [("wait", {"duration_ms": 120_000})])

    assert result.structured_content == {"waited_ms": 120_000, "woke_early": False}


async def test_notes_are_kept_where_the_caller_says(clock: FakeClock) -> None:
    notes = Notes()

    await _called(bundled(clock=clock, notes=notes), clock, [("note_add", {"text": "kept"})])

    assert [note.text for note in await notes.notes("s1")] == ["kept"]


async def test_two_registries_share_no_notes(clock: FakeClock) -> None:
    await _called(bundled(clock=clock), clock, [("note_add", {"text": "mine"})])

    (found,) = await _called(bundled(clock=clock), clock, [("note_search", {})])

    assert found.structured_content["kept"] == 0


def test_one_tool_alone_does_not_bring_the_others() -> None:
    code = (
        "import sys, json, seawall.toolkit.calculate\n"
        "print(json.dumps([m for m in sys.modules if m.startswith('seawall.toolkit.')]))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert "seawall.toolkit.bundle" not in json.loads(ran.stdout)


def _tool(registry: Registry, name: str) -> Tool:
    tool = registry.get(name)
    assert tool is not None
    return tool
