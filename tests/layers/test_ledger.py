import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from seawall import (
    Annotations,
    FailureCode,
    Handler,
    Invocation,
    Pipeline,
    Policies,
    RunPolicy,
    Session,
    State,
    StoreUnavailable,
    Tool,
    ToolContext,
    ToolFailed,
    ToolResult,
    open_state,
)
from seawall.contract.effect import Begun, Effect, EffectState
from seawall.contract.failure import Failure
from seawall.layers.ledger import ASK_AGAIN_S, LONGEST_KEY
from seawall.testing import FakeClock


class Payments:
    """A tool with an effect that can be counted."""

    def __init__(self) -> None:
        self.made: list[tuple[Any, str]] = []
        self.fail: BaseException | ToolResult | None = None
        self.begun = asyncio.Event()
        self.go_on = asyncio.Event()
        self.go_on.set()

    async def __call__(self, arguments: dict[str, Any], context: ToolContext) -> Any:
        self.begun.set()
        await self.go_on.wait()
        if isinstance(self.fail, BaseException):
            raise self.fail
        self.made.append((arguments.get("amount"), context.idempotency_key))
        if self.fail is not None:
            return self.fail
        return {"receipt": len(self.made)}

    def tool(self, **fields: Any) -> Tool:
        schema = {"type": "object", "properties": {"amount": {"type": "integer"}}}
        return Tool("pay", "Pays.", schema, self, **fields)


@pytest.fixture
def payments() -> Payments:
    return Payments()


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def state(tmp_path: Path, clock: FakeClock) -> AsyncIterator[State]:
    async with open_state(f"sqlite:///{tmp_path}/state.db", clock=clock) as state:
        yield state


def piped(state: State, *tools: Tool, policy: RunPolicy | None = None) -> Pipeline:
    policies = Policies(default=policy or RunPolicy())
    return Pipeline(tools, state=state, policies=policies, clock=state.clock, loop=None)


def reason_of(result: ToolResult) -> str:
    return "" if result.failure is None else result.failure.reason


async def test_the_same_key_and_arguments_are_one_effect(state: State, payments: Payments) -> None:
    pipeline = piped(state, payments.tool())

    first = await pipeline.call("pay", {"amount": 5}, idempotency_key="k")
    second = await pipeline.call("pay", '{"amount": 5}', idempotency_key="k", call_id="again")

    assert payments.made == [(5, "k")]
    assert second.structured_content == first.structured_content == {"receipt": 1}
    assert (second.call_id, second.attempts, second.duration_ms) == ("again", 0, None)


async def test_it_is_one_effect_for_another_process_too(state: State, payments: Payments) -> None:
    await piped(state, payments.tool()).call("pay", {"amount": 5}, idempotency_key="k")

    async with open_state(state.shown, clock=state.clock) as other:
        result = await piped(other, payments.tool()).call("pay", {"amount": 5}, idempotency_key="k")

    assert len(payments.made) == 1
    assert result.structured_content == {"receipt": 1}


async def test_other_arguments_are_a_conflict(state: State, payments: Payments) -> None:
    pipeline = piped(state, payments.tool())
    await pipeline.call("pay", {"amount": 5}, idempotency_key="k")

    result = await pipeline.call("pay", {"amount": 6}, idempotency_key="k")

    assert reason_of(result) == "idempotency_conflict"
    assert result.failure is not None
    assert result.failure.code is FailureCode.INVALID_ARGUMENT
    assert result.failure.may_have_run is False
    assert len(payments.made) == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Session("a"), Session("b")),
        (Session("a", caller="x"), Session("a", caller="y")),
        (Session("a" * 300), Session("a" * 299 + "b")),
    ],
)
async def test_a_key_is_of_one_caller_or_session(
    state: State, payments: Payments, one: Session, other: Session
) -> None:
    pipeline = piped(state, payments.tool())
    for session in (one, other):
        await pipeline.call("pay", {"amount": 5}, idempotency_key="k", session=session)

    assert len(payments.made) == 2


async def test_a_caller_keeps_a_key_over_sessions(state: State, payments: Payments) -> None:
    pipeline = piped(state, payments.tool())
    for name in ("a", "b"):
        session = Session(name, caller="x")
        await pipeline.call("pay", {"amount": 5}, idempotency_key="k", session=session)

    assert len(payments.made) == 1


