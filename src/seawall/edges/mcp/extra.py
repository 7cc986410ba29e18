"""Whether the official SDK is installed, said once and clearly."""

from __future__ import annotations

from importlib.util import find_spec

from seawall.contract.errors import ConfigurationError


def need_sdk() -> None:
    """Raise ConfigurationError, with what to install, if the SDK is missing."""
    if find_spec("mcp") is None or find_spec("httpx2") is None:
        raise ConfigurationError(
            "speaking to MCP servers needs the official SDK: pip install 'seawall[mcp]'"
        )
