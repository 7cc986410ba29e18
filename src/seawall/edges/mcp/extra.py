"""Whether the official SDK is installed, said once and clearly."""

from __future__ import annotations

from importlib.util import find_spec

from seawall.contract.errors import ConfigurationError
from seawall.pipeline.extras import unfitting, version_of


def need_sdk() -> None:
    """Raise ConfigurationError, with what to install, if the SDK is missing or too old."""
    old = find_spec("mcp_types") is None and version_of("mcp") is not None
    if find_spec("mcp") is None or (find_spec("httpx2") is None and not old):
        raise ConfigurationError(
            "speaking to MCP servers needs the official SDK: pip install 'seawall[mcp]'"
        )
    if old:
        raise ConfigurationError(unfitting("mcp", "mcp", "it is of a generation before 2.0"))
