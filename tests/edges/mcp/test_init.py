import subprocess
import sys

import pytest

import seawall.edges.mcp


@pytest.mark.parametrize("name", seawall.edges.mcp.__all__)
def test_every_name_can_be_had(name: str) -> None:
    assert getattr(seawall.edges.mcp, name).__name__ == name


def test_another_name_is_an_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'conect'"):
        seawall.edges.mcp.conect  # noqa: B018  # asked for, to be refused


def test_the_sdk_is_not_loaded_before_a_server_is_connected() -> None:
    code = (
        "import sys; from seawall.edges.mcp import *;"
        " Servers(servers_of({'mcpServers': {'s': {'command': 'x'}}}));"
        " sys.exit(bool({'mcp', 'httpx2', 'anyio'} & set(sys.modules)))"
    )

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
