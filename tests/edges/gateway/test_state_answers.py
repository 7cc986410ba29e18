"""Calls under a key, known to all gateways on one state. Each gateway here has a pipeline and a
connection to the state of its own, as workers have."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
from tests.edges.gateway.serving import ADMIN, CALLER, asking
from tests.waiting import until

from seawall import (
    AllowlistPolicy,
    Annotations,
    Pipeline,
    Policies,
    RunPolicy,
    StoreUnavailable,
    open_state,
    tool,
)
from seawall.edges.gateway import kept_answers
from seawall.edges.gateway.tokens import token_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    import httpx

KEY = b"k" * 32


class Shop:
    """Tools that count what they did, in all gateways together."""

    def __init__(self) -> None:
        self.ran = 0
        self.goes_on = asyncio.Event()
        self.goes_on.set()
        self.began = asyncio.Event()

        @tool(annotations=Annotations.for_reading())
        async def read(what: str = "", n: float = 0) -> str:
            """Read."""
            return await self._run(what)

        @tool(annotations=Annotations.for_changing(), risk="low")
        async def pay(what: str = "", n: float = 0) -> str:
            """Pay."""
            return await self._run(what)

        @tool(annotations=Annotations.for_destroying(), risk="low")
        async def wipe(what: str = "") -> str:
            """Wipe."""
            return await self._run(what)

        @tool(annotations=Annotations.for_reading())
        async def other(what: str = "") -> str:
            """Read something else."""
            return await self._run(what)

        self.tools = [read, pay, wipe, other]

    async def _run(self, what: str) -> str:
        self.ran += 1
        self.began.set()
        await self.goes_on.wait()
        if what == "fails":
            raise ValueError(what)
        return f"run {self.ran}"


@asynccontextmanager
async def gateways(
    shop: Shop, state_url: str, count: int = 2, layers: Any = None, **policy: Any
) -> AsyncIterator[list[httpx.AsyncClient]]:
    async with AsyncExitStack() as stack:
        found = []
        for _ in range(count):
            state = await stack.enter_async_context(open_state(state_url, key=KEY))
            policies = Policies(RunPolicy(**policy))
            pipeline = Pipeline(shop.tools, policies=policies, state=state, layers=layers)
            found.append(await stack.enter_async_context(asking(pipeline=pipeline)))
        yield found


async def ask(
    client: httpx.AsyncClient, tool: str, key: str = "k", **arguments: Any
) -> httpx.Response:
    body = {"tool": tool, "arguments": arguments}
    return await client.post("/tools/call", json=body, headers={"Idempotency-Key": key})


async def answered(client: httpx.AsyncClient, tool: str, **arguments: Any) -> httpx.Response:
    """Ask until the key is not that of a call that runs."""

    async def other_than_running() -> httpx.Response | None:
        found = await ask(client, tool, **arguments)
        return None if found.status_code == 409 else found

    found: httpx.Response = await until(other_than_running)
    return found


# A tool that reads has no ledger; one that pays may have been denied one.
KINDS = pytest.mark.parametrize(("name", "ledger"), [("read", "on"), ("pay", "off"), ("pay", "on")])


@pytest.mark.parametrize(
    "names", [("pay", "wipe"), ("read", "pay"), ("pay", "read"), ("read", "other")]
)
async def test_of_two_tools_under_one_key_at_once_one_runs_whichever_workers_are_asked(
    state_url: str, names: tuple[str, str]
) -> None:
    shop = Shop()
    async with gateways(shop, state_url) as workers:
        asked = zip(workers, names, strict=True)
        answers = await asyncio.gather(*(ask(worker, name) for worker, name in asked))

    assert shop.ran == 1
    assert sorted(answer.status_code for answer in answers) == [200, 422]
    (refused,) = (answer for answer in answers if answer.status_code == 422)
    assert refused.json()["failure"]["reason"] == "idempotency_conflict"


@pytest.mark.parametrize("layers", [[], ["risk_gate", "argument_check", "timeout"]])
@pytest.mark.parametrize("name", ["read", "pay"])
async def test_keys_are_kept_for_all_where_the_layers_are_without_the_ledger(
    state_url: str, monkeypatch: pytest.MonkeyPatch, name: str, layers: list[str]
) -> None:
    monkeypatch.setattr(kept_answers, "KEYS_OF_A_CLIENT", 2)
    shop = Shop()
    async with gateways(shop, state_url, layers=layers) as (one, other):
        first = await ask(one, name, "a")
        for key in ("b", "c", "d"):
            await ask(one, name, key)
        again = await ask(one, name, "a")
        elsewhere = await ask(other, name, "a")

    assert shop.ran == 4
    assert first.json()["text"] == again.json()["text"] == elsewhere.json()["text"]


@KINDS
async def test_a_key_is_run_once_and_answered_by_all(
    state_url: str, name: str, ledger: str
) -> None:
    shop = Shop()
    async with gateways(shop, state_url, ledger=ledger) as (one, other):
        first = await ask(one, name)
        again = await ask(other, name)
        itself = await ask(one, name)

    assert shop.ran == 1
    assert first.json()["requestId"]
    here = ("attempts", "durationMs")  # of this asking: nothing was run for it
    assert {**again.json(), **dict.fromkeys(here)} == {**first.json(), **dict.fromkeys(here)}
    assert again.headers["idempotency-replayed"] == itself.headers["idempotency-replayed"] == "true"


@KINDS
async def test_a_failure_that_may_have_had_an_effect_is_given_again(
    state_url: str, name: str, ledger: str
) -> None:
    shop = Shop()
    async with gateways(shop, state_url, ledger=ledger) as (one, other):
        first = await ask(one, name, what="fails")
        again = await ask(other, name, what="fails")

    assert first.status_code == again.status_code == 502
    assert shop.ran == 1


@KINDS
async def test_a_key_that_was_used_for_another_call_is_refused_by_all(
    state_url: str, name: str, ledger: str
) -> None:
    shop = Shop()
    async with gateways(shop, state_url, ledger=ledger) as (one, other):
        await ask(one, name)
        differs = await ask(other, name, what="else")

    assert differs.status_code == 422
    assert shop.ran == 1


@KINDS
async def test_while_it_runs_anywhere_it_is_said_to_run(
    state_url: str, name: str, ledger: str
) -> None:
    shop = Shop()
    shop.goes_on.clear()
    async with gateways(shop, state_url, ledger=ledger) as (one, other):
        running = asyncio.ensure_future(ask(one, name))
        await shop.began.wait()
        meanwhile = await ask(other, name)
        shop.goes_on.set()
        await running

    assert meanwhile.status_code == 409
    assert shop.ran == 1


@KINDS
async def test_what_was_broken_off_is_run_again_only_if_it_may_be_repeated(
    state_url: str, name: str, ledger: str
) -> None:
    shop = Shop()
    shop.goes_on.clear()
    async with gateways(shop, state_url, ledger=ledger) as (one, other):
        running = asyncio.ensure_future(ask(one, name))
        await shop.began.wait()
        running.cancel()
        await asyncio.wait([running])
        shop.goes_on.set()
        again = await answered(other, name)

    if name == "read":
        assert (again.status_code, shop.ran) == (200, 2)
    else:
        assert again.json()["failure"]["reason"] == "outcome_unknown"
        assert shop.ran == 1


async def test_what_ran_nothing_leaves_the_key_to_be_used(state_url: str) -> None:
    shop = Shop()
    async with gateways(shop, state_url) as (one, other):
        wrong = await ask(one, "read", what=["not a text"])
        right = await answered(other, "read", what="well")

    assert wrong.status_code == 422
    assert right.json()["text"] == "run 1"


async def test_keys_of_a_run_before_are_known(state_url: str) -> None:
    shop = Shop()
    for _ in range(2):
        async with gateways(shop, state_url, count=1) as (one,):
            answer = await ask(one, "read")

    assert answer.headers["idempotency-replayed"] == "true"
    assert shop.ran == 1


async def test_a_call_under_a_key_that_cannot_be_written_down_is_not_run(
    state_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = Shop()
    async with open_state(state_url, key=KEY) as state:
        assert state.answers is not None

        async def unavailable(_: Any) -> Any:
            raise StoreUnavailable("the state", "it is gone")

        monkeypatch.setattr(state.answers, "begin", unavailable)
        async with asking(pipeline=Pipeline(shop.tools, state=state)) as one:
            refused = await ask(one, "read")
            monkeypatch.undo()
            later = await ask(one, "read")

    assert refused.status_code == 503
    assert "retry-after" in refused.headers
    assert later.json()["text"] == "run 1"


async def test_answers_are_no_effects_for_the_audit_log_and_the_list_of_unknown_ones(
    state_url: str,
) -> None:
    shop = Shop()
    async with open_state(state_url, key=KEY) as state:
        async with asking(pipeline=Pipeline(shop.tools, state=state)) as one:
            await ask(one, "read")
        kinds = [record.text async for record in state.audit.records()]
        assert state.ledger is not None
        unknown = await state.ledger.unknown()

    assert not [text for text in kinds if '"kind":"effect"' in text]
    assert not unknown


async def _of_both(
    state_url: str, shop: Shop, *calls: tuple[str, str, dict[str, Any]]
) -> list[Any]:
    """Make calls of `tool`, `ledger` and arguments under one key, each in a run of its own."""
    found = []
    for name, ledger, arguments in calls:
        async with gateways(shop, state_url, count=1, ledger=ledger) as (one,):
            found.append(await answered(one, name, **arguments))
    return found


@pytest.mark.parametrize(
    ("first", "other"),
    [
        (("pay", "on"), ("read", "on")),
        (("read", "on"), ("pay", "on")),
        (("pay", "off"), ("read", "on")),
        (("pay", "on"), ("wipe", "on")),
        (("pay", "on"), ("wipe", "off")),
        (("pay", "off"), ("wipe", "on")),
    ],
)
async def test_a_key_is_bound_to_its_tool_in_the_next_run_too(
    state_url: str, first: tuple[str, str], other: tuple[str, str]
) -> None:
    shop = Shop()

    one, wrong, again = await _of_both(
        state_url, shop, (*first, {"what": "a"}), (*other, {"what": "a"}), (*first, {"what": "a"})
    )

    assert (one.status_code, wrong.status_code, again.status_code) == (200, 422, 200)
    assert wrong.json()["failure"]["reason"] == "idempotency_conflict"
    assert (again.json()["text"], again.headers["idempotency-replayed"]) == ("run 1", "true")
    assert shop.ran == 1


@pytest.mark.parametrize(("before", "after", "status"), [("off", "on", 200), ("on", "off", 422)])
async def test_a_call_that_changes_something_is_not_run_twice_as_its_policy_got_a_ledger_or_lost_it(
    state_url: str, before: str, after: str, status: int
) -> None:
    shop = Shop()

    _, again = await _of_both(state_url, shop, ("pay", before, {}), ("pay", after, {}))

    assert (again.status_code, shop.ran) == (status, 1)


@KINDS
async def test_the_same_arguments_in_another_order_are_the_same_call_in_the_next_run(
    state_url: str, name: str, ledger: str
) -> None:
    shop = Shop()

    first, again, other = await _of_both(
        state_url,
        shop,
        (name, ledger, {"what": "a", "n": 1}),
        (name, ledger, {"n": 1.0, "what": "a"}),
        (name, ledger, {"n": 2, "what": "a"}),
    )

    assert (again.json()["text"], other.status_code, shop.ran) == (first.json()["text"], 422, 1)


async def test_a_key_that_waits_for_a_person_is_bound_to_its_tool_in_the_next_run(
    state_url: str,
) -> None:
    shop = Shop()
    waiting: list[httpx.Response] = []
    wrong: list[httpx.Response] = []
    for name, found in (("wipe", waiting), ("pay", wrong), ("wipe", waiting)):
        state = open_state(state_url, key=KEY)
        pipeline = Pipeline(
            shop.tools, state=state, risk=AllowlistPolicy(allow=["pay"], ask=["wipe"])
        )
        async with state, asking(pipeline=pipeline) as client:
            found.append(await ask(client, name))

    assert [one.status_code for one in (*waiting, *wrong)] == [202, 202, 422]
    assert waiting[0].json()["approval"] == waiting[1].json()["approval"]
    assert shop.ran == 0


async def test_a_key_whose_call_ran_nothing_may_be_used_for_another_tool(state_url: str) -> None:
    shop = Shop()
    async with gateways(shop, state_url, count=1) as (one,):
        refused = await ask(one, "pay", n="many")
        other = await ask(one, "wipe")

    assert (refused.status_code, other.status_code, shop.ran) == (422, 200, 1)
    assert refused.json()["failure"]["reason"] != "idempotency_conflict"


async def test_clients_may_use_the_same_key_for_different_tools(state_url: str) -> None:
    shop = Shop()
    tokens = token_of("shop", CALLER, "call") + token_of("other", ADMIN, "call")
    found = []
    for name, token in (("pay", CALLER), ("wipe", ADMIN)):
        async with open_state(state_url, key=KEY) as state:
            pipeline = Pipeline(shop.tools, state=state)
            async with asking(pipeline=pipeline, tokens=tokens, token=token) as client:
                found.append(await ask(client, name))

    assert [one.status_code for one in found] == [200, 200]
    assert shop.ran == 2
