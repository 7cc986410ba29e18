from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.edges.gateway.serving import ADMIN, CALLER, TOOLS, asking, bearer, call

from seawall import ApprovalSettings, Pipeline
from seawall.edges.gateway import asked_before
from seawall.edges.gateway.tokens import token_of
from seawall.testing import FakeClock

if TYPE_CHECKING:
    from pathlib import Path

    import httpx

TOKENS = token_of("shop", CALLER, "call") + token_of("other", ADMIN, "call")


async def _wait(client: httpx.AsyncClient, key: str, token: str = CALLER) -> httpx.Response:
    headers = {"idempotency-key": key, **bearer(token)}
    found: httpx.Response = await call(client, "drop_table", {"name": key}, headers=headers)
    return found


@pytest.fixture(autouse=True)
def _two_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asked_before, "KEYS_OF_A_CLIENT", 2)


async def test_in_memory_a_client_with_many_keys_that_wait_can_use_no_new_one() -> None:
    clock = FakeClock()
    pipeline = Pipeline(TOOLS, approvals=ApprovalSettings(), clock=clock)
    async with asking(pipeline=pipeline, tokens=TOKENS, keep_answers_s=100.0) as client:
        first = await _wait(client, "a")
        for key in "cdefg":
            await _wait(client, key, ADMIN)
        await _wait(client, "b")
        refused, again = await _wait(client, "c"), await _wait(client, "a")
        asked = await pipeline.approvals.list()
        await clock.advance(100)
        later = await _wait(client, "c")

    assert (refused.status_code, refused.headers["retry-after"]) == (429, "100")
    assert (again.status_code, again.json()["approval"]) == (202, first.json()["approval"])
    assert len(asked) == 4
    assert later.status_code == 202


async def test_with_a_state_there_is_no_such_bound(tmp_path: Path) -> None:
    pipeline = Pipeline(TOOLS, state=f"sqlite:///{tmp_path}/state.db")
    async with pipeline, asking(pipeline=pipeline, tokens=TOKENS) as client:
        first = {key: await _wait(client, key) for key in "abcde"}
        again = {key: await _wait(client, key) for key in "abcde"}

    assert {key: one.json()["approval"] for key, one in first.items()} == {
        key: one.json()["approval"] for key, one in again.items()
    }
