"""What `python -m tests.outages` shows at length, in short: whatever happens to PostgreSQL, no call
hangs, nothing is raised, no approval or effect is lost or doubled, and all goes on within 5 s."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.outages.postgres import FailingPostgres, running_failing_postgres
from tests.outages.runs import HOWS, Scene, outage, scene

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@pytest.fixture(scope="module")
def server() -> Iterator[FailingPostgres]:
    with running_failing_postgres() as found:
        yield found


@pytest.mark.parametrize("down_s", [1.0, pytest.param(8.0, marks=pytest.mark.long)])
@pytest.mark.parametrize("how", HOWS, ids=lambda how: how.__name__)
def test_the_pipeline_keeps_its_word_whatever_happens_to_the_database(
    how: Callable[[Scene, float], None], down_s: float, server: FailingPostgres
) -> None:
    with scene(server) as at:
        run = outage(at, how, down_s)

    assert run.faults == []
