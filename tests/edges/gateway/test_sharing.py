"""What is said of what workers share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace
from tests.edges.gateway.serving import asking

from seawall import (
    Annotations,
    CachePolicy,
    ConfigurationError,
    Pipeline,
    Policies,
    RunPolicy,
    open_state,
    tool,
)
from seawall.edges.gateway.settings import GatewaySettings
from seawall.edges.gateway.sharing import need_shared_state, said_of, sharing

if TYPE_CHECKING:
    from pathlib import Path


@tool(annotations=Annotations.for_reading(), exclusive="all")
async def alone() -> str:
    """Run alone."""
    return "done"


def how(pipeline: Pipeline, what: str) -> str:
    parts = sharing(pipeline, GatewaySettings())
    return next(part.how for part in parts if part.what.startswith(what))


def test_in_memory_each_has_all_of_its_own() -> None:
    pipeline = Pipeline([alone])

    assert {how(pipeline, what) for what in ("approvals", "circuits", "metrics")} == {"each"}
    assert how(pipeline, "rates of tools") == "divided"
    assert how(pipeline, "exclusive (alone)") == "each"


def test_with_both_stores_what_they_keep_is_shared(tmp_path: Path) -> None:
    with_both = Pipeline(
        [alone], state=f"sqlite:///{tmp_path}/s.db", shared="redis://127.0.0.1:9/0"
    )

    for what in ("approvals", "effects", "idempotency keys", "rates of clients", "circuits"):
        assert how(with_both, what) == "shared"
    assert how(with_both, "usage") == "each"


def test_bounds_of_one_worker_are_named_only_where_a_tool_has_them() -> None:
    names = [f"t{number}" for number in range(7)]

    @tool(annotations=Annotations.for_reading())
    async def read() -> str:
        """Read."""
        return "done"

    tools = [replace(read, name=name) for name in names]
    cached = Policies(RunPolicy(cache=CachePolicy(ttl_s=1.0)))
    said = "\n".join(said_of(sharing(Pipeline(tools, policies=cached), GatewaySettings()), 3))

    assert "cache (t0, t1, t2, t3, t4 and 2 more)" in said
    assert "max_concurrency" not in said
    assert "exclusive" not in said
    assert "1/3" in said


def test_workers_need_a_state_and_a_key(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="need a state"):
        need_shared_state(None, 2)
    with pytest.raises(ConfigurationError, match="need a state"):
        need_shared_state(open_state("memory:"), 2)
    with pytest.raises(ConfigurationError, match="SEAWALL_STATE_KEY"):
        need_shared_state(open_state("postgresql://nobody@127.0.0.1:9/x"), 2)
    need_shared_state(open_state(f"sqlite:///{tmp_path}/s.db"), 2)


async def test_a_gateway_alone_says_nothing_of_workers_but_where_it_is_asked() -> None:
    async with asking() as client:
        told = (await client.get("/workers")).json()
        traces = (await client.get("/traces")).json()

    assert (told["worker"], told["workers"]) == (1, 1)
    assert "workers" not in traces


async def test_one_of_several_says_whose_view_it_gives() -> None:
    async with asking(worker=2, workers=3) as client:
        for path in ("/traces", "/usage", "/breakers"):
            found = (await client.get(path)).json()
            assert (found["worker"], found["workers"]) == (2, 3)


@pytest.mark.parametrize(("worker", "workers"), [(0, 1), (2, 1), (1, 0)])
def test_a_worker_that_is_none_of_them_is_refused(worker: int, workers: int) -> None:
    with pytest.raises(ConfigurationError, match="number of workers"):
        GatewaySettings(worker=worker, workers=workers)