async def test_a_key_is_of_one_tool_and_refused_for_another(
    state: State, payments: Payments
) -> None:
    other = Tool("refund", "Refunds.", payments.tool().input_schema, payments)
    pipeline = piped(state, payments.tool(), other)

    names = ("pay", "refund", "pay")
    said = [await pipeline.call(name, {"amount": 5}, idempotency_key="k") for name in names]

    assert len(payments.made) == 1
    assert [reason_of(result) for result in said] == ["", "idempotency_conflict", ""]
    assert said[1].failure is not None
    assert said[1].failure.may_have_run is False
    assert "was used for another call" in said[1].text


async def test_a_call_that_still_runs_is_said_to(
    state: State, payments: Payments, clock: FakeClock
) -> None:
    pipeline = piped(state, payments.tool())
    payments.go_on.clear()
    first = asyncio.create_task(pipeline.call("pay", {"amount": 5}, idempotency_key="k"))
    await payments.begun.wait()
    await clock.advance(7)

    soon = await pipeline.call("pay", {"amount": 5}, idempotency_key="k")
    await clock.advance(70)
    late = await pipeline.call("pay", {"amount": 5}, idempotency_key="k")
    payments.go_on.set()

    assert soon.failure is not None
    assert late.failure is not None
    assert (soon.failure.reason, soon.failure.code) == ("still_running", FailureCode.RATE_LIMITED)
    assert soon.failure.retry_after_s == 7
    assert late.failure.retry_after_s == ASK_AGAIN_S
    assert (await first).structured_content == {"receipt": 1}
    assert len(payments.made) == 1


async def test_a_call_of_another_process_that_runs_is_said_to(
    state: State, payments: Payments
) -> None:
    pipeline = piped(state, payments.tool())
    payments.go_on.clear()
    first = asyncio.create_task(pipeline.call("pay", {"amount": 5}, idempotency_key="k"))
    await payments.begun.wait()

    async with open_state(state.shown, clock=state.clock) as other:
        result = await piped(other, payments.tool()).call("pay", {"amount": 5}, idempotency_key="k")
    payments.go_on.set()
    await first

    assert reason_of(result) == "still_running"


async def test_a_failure_that_the_tool_answered_is_kept(state: State, payments: Payments) -> None:
    pipeline = piped(state, payments.tool())
    payments.fail = ToolFailed("the card was declined")
    first = await pipeline.call("pay", {"amount": 5}, idempotency_key="k")
    payments.fail = None

    second = await pipeline.call("pay", {"amount": 5}, idempotency_key="k")

    assert second.render() == first.render()
    assert payments.made == []


@pytest.mark.parametrize(
    "failure",
    [
        Failure(code=FailureCode.EXECUTION_FAILED, message="no such card", may_have_run=False),
        Failure(code=FailureCode.UNSUPPORTED, message="not here", may_have_run=False),
    ],
)
async def test_a_failure_without_an_effect_frees_the_key(
    state: State, payments: Payments, failure: Failure
) -> None:
    pipeline = piped(state, payments.tool())
    payments.fail = ToolFailed(failure)
    await pipeline.call("pay", {"amount": 5}, idempotency_key="k")
    payments.fail = None

    second = await pipeline.call("pay", {"amount": 5}, idempotency_key="k")

    assert second.structured_content == {"receipt": 1}


@pytest.mark.parametrize(
    "fail",
    [
        ConnectionResetError("reset"),
        TimeoutError("slow"),
        ValueError("a defect of the tool"),
        ToolFailed(Failure(code=FailureCode.TIMEOUT, message="slow")),
        ToolFailed(Failure(code=FailureCode.UNKNOWN, message="who knows")),
    ],
)
async def test_a_failure_that_says_nothing_of_the_effect_is_not_repeated(
    state: State, payments: Payments, fail: BaseException
) -> None:
    pipeline = piped(state, payments.tool())
    payments.fail = fail
    await pipeline.call("pay", {"amount": 5}, idempotency_key="k")
    payments.fail = None

    second = await pipeline.call("pay", {"amount": 5}, idempotency_key="k")

    assert second.failure is not None
    assert second.failure.code is FailureCode.UNKNOWN
    assert second.failure.reason == "outcome_unknown"
    assert second.failure.may_have_run is True
    assert "before you do anything again" in second.failure.guidance
    assert payments.made == []


async def test_a_timeout_leaves_the_outcome_unknown(
    state: State, payments: Payments, clock: FakeClock
) -> None:
    pipeline = piped(state, payments.tool(), policy=RunPolicy(timeout_s=10))
    payments.go_on.clear()
    first = asyncio.create_task(pipeline.call("pay", {"amount": 5}, idempotency_key="k"))
    await payments.begun.wait()
    await clock.advance(10)
    await first
    payments.go_on.set()

    assert reason_of(await first) == "attempt_timeout"
    second = await pipeline.call("pay", {"amount": 5}, idempotency_key="k")
    assert reason_of(second) == "outcome_unknown"
    assert "attempt timeout" in second.text


