"""Every bundled tool, called as a model calls it: any JSON gives a result or a clear refusal."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import socket
import time
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from seawall import FailureCode, Pipeline, Policies, Registry, Risk, RunPolicy, Session, Tool
from seawall.testing import FakeClock
from seawall.toolkit import bundled

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from seawall import ToolResult

HAS_RE2 = importlib.util.find_spec("re2") is not None
ANY_JSON = {"json_transform"}
"""Gives whatever shape it was asked for, so there is nothing to promise."""
LONGEST_S = 2.0
"""CPU time of one call, with all that goes with it, on a busy machine."""

NAMES = sorted(bundled(root=".").names())


@pytest.fixture(name="registry", scope="module")
def registry_fixture(tmp_path_factory: pytest.TempPathFactory) -> Registry:
    root = tmp_path_factory.mktemp("files")
    (root / "hello.txt").write_bytes(b"hello\n")
    return bundled(root=root)


@pytest.fixture(name="no_network", autouse=True)
def no_network_fixture(monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere(*_: Any, **__: Any) -> Any:
        raise socket.gaierror

    monkeypatch.setattr(socket, "getaddrinfo", nowhere)


words = st.sampled_from(
    [
        *("", "0", "-1", "1e9", "9**9**9", "1 + 1", "(" * 60, "sqrt(2)", "__import__('os')", "a.b"),
        *("v1.0-rc.1+5", "km", "degF", "UTC", "Europe/Berlin", "PT1H", "1h30m", "hello.txt", ".."),
        *("2026-01-01", "2024-02-29T23:59:60Z", "* * * * *", "0 0 29 2 *", "@daily", "5 4 3 2 1"),
        *("$..*", "$[?@.a>1]", "$[::-1]", "//a", "/a[@b='1']/text()", "http://127.0.0.1/"),
        *("(a+)+$", "(?P<x>a)|b", "\\1", "a,b\n1,2\n", '"a\nb', "<a><b c='d'/></a>"),
        *("<!DOCTYPE a>", "[1,{}]", '{"a": [1, 2]}', '{"op": "pick", "keys": ["a"]}'),
        *("\ud800", "\x00", "é😀", "x" * 500, "file:///etc/passwd"),
    ]
)
numbers = st.integers(-5, 70) | st.integers() | st.floats() | st.sampled_from([10**30, 1e308, 0.1])
anything = st.recursive(
    st.none() | st.booleans() | numbers | words | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(words, inner, max_size=4),
    max_leaves=8,
)


def values(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Draw mostly what the schema likes."""
    if "enum" in schema:
        return st.sampled_from(schema["enum"]) | words
    if "anyOf" in schema:
        return st.one_of([values(part) for part in schema["anyOf"]])
    items = schema.get("items")
    likely: dict[str, st.SearchStrategy[Any]] = {
        "string": words | st.text(max_size=40),
        "integer": numbers,
        "number": numbers,
        "boolean": st.booleans(),
        "array": st.lists(values(items) if isinstance(items, dict) else anything, max_size=4),
    }
    return likely.get(schema.get("type", ""), anything) | anything


def arguments_of(tool: Tool) -> st.SearchStrategy[Any]:
    properties = tool.input_schema.get("properties", {})
    required = tool.input_schema.get("required", [])
    drawn = {name: values(schema) for name, schema in properties.items()}
    nearly_right = st.fixed_dictionaries(
        {name: drawn[name] for name in required},
        optional={name: drawn[name] for name in properties if name not in required},
    )
    return nearly_right | st.dictionaries(words, anything, max_size=3)


class Caller:
    """Calls one tool after the other, on a clock that need not wait where a tool does."""

    def __init__(self, registry: Registry) -> None:
        self._loop = asyncio.new_event_loop()
        self._policies = Policies(default=RunPolicy(timeout_s=30))
        self._pipeline = Pipeline(registry, policies=self._policies)
        self._session = Session("s")

    def call(self, name: str, arguments: Any) -> ToolResult:
        if name == "wait":
            clock = FakeClock()
            waiting = Pipeline(bundled(clock=clock), policies=self._policies, clock=clock)
            return self._loop.run_until_complete(clock.run(waiting.call("wait", arguments)))
        call = self._pipeline.call(name, arguments, session=self._session)
        return self._loop.run_until_complete(call)

    def close(self) -> None:
        self._loop.run_until_complete(self._pipeline.aclose())
        self._loop.close()


@pytest.fixture(name="caller", scope="module")
def caller_fixture(registry: Registry) -> Iterator[Caller]:
    caller = Caller(registry)
    yield caller
    caller.close()


