from typing import Any

import msgspec
import pytest

from seawall import Annotations, Registry, Risk, Tool
from seawall.edges.mcp.definitions import tool_from_mcp, tool_to_mcp

DECLARED: dict[str, Any] = {
    "name": "read",
    "title": "Read it",
    "description": "Reads a file.",
    "inputSchema": {"type": "object", "properties": {"path": {"type": "string"}}},
    "outputSchema": {"type": "object"},
    "annotations": {"readOnlyHint": False, "destructiveHint": False, "title": "Other"},
    "icons": [{"src": "data:,"}],
    "_meta": {"vendor/x": [1]},
    "fromALaterRevision": {"a": None},
}


async def run(arguments: dict[str, Any], context: Any) -> None:
    """Do nothing."""


def test_hints_of_a_trusted_server_count_and_false_is_not_absent() -> None:
    tool = tool_from_mcp(DECLARED, run, trusted=True)

    assert tool.annotations == Annotations(read_only=False, destructive=False)
    assert tool.annotations.idempotent is None
    assert not tool.retry_safe


@pytest.mark.parametrize("hints", [{"readOnlyHint": True}, {"idempotentHint": True}, {}])
def test_hints_of_another_server_do_not_count(hints: dict[str, bool]) -> None:
    tool = tool_from_mcp({**DECLARED, "annotations": hints}, run)

    assert not tool.annotations.declared
    assert not tool.retry_safe
    assert tool.annotations.is_destructive
    assert tool.effective_risk is Risk.MEDIUM


@pytest.mark.parametrize("read_only", [True, False, None])
def test_a_warning_is_believed_from_anybody(read_only: bool | None) -> None:
    hints = {"destructiveHint": True, "idempotentHint": True, "readOnlyHint": read_only}

    tool = tool_from_mcp({**DECLARED, "annotations": hints}, run)

    assert tool.effective_risk is Risk.HIGH
    assert not tool.retry_safe


@pytest.mark.parametrize("trusted", [True, False])
def test_what_a_server_declared_is_said_again_without_loss(trusted: bool) -> None:
    assert tool_to_mcp(tool_from_mcp(DECLARED, run, trusted=trusted)) == DECLARED


def test_what_was_changed_here_is_said_as_it_is_now() -> None:
    tool = tool_from_mcp(DECLARED, run, name="files__read", trusted=True)
    changed = msgspec.structs.replace(
        tool, description="Better.", annotations=Annotations.for_reading()
    )

    assert tool_to_mcp(changed) == {
        **DECLARED,
        "name": "files__read",
        "description": "Better.",
        "annotations": {
            "title": "Other",
            "readOnlyHint": True,
            "destructiveHint": False,
            "idempotentHint": True,
            "openWorldHint": False,
        },
    }


def test_a_tool_of_our_own_is_declared_by_its_fields() -> None:
    tool = Tool("ping", "Answers.", {"type": "object"}, run, annotations=Annotations.for_reading())

    assert tool_to_mcp(tool)["annotations"]["readOnlyHint"] is True


@pytest.mark.parametrize(
    "broken",
    [
        {"inputSchema": {"type": "objekt"}},
        {"inputSchema": [1]},
        {"inputSchema": None},
        {"inputSchema": {"properties": {"a": {"$ref": 7}}}},
        {"outputSchema": {"type": 3}},
    ],
)
def test_a_broken_schema_is_set_aside_with_the_reason(broken: dict[str, Any]) -> None:
    registry = Registry()

    registry.register(tool_from_mcp({**DECLARED, **broken}, run), on_invalid="quarantine")

    assert "read" in registry.quarantined()
    assert registry.quarantined()["read"]


@pytest.mark.parametrize(
    "odd",
    [
        {"annotations": "readOnlyHint"},
        {"annotations": {"readOnlyHint": "true"}},
        {"annotations": None},
    ],
)
def test_hints_that_are_no_booleans_count_as_not_given(odd: dict[str, Any]) -> None:
    assert not tool_from_mcp({**DECLARED, **odd}, run, trusted=True).annotations.declared