async def test_a_tool_that_may_be_replayed_is_run_again_under_the_same_key(
    state: State, payments: Payments
) -> None:
    pipeline = piped(state, payments.tool(replay="safe"))
    payments.fail = ConnectionResetError("reset")
    await pipeline.call("pay", {"amount": 5}, idempotency_key="k")
    payments.fail = None

    second = await pipeline.call("pay", {"amount": 5}, idempotency_key="k")
    third = await pipeline.call("pay", {"amount": 5}, idempotency_key="k")

    assert payments.made == [(5, "k")]
    assert second.structured_content == third.structured_content == {"receipt": 1}


async def test_a_cancel_while_it_runs_leaves_the_outcome_unknown(
    state: State, payments: Payments
) -> None:
    pipeline = piped(state, payments.tool())
    payments.go_on.clear()
    call = asyncio.create_task(pipeline.call("pay", {"amount": 5}, idempotency_key="k"))
    await payments.begun.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    payments.go_on.set()
    await settled(state)

    second = await pipeline.call("pay", {"amount": 5}, idempotency_key="k")

    assert reason_of(second) == "outcome_unknown"
    assert "cancelled" in second.text


@pytest.mark.parametrize("turns", range(0, 120, 7))
async def test_a_cancel_at_any_moment_loses_nothing_and_invents_nothing(
    state: State, payments: Payments, turns: int
) -> None:
    pipeline = piped(state, payments.tool())
    call = asyncio.create_task(pipeline.call("pay", {"amount": 5}, idempotency_key="k"))
    for _ in range(turns):
        await asyncio.sleep(0.0002)
    call.cancel()
    await asyncio.wait([call])
    await settled(state)

    second = await pipeline.call("pay", {"amount": 5}, idempotency_key="k")

    assert len(payments.made) == 1
    assert second.structured_content == {"receipt": 1}


