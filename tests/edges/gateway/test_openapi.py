from __future__ import annotations

import json
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tests.edges.gateway.serving import ADMIN, asking
from tests.found import program

from seawall.edges.gateway.openapi import document

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def serving() -> Iterator[str]:
    """The command in a process of its own, with the bundled tools."""
    with subprocess.Popen(
        [sys.executable, "-m", "seawall", "serve", "--port", "0"],
        stderr=subprocess.PIPE,
        env={"SEAWALL_ADMIN_TOKEN": ADMIN, "PATH": ""},
        text=True,
    ) as process:
        assert process.stderr is not None
        try:
            yield process.stderr.readline().split()[-1]
        finally:
            process.terminate()


async def test_every_path_that_is_served_is_described_and_the_other_way_round() -> None:
    async with asking() as client:
        routes = client._transport.app._router.routes  # type: ignore[attr-defined]  # looks inside
        served = {
            (route.path, method.lower())
            for route in routes
            for method in route.methods - {"HEAD"}
            if route.path not in {"/", "/assets/{file}", "/openapi.json"}
        }

    described = {(path, method) for path, said in document()["paths"].items() for method in said}
    assert served == described


async def test_the_description_is_served() -> None:
    async with asking() as client:
        served = (await client.get("/openapi.json")).json()

    assert served == json.loads(json.dumps(document()))


def test_a_fuzzer_finds_no_500_and_no_answer_that_is_not_described() -> None:
    fuzzer = program("schemathesis")
    with serving() as base:
        ran = subprocess.run(
            [
                fuzzer,
                "run",
                f"{base}/openapi.json",
                # A stream without an end.
                "--exclude-path=/events",
                # Which arguments are right depends on the tool that is named beside them.
                "--exclude-checks=positive_data_acceptance",
                "--max-examples=15",
                "--seed=1",
                "--no-color",
                "-H",
                f"Authorization: Bearer {ADMIN}",
            ],
            capture_output=True,
            text=True,
            check=False,
            timeout=240,
        )

    assert ran.returncode == 0, ran.stdout[-6_000:]
