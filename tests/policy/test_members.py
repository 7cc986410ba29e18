"""Which tools belong to a family."""

from __future__ import annotations

from typing import Any

import pytest

from seawall.contract.annotations import Annotations
from seawall.contract.tool import Tool
from seawall.policy.changes import Family
from seawall.policy.members import Members


async def answer(arguments: dict[str, Any], context: Any) -> str:
    return "done"


def a_tool(name: str = "git__push", **fields: Any) -> Tool:
    return Tool(name, "", {}, answer, **fields)


@pytest.mark.parametrize(
    ("family", "tool", "chosen"),
    [
        (Family(), a_tool(), False),
        (Family(match=("git__*", "fs__*")), a_tool("fs__read"), True),
        (Family(match=("git__*",)), a_tool("fs__read"), False),
        (Family(match=("git__push",)), a_tool(), True),
        (Family(tags=("slow", "cheap")), a_tool(tags=("cheap", "other")), True),
        (Family(tags=("slow",)), a_tool(tags=("cheap",)), False),
        (Family(categories=("files", "time")), a_tool(category="time"), True),
        (Family(categories=("files",)), a_tool(category="time"), False),
        (Family(servers=("git",)), a_tool(), True),
        (Family(servers=("gi",)), a_tool(), False),
        (Family(servers=("git",)), a_tool("git_push"), False),
        (Family(servers=("mcp__git",)), a_tool("mcp__git__push"), True),
        (
            Family(annotations={"read_only": True}),
            a_tool(annotations=Annotations.for_reading()),
            True,
        ),
        (Family(annotations={"read_only": True}), a_tool(), False),
        (Family(annotations={"read_only": False}), a_tool(), False),
        (Family(annotations={"open_world": True}), a_tool(imported=True), False),
        (
            Family(annotations={"read_only": True, "open_world": True}),
            a_tool(annotations=Annotations.for_reading()),
            False,
        ),
        (Family(annotations={"sensitive": False}), a_tool(), True),
        (Family(servers=("git",), tags=("slow",)), a_tool(), False),
        (Family(servers=("git",), tags=("slow",)), a_tool(tags=("slow",)), True),
    ],
)
def test_a_tool_is_chosen_if_each_given_field_fits_it(
    family: Family, tool: Tool, *, chosen: bool
) -> None:
    assert Members("any", family).chosen(tool) is chosen


def test_a_tool_may_name_its_family_whatever_that_asks_for() -> None:
    members = Members("files", Family(match=("git__*",)))

    assert members.named_by(a_tool(family="files"))
    assert not members.named_by(a_tool())