async def test_an_outcome_that_was_being_written_is_kept_when_the_caller_goes(
    state: State, payments: Payments, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline = piped(state, payments.tool())
    ledger = state.ledger
    assert ledger is not None
    settling = asyncio.Event()
    original = ledger.settle

    async def settle(outcome: Any) -> None:
        settling.set()
        await original(outcome)

    monkeypatch.setattr(ledger, "settle", settle)
    call = asyncio.create_task(pipeline.call("pay", {"amount": 5}, idempotency_key="k"))
    await settling.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await settled(state)

    second = await pipeline.call("pay", {"amount": 5}, idempotency_key="k")
    assert second.structured_content == {"receipt": 1}


async def settled(state: State) -> None:
    """Wait until nothing is being written in passing."""
    assert state.database is not None
    await state.database.quiet()


async def test_a_key_is_free_again_when_it_has_expired(
    state: State, payments: Payments, clock: FakeClock
) -> None:
    pipeline = piped(state, payments.tool(), policy=RunPolicy(ledger_keep_s=60))
    for wait_s in (0, 59, 1):
        await clock.advance(wait_s)
        await pipeline.call("pay", {"amount": 5}, idempotency_key="k")

    assert len(payments.made) == 2


async def test_calls_without_a_key_are_each_an_effect_with_a_key_of_their_own(
    state: State, payments: Payments
) -> None:
    pipeline = piped(state, payments.tool())
    for _ in range(2):
        await pipeline.call("pay", {"amount": 5})

    assert len({key for _, key in payments.made}) == 2


class Failing:
    """A ledger that is not there when it is needed."""

    def __init__(self, at: str) -> None:
        self.at = at
        self.withdrawn: list[str] = []

    async def begin(self, _: Any) -> Begun:
        if self.at == "begin":
            raise StoreUnavailable("there", "gone")
        if self.at == "begin, by a defect":
            raise ZeroDivisionError
        return Begun()

    async def settle(self, _: Any) -> None:
        raise StoreUnavailable("there", "gone")

    def settle_soon(self, _: Any) -> None:
        raise ZeroDivisionError

    def withdraw_soon(self, token: str) -> None:
        self.withdrawn.append(token)


@pytest.mark.parametrize("at", ["begin", "begin, by a defect"])
async def test_what_cannot_be_written_down_is_not_run(
    state: State, payments: Payments, at: str
) -> None:
    state.ledger = Failing(at)  # type: ignore[assignment]  # as much of one as is needed
    pipeline = piped(state, payments.tool())
    result = await pipeline.call("pay", {"amount": 5})

    assert reason_of(result) == "ledger_unavailable"
    assert (
        b'seawall_store_fallbacks_total{mode="fail_closed",store="ledger"} 1.0'
        in pipeline.metrics.text()
    )
    assert result.failure is not None
    assert (result.failure.may_have_run, result.failure.retryable) == (False, True)
    assert payments.made == []


async def test_an_answer_is_given_even_if_it_cannot_be_written_down(
    state: State, payments: Payments
) -> None:
    state.ledger = Failing("settle")  # type: ignore[assignment]  # as much of one as is needed
    pipeline = piped(state, payments.tool())

    result = await pipeline.call("pay", {"amount": 5})

    assert result.structured_content == {"receipt": 1}
    assert b'event="store_unsettled"' in pipeline.metrics.text()


async def test_a_refusal_behind_the_ledger_withdraws_the_intent(
    state: State, payments: Payments
) -> None:
    failing = Failing("settle")
    state.ledger = failing  # type: ignore[assignment]  # as much of one as is needed

    async def refuse(call: Invocation, proceed: Handler) -> ToolResult:
        return call.refuse(FailureCode.RATE_LIMITED, "not now")

    pipeline = Pipeline([payments.tool()], state=state, layers=["ledger", refuse])
    await pipeline.call("pay", {"amount": 5})

    assert len(failing.withdrawn) == 1


@pytest.mark.parametrize(
    ("hints", "policy"),
    [
        (Annotations.for_reading(), RunPolicy()),
        (Annotations(idempotent=True), RunPolicy()),
        (Annotations(), RunPolicy(ledger="off")),
    ],
)
async def test_nothing_is_written_for_tools_that_need_no_ledger(
    state: State, payments: Payments, hints: Annotations, policy: RunPolicy
) -> None:
    state.ledger = Failing("begin")  # type: ignore[assignment]  # as much of one as is needed
    pipeline = piped(state, payments.tool(annotations=hints), policy=policy)

    assert not (await pipeline.call("pay", {"amount": 5})).is_error


async def test_in_memory_there_is_no_ledger(payments: Payments) -> None:
    async with open_state() as state:
        for _ in range(2):
            await piped(state, payments.tool()).call("pay", {"amount": 5}, idempotency_key="k")

    assert len(payments.made) == 2


@pytest.mark.parametrize("key", ["", "k" * (LONGEST_KEY + 1), 7])
async def test_a_key_that_is_none_is_refused(state: State, payments: Payments, key: Any) -> None:
    result = await piped(state, payments.tool()).call("pay", {}, idempotency_key=key)

    assert reason_of(result) == "idempotency_conflict"
    assert payments.made == []


async def test_an_outcome_that_cannot_be_read_is_said_to_be_done(
    state: State, payments: Payments, tmp_path: Path
) -> None:
    await piped(state, payments.tool()).call("pay", {"amount": 5}, idempotency_key="k")
    (tmp_path / "state.db.key").write_text("00" * 32)

    async with open_state(state.shown, clock=state.clock) as other:
        pipeline = Pipeline([payments.tool()], state=other, digest_key=state.digest_key)
        result = await pipeline.call("pay", {"amount": 5}, idempotency_key="k")

    assert reason_of(result) == "outcome_unreadable"
    assert "succeeded at 2023-" in result.text
    assert "which is not among ours" in result.text
    assert "Do not do it again" in result.text
    assert len(payments.made) == 1


def test_an_effect_has_no_outcome_while_it_runs() -> None:
    effect = Effect(
        token="t",
        scope="s",
        tool="pay",
        call_id="1",
        state=EffectState.RUNNING,
        reason="",
        created=0,
    )

    assert effect.outcome is None


NOTHING = Failure(code=FailureCode.EXECUTION_FAILED, message="closed", may_have_run=False)
REFUSED = Failure(
    code=FailureCode.RATE_LIMITED, message="too often", layer="rate_limit", may_have_run=False
)


class PaysFirst:
    """A tool that pays, and then comes to an end of some kind."""

    def __init__(self, end: Any) -> None:
        self.end = end
        self.paid = 0

    async def __call__(self, arguments: dict[str, Any], context: ToolContext) -> Any:
        self.paid += 1
        if isinstance(self.end, BaseException):
            raise self.end
        return await self.end(context) if callable(self.end) else self.end


async def limited(context: ToolContext) -> ToolResult:
    await context.call_tool("notify")
    return await context.call_tool("notify")


async def raised_on(context: ToolContext) -> ToolResult:
    result = await limited(context)
    assert result.failure is not None
    raise ToolFailed(result.failure)


async def wrapped(context: ToolContext) -> ToolResult:
    result = await limited(context)
    return ToolResult(content=result.content, is_error=True, failure=result.failure)


async def unknown(context: ToolContext) -> ToolResult:
    return await context.call_tool("nothing_of_this_name")


@pytest.mark.parametrize(
    "end",
    [
        NotImplementedError("receipts are not printed here"),
        PermissionError("the printer is locked"),
        limited,
        raised_on,
        wrapped,
        unknown,
        ToolFailed(REFUSED),
    ],
)
async def test_a_call_that_began_is_not_forgotten_whatever_type_its_failure_has(
    state: State, end: Any
) -> None:
    pays = PaysFirst(end)

    async def notify(arguments: dict[str, Any], context: ToolContext) -> str:
        return "sent"

    tools = [
        Tool("pay", "", {"type": "object"}, pays),
        Tool("notify", "", {"type": "object"}, notify),
    ]
    policies = Policies(RunPolicy(), tools={"notify": RunPolicy(rate="1/hour")})
    pipeline = Pipeline(tools, state=state, policies=policies, clock=state.clock)

    results = [await pipeline.call("pay", idempotency_key="k") for _ in range(2)]

    assert pays.paid == 1
    for result in results:
        assert result.failure is not None
        assert result.failure.may_have_run is not False
        assert "Nothing was run" not in result.render()


@pytest.mark.parametrize("end", [ToolFailed(NOTHING), ToolResult.of_failure(NOTHING)])
async def test_a_tools_own_word_that_it_did_nothing_counts(state: State, end: Any) -> None:
    pays = PaysFirst(end)
    pipeline = piped(state, Tool("pay", "", {"type": "object"}, pays))

    results = [await pipeline.call("pay", idempotency_key="k") for _ in range(2)]

    assert pays.paid == 2
    assert all("Nothing was run." in result.render() for result in results)


async def handed_on(context: ToolContext) -> Any:
    failure = (await context.call_tool("refuses")).failure
    assert failure is not None
    raise ToolFailed(failure)


async def given_on(context: ToolContext) -> Any:
    failure = (await context.call_tool("refuses")).failure
    assert failure is not None
    return ToolResult.of_failure(failure)


async def after_another_paid(context: ToolContext) -> Any:
    await context.call_tool("notify")
    raise ToolFailed(NOTHING)


class Hangs:
    """A tool that never ends by itself."""

    begun: asyncio.Event

    async def __call__(self, arguments: dict[str, Any], context: ToolContext) -> None:
        Hangs.begun.set()
        await asyncio.Event().wait()


async def after_another_was_given_up(context: ToolContext) -> Any:
    Hangs.begun = asyncio.Event()
    asking = asyncio.ensure_future(context.call_tool("hangs"))
    await Hangs.begun.wait()
    asking.cancel()
    await asyncio.wait([asking])
    raise ToolFailed(NOTHING)


async def after_another_was_asked(context: ToolContext) -> Any:
    await context.call_tool("look")
    await context.call_tool("refuses")
    raise ToolFailed(NOTHING)


@pytest.mark.parametrize(
    ("end", "paid", "may_have_run"),
    [
        (handed_on, 1, None),
        (given_on, 1, None),
        (after_another_paid, 1, True),
        (after_another_was_given_up, 1, True),
        (after_another_was_asked, 2, False),
    ],
)
async def test_what_calls_of_a_tool_may_have_done_counts_against_its_word(
    state: State, end: Any, paid: int, may_have_run: bool | None
) -> None:
    async def answers(arguments: dict[str, Any], context: ToolContext) -> str:
        return "so it is"

    async def refuses(arguments: dict[str, Any], context: ToolContext) -> str:
        raise ToolFailed(Failure(code=FailureCode.NOT_FOUND, message="no", may_have_run=False))

    pays = PaysFirst(end)
    tools = [
        Tool("pay", "", {"type": "object"}, pays),
        Tool("notify", "", {"type": "object"}, answers),
        Tool("refuses", "", {"type": "object"}, refuses),
        Tool("hangs", "", {"type": "object"}, Hangs()),
        Tool("look", "", {"type": "object"}, answers, annotations=Annotations.for_reading()),
    ]
    pipeline = piped(state, *tools)
    results = [await pipeline.call("pay", idempotency_key="k") for _ in range(2)]

    assert pays.paid == paid
    for result in results:
        assert result.failure is not None
        assert result.failure.may_have_run is may_have_run
        assert ("Nothing was run" in result.render()) is (may_have_run is False)
