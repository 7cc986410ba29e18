"""What is missing is said before anything is opened."""

from __future__ import annotations

import importlib.util
from typing import Any

import pytest

from seawall import ConfigurationError
from seawall.edges.mcp.proxy import command
from seawall.edges.mcp.proxy.options import ProxyOptions


@pytest.mark.parametrize(
    ("missing", "options", "said"),
    [
        ("mcp", {"url": "http://127.0.0.1:1/mcp"}, "--url needs.*'seawall\\[mcp\\]'"),
        ("httpx2", {"url": "https://x.example/mcp"}, "'seawall\\[mcp\\]'"),
        ("uvicorn", {"command": ("x",), "http": "1"}, "--http needs.*'seawall\\[gateway\\]'"),
        ("httptools", {"command": ("x",), "http": "1"}, "'seawall\\[gateway\\]'"),
        ("mcp", {"command": ("x",), "http": "1"}, "'seawall\\[mcp\\]'"),
    ],
)
def test_a_missing_extra_is_named(
    monkeypatch: pytest.MonkeyPatch, missing: str, options: dict[str, Any], said: str
) -> None:
    real = importlib.util.find_spec
    monkeypatch.setattr(command, "find_spec", lambda name: None if name == missing else real(name))

    with pytest.raises(ConfigurationError, match=said):
        command.proxy(ProxyOptions(**options))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "name a server"),
        ({"url": "http://x.example", "command": ("x",)}, "not both"),
        ({"url": "x.example"}, "must begin with"),
    ],
)
def test_what_does_not_go_together_is_told(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        command.proxy(ProxyOptions(**options))
