"""The guard, given lists as a server says them."""

import logging
from pathlib import Path
from typing import Any

import pytest

from seawall import Policies
from seawall.edges.mcp.proxy import messages
from seawall.edges.mcp.proxy.client import Client
from seawall.edges.mcp.proxy.guard import Guard
from seawall.testing import FakeClock, FixedChance

POLICY = """
extends = "mcp-proxy"
[tools.delete_fiel]
max_retries = 0
[[risk.rules]]
tool = "write_file"
argument = "/paht"
under = ["/srv"]
decide = "allow"
otherwise = "deny"
"""


def listed(*names: str, **more: Any) -> messages.Message:
    schema = {"type": "object", "properties": {"path": {"type": "string"}}}
    tools = [{"name": name, "inputSchema": schema} for name in names]
    message = messages.read(messages.answer(1, {"tools": tools, **more}))
    assert message is not None
    return message


async def test_rules_that_fit_no_tool_are_told_once_all_tools_are_known(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "x.toml").write_text(POLICY)
    chance = FixedChance(0.5)
    guard = Guard(Policies.load(tmp_path / "x.toml"), clock=FakeClock(), chance=chance)

    guard.catalogue.seen(Client(chance), listed("delete_file", nextCursor="2"))
    assert not caplog.records
    for _ in range(2):
        with caplog.at_level(logging.WARNING, "seawall"):
            guard.catalogue.seen(Client(chance), listed("delete_file", "write_file"))

    first, second = (record.getMessage() for record in caplog.records)
    assert "delete_fiel" in first
    assert first.endswith("fits no tool; did you mean delete_file?")
    assert second.endswith("looks at /paht, but write_file has no argument 'paht'")
    await guard.aclose()
