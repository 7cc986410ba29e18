"""The ready-made policy files load, and give what they say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from seawall.contract.annotations import Annotations, Risk
from seawall.contract.policy import PRESETS, RunPolicy
from seawall.contract.tool import Tool
from seawall.policy.model import Policies
from seawall.policy.ready_made import ready_made, ready_made_names

if TYPE_CHECKING:
    from pathlib import Path

READING = Annotations.for_reading()
OUTSIDE = Annotations.for_reading(open_world=True)

NAMES = (
    "batch-jobs",
    "default",
    "development",
    "gateway",
    "mcp-desktop",
    "mcp-proxy",
    "read-only-agent",
    "strict",
)


async def answer(arguments: dict[str, Any], context: Any) -> str:
    return "done"


def a_tool(name: str = "a", annotations: Annotations | None = None, **fields: Any) -> Tool:
    return Tool(name, "", {}, answer, annotations=annotations or Annotations(), **fields)


TOOLS = [
    a_tool(),
    a_tool(imported=True),
    a_tool("read", READING),
    a_tool("fetch", OUTSIDE),
    a_tool("write", Annotations.for_overwriting()),
    a_tool("change", Annotations.for_changing()),
    a_tool("drop", Annotations.for_destroying(), family="files", tags=("slow",)),
    a_tool("ask_user"),
    a_tool("ask_user_choice", OUTSIDE),
    a_tool("server__ask_user", imported=True),
]


def loaded(name: str) -> Policies:
    return Policies.load(ready_made(name))


def value(name: str, tool: Tool, key: str) -> Any:
    return loaded(name).explain(tool)[key].value


def test_the_files_are_those_that_are_documented() -> None:
    assert ready_made_names() == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_each_file_loads_and_has_a_policy_for_every_tool(name: str) -> None:
    policies = loaded(name)

    assert all(isinstance(policies.for_tool(tool), RunPolicy) for tool in TOOLS)
    assert policies.notes(TOOLS) == ()


@pytest.mark.parametrize("name", NAMES)
def test_each_file_begins_by_saying_what_it_is_for(name: str) -> None:
    text = ready_made(name).read_text(encoding="utf-8")

    assert len(text.partition("\n\n")[0]) > 150
    assert all(line.startswith("#") for line in text.partition("\n\n")[0].splitlines())


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_the_default_file_is_what_holds_without_a_file(tool: Tool) -> None:
    assert loaded("default").for_tool(tool) == Policies.default().for_tool(tool)


def test_the_default_file_asks_and_traces_as_without_a_file() -> None:
    assert loaded("default").risk == Policies.default().risk
    assert loaded("default").trace == Policies.default().trace


@pytest.mark.parametrize("name", [name for name in PRESETS if name != "legacy"])
def test_the_default_file_writes_the_presets_out_as_they_are(name: str, tmp_path: Path) -> None:
    text = ready_made("default").read_text(encoding="utf-8")
    # Under another name nothing is left of the preset but what the file says.
    copy = text.replace(f"[presets.{name}]", "[presets.copy]") + '[tools.a]\npreset = "copy"'
    (tmp_path / "x.toml").write_text(copy, encoding="utf-8")

    assert Policies.load(tmp_path / "x.toml").for_tool(a_tool()) == PRESETS[name]


@pytest.mark.parametrize(
    ("name", "ask_from"),
    [
        ("default", Risk.HIGH),
        ("development", Risk.HIGH),
        ("batch-jobs", Risk.HIGH),
        ("strict", Risk.MEDIUM),
        ("mcp-desktop", Risk.MEDIUM),
        ("mcp-proxy", Risk.HIGH),
        ("gateway", Risk.MEDIUM),
    ],
)
def test_a_person_is_asked_from_a_risk_on(name: str, ask_from: Risk) -> None:
    assert loaded(name).risk.ask_from is ask_from
    assert not loaded(name).risk.default_deny


def test_an_agent_that_only_reads_is_refused_what_is_not_listed() -> None:
    risk = loaded("read-only-agent").risk

    assert risk.default_deny
    assert risk.allow is not None
    assert "calculate" in risk.allow
    assert "note_add" not in risk.allow
    assert risk.ask == ("http_check",)
    assert not any(char in name for name in risk.allow for char in "*?[")


@pytest.mark.parametrize(
    ("name", "tool", "key", "expected"),
    [
        ("strict", a_tool("read", READING), "rate", "40/minute"),
        ("strict", a_tool("fetch", OUTSIDE), "rate", "10/minute"),
        ("strict", a_tool(), "rate", "10/minute"),
        ("strict", a_tool(), "breaker.threshold", 3),
        ("strict", a_tool(), "breaker.max_cooldown_s", 120.0),
        ("strict", a_tool(), "max_result_bytes", 128 * 1024),
        ("strict", a_tool("ask_user"), "deadline_s", None),
        ("development", a_tool("fetch", OUTSIDE), "timeout_s", 600.0),
        ("development", a_tool("fetch", OUTSIDE), "max_retries", 0),
        ("development", a_tool("fetch", OUTSIDE), "rate_mode", "shadow"),
        ("development", a_tool("fetch", OUTSIDE), "breaker.mode", "shadow"),
        ("development", a_tool("fetch", OUTSIDE), "gate_mode", "on"),
        ("development", a_tool("ask_user"), "timeout_s", None),
        ("read-only-agent", a_tool("read", READING), "max_result_bytes", 256 * 1024),
        ("read-only-agent", a_tool("write"), "max_result_bytes", None),
        ("mcp-desktop", a_tool(imported=True), "timeout_s", 120.0),
        ("mcp-desktop", a_tool(imported=True), "grace_s", 3.0),
        ("mcp-desktop", a_tool("server__ask_user", imported=True), "timeout_s", None),
        ("mcp-proxy", a_tool(imported=True), "timeout_s", None),
        ("mcp-proxy", a_tool(imported=True), "idle_timeout_s", 120.0),
        ("mcp-proxy", a_tool(imported=True), "deadline_s", 1800.0),
        ("mcp-proxy", a_tool(imported=True), "rate", "6000/minute"),
        ("mcp-proxy", a_tool("drop", Annotations.for_destroying()), "max_retries", 2),
        ("mcp-proxy", a_tool("server__ask_user", imported=True), "idle_timeout_s", None),
        ("gateway", a_tool(), "rate_key", ("tool", "caller")),
        ("gateway", a_tool(), "on_store_down", "fail-closed"),
        ("gateway", a_tool(), "deadline_s", 600.0),
        ("gateway", a_tool("server__ask_user", imported=True), "deadline_s", None),
        (
            "batch-jobs",
            a_tool("fetch", OUTSIDE),
            "delays_s",
            (2.0, 5.0, 10.0, 20.0, 40.0, 80.0, 160.0),
        ),
        ("batch-jobs", a_tool("fetch", OUTSIDE), "timeout_s", 300.0),
        ("batch-jobs", a_tool("read", READING), "max_retries", 3),
        ("batch-jobs", a_tool("ask_user"), "timeout_s", 5.0),
    ],
)
def test_a_file_gives_what_it_says(name: str, tool: Tool, key: str, expected: Any) -> None:
    assert value(name, tool, key) == expected


def test_the_trace_of_a_gateway_is_long() -> None:
    assert loaded("gateway").trace.capacity == 10_000