@pytest.mark.parametrize("name", NAMES)
@given(data=st.data())
@settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_any_json_gives_a_result_or_a_clear_refusal_in_time(
    caller: Caller, registry: Registry, name: str, data: st.DataObject
) -> None:
    tool = registry.get(name)
    assert tool is not None
    arguments = data.draw(arguments_of(tool))
    if data.draw(st.booleans()):
        arguments = json.dumps(arguments)
    begun = time.process_time()

    result = caller.call(name, arguments)

    assert time.process_time() - begun < LONGEST_S
    result.render().encode()
    if result.failure is None:
        json.dumps(result.structured_content, allow_nan=False)
        return
    failure = result.failure
    assert failure.code in (
        FailureCode.INVALID_ARGUMENT,
        FailureCode.PERMISSION_DENIED,
        FailureCode.NOT_FOUND,
        FailureCode.UNSUPPORTED,
        FailureCode.EXECUTION_FAILED,
    )
    assert not failure.cause, failure.message  # what a tool refuses it says itself
    assert failure.reason != "output_invalid", result.details
    assert failure.message.strip()


@pytest.mark.parametrize("name", NAMES)
def test_every_tool_says_all_that_can_be_said_of_it(registry: Registry, name: str) -> None:
    tool = registry.get(name)
    assert tool is not None

    assert tool.description.strip()
    assert tool.input_schema["properties"] or name == "local_status"
    assert (tool.output_schema is None) == (name in ANY_JSON)
    assert tool.annotations.declared
    assert tool.risk is not None
    assert tool.family
    assert tool.category != "utility"
    assert tool.examples


@pytest.mark.parametrize("name", sorted(set(NAMES) - ANY_JSON))
def test_every_promise_is_an_object_with_named_members(registry: Registry, name: str) -> None:
    tool = registry.get(name)
    assert tool is not None
    assert tool.output_schema is not None

    assert tool.output_schema["type"] == "object"
    assert tool.output_schema["properties"]


def test_asking_web_servers_is_the_one_thing_that_is_not_low_risk(registry: Registry) -> None:
    assert [tool.name for tool in registry if tool.effective_risk is not Risk.LOW] == ["http_check"]
    assert registry.get("http_check").effective_risk is Risk.MEDIUM  # type: ignore[union-attr]  # it is there


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "127.1", "localhost", "[::1]", "10.0.0.1", "192.168.1.1", "172.16.0.1"),
        *("169.254.169.254", "[fe80::1]", "[fd00::1]", "0.0.0.0", "[::]", "100.64.0.1"),
        *("[::ffff:127.0.0.1]", "[64:ff9b::7f00:1]", "2130706433", "0x7f.1", "224.0.0.1"),
    ],
)
def test_addresses_that_are_not_public_are_refused(
    monkeypatch: pytest.MonkeyPatch, caller: Caller, address: str
) -> None:
    def as_it_is_written(host: str, port: int, *_: Any, **__: Any) -> list[Any]:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        plain = {"localhost": "127.0.0.1", "127.1": "127.0.0.1"}.get(host, host)
        if plain in ("2130706433", "0x7f.1"):
            plain = "127.0.0.1"
        return [(family, socket.SOCK_STREAM, 6, "", (plain, port))]

    monkeypatch.setattr(socket, "getaddrinfo", as_it_is_written)

    result = caller.call("http_check", {"url": f"http://{address}/"})

    assert result.failure is not None
    assert result.failure.code in (FailureCode.PERMISSION_DENIED, FailureCode.INVALID_ARGUMENT)
    assert result.failure.code is FailureCode.PERMISSION_DENIED or "0" in address


@pytest.mark.skipif(not HAS_RE2, reason="needs google-re2")
@pytest.mark.parametrize("name", ["regex_extract", "regex_replace"])
def test_no_pattern_takes_exponential_time(caller: Caller, name: str) -> None:
    begun = time.process_time()
    arguments = {"text": "a" * 5_000 + "!", "pattern": "(a+)+$", "replacement": "x"}
    if name == "regex_extract":
        del arguments["replacement"]

    result = caller.call(name, arguments)

    assert result.failure is None, result.text
    assert time.process_time() - begun < LONGEST_S


def test_a_file_is_hashed_only_below_its_folder(caller: Caller, tmp_path: Path) -> None:
    (tmp_path / "outside.txt").write_text("secret")

    for path in (str(tmp_path / "outside.txt"), "../outside.txt", "/etc/passwd"):
        result = caller.call("file_hash", {"path": path})
        assert result.failure is not None
        assert "secret" not in result.render()
