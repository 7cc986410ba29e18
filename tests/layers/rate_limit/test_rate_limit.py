"""The limiter around a tool: what a call costs, whose budget it is, and when it is given back."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from seawall.contract.errors import ConfigurationError
from seawall.contract.failure import FailureCode
from seawall.contract.policy import RunPolicy
from seawall.layers.rate_limit import RateLimit
from seawall.layers.rate_limit.bucket import MemoryBuckets
from seawall.layers.rate_limit.memory_windows import MemoryWindows
from seawall.layers.rate_limit.rated import MAX_BOUND
from seawall.layers.rate_limit.strategies import STRATEGIES
from seawall.pipeline.digest import Digester
from seawall.pipeline.layer import compose
from seawall.pipeline.session import Session
from seawall.testing import FakeClock, LayerBench, scripted

if TYPE_CHECKING:
    from seawall.contract.result import ToolResult


class Trial:
    """The limiter around a tool that answers."""

    def __init__(self, *answers: Any, states: Any = None, name: str = "t", **policy: Any) -> None:
        self.clock = FakeClock()
        tool = scripted(*(answers or ("well",)), clock=self.clock, name=name)
        settings = {"rate": "2/minute", **policy}
        self.bench = LayerBench(
            RunPolicy(**settings), tool=tool, clock=self.clock, parts={Digester: Digester(b"k")}
        )
        self.bench.states = self.bench.states if states is None else states
        layer = RateLimit.for_tool(self.bench.context)
        assert layer is not None
        self.layer = layer
        self.handler = compose([layer], self.bench.execute())

    async def call(self, session: Session | None = None, **fields: Any) -> ToolResult:
        if session is not None:
            fields["session"] = session
        return await self.bench.call(self.handler, **fields)

    async def granted(self, *sessions: Session | None) -> list[bool]:
        return [not (await self.call(session)).is_error for session in sessions]

    @property
    def left(self) -> float:
        level: float = self.bench.context.slots.find("tokens_left")()
        return level


@pytest.mark.parametrize(
    ("policy", "there"),
    [
        ({"rate": None}, False),
        ({"rate": "5/second", "rate_mode": "off"}, False),
        ({"rate": "5/second", "rate_mode": "shadow"}, True),
        ({"rate": "5/second"}, True),
    ],
)
def test_the_layer_is_there_only_where_there_is_a_rate(policy: Any, there: bool) -> None:
    assert (RateLimit.for_tool(LayerBench(RunPolicy(**policy)).context) is not None) is there


async def test_a_call_takes_one_token_however_it_ends() -> None:
    trial = Trial(OSError("down"))

    await trial.call()

    assert trial.left == 1


async def test_beyond_the_rate_calls_are_refused_at_once_with_the_time_to_wait() -> None:
    trial = Trial()
    await trial.granted(None, None)
    await trial.clock.advance(10)

    failure = (await trial.call()).failure

    assert failure is not None
    assert (failure.code, failure.reason, failure.layer) == (
        FailureCode.RATE_LIMITED,
        "rate_limited",
        "rate_limit",
    )
    assert failure.retry_after_s == 20
    assert "2/minute" in failure.message
    assert "20 s" in failure.message
    assert failure.may_have_run is False
    await trial.clock.advance(20)
    assert await trial.granted(None) == [True]


async def test_a_cost_is_what_a_call_takes() -> None:
    trial = Trial(rate="5/minute", cost=2)

    assert await trial.granted(None, None, None) == [True, True, False]


@pytest.mark.parametrize(
    ("policy", "said"),
    [
        ({"rate": "5/minute", "cost": 6}, "cost: is 6, more than 5/minute can ever grant"),
        ({"rate": "many"}, "rate"),
        ({"rate": "5/minute", "rate_strategy": "guess"}, "guess"),
    ],
)
def test_a_rate_that_cannot_work_is_told_when_the_chain_is_made(policy: Any, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        RateLimit.for_tool(LayerBench(RunPolicy(**policy)).context)


async def test_a_token_is_given_back_if_nothing_ran() -> None:
    trial = Trial()

    async def refuses(call: Any) -> ToolResult:
        refusal: ToolResult = call.refuse(FailureCode.CIRCUIT_OPEN, "no", layer="breaker")
        return refusal

    await trial.bench.call(compose([trial.layer], refuses))

    assert trial.left == 2


@pytest.mark.parametrize(("started", "left"), [(False, 2), (True, 1)])
async def test_a_cancelled_call_pays_only_if_it_began(started: bool, left: float) -> None:
    trial = Trial()

    async def waits(call: Any) -> ToolResult:
        call.started = started
        await trial.clock.sleep(1e-9)
        raise asyncio.CancelledError

    task = asyncio.ensure_future(compose([trial.layer], waits)(trial.bench.invocation()))
    await trial.clock.advance(1e-6)

    assert task.cancelled()
    assert round(trial.left, 3) == left


async def test_in_shadow_it_only_says_what_it_would_have_done() -> None:
    trial = Trial(rate="1/minute", rate_mode="shadow")
    await trial.call()
    call = trial.bench.invocation()

    result = await trial.clock.run(trial.handler(call))

    assert not result.is_error
    assert call.verdicts == ("rate_limit:would_refuse:rate_limited",)
    assert trial.bench.events == [("rate_limit", "shadow_refused")]


ADA, BOB = Session("1", caller="ada"), Session("2", caller="bob")
ADA_ELSEWHERE = Session("3", caller="ada")


@pytest.mark.parametrize(
    ("key", "granted"),
    [
        (("tool",), [True, False, False]),
        (("global",), [True, False, False]),
        (("caller",), [True, True, False]),
        (("session",), [True, True, True]),
        (("tool", "caller"), [True, True, False]),
        (("caller", "session"), [True, True, True]),
    ],
)
async def test_a_budget_belongs_to_whom_the_policy_says(key: Any, granted: list[bool]) -> None:
    trial = Trial(rate="1/minute", rate_key=key)

    assert await trial.granted(ADA, BOB, ADA_ELSEWHERE) == granted


@pytest.mark.parametrize("key", [("session",), ("tool", "session")])
@pytest.mark.parametrize("session_id", ["chat", ""])
async def test_sessions_of_two_callers_share_no_budget_whatever_they_are_called(
    key: Any, session_id: str
) -> None:
    trial = Trial(rate="1/minute", rate_key=key)
    ada, bob = (Session(session_id, caller=one) for one in ("ada", "bob"))

    assert await trial.granted(ada, ada, bob, Session(session_id)) == [True, False, True, True]


@pytest.mark.parametrize(
    ("key", "shared"), [(("global",), True), (("caller",), True), (("tool",), False)]
)
async def test_tools_share_a_budget_that_is_not_their_own(key: Any, shared: bool) -> None:
    one = Trial(rate="1/minute", rate_key=key)
    other = Trial(rate="1/minute", rate_key=key, name="u", states=one.bench.states)

    assert await one.granted(ADA) == [True]
    assert await other.granted(ADA) == [not shared]


async def test_tools_with_different_rates_share_no_bucket() -> None:
    one = Trial(rate="1/minute", rate_key=("global",))
    other = Trial(rate="2/minute", rate_key=("global",), name="u", states=one.bench.states)

    assert await one.granted(None) == [True]
    assert await other.granted(None, None, None) == [True, True, False]


async def test_the_key_is_noted_as_a_fingerprint() -> None:
    trial = Trial(rate_key=("caller",))
    calls = [trial.bench.invocation(session=session) for session in (ADA, ADA_ELSEWHERE, BOB)]

    for call in calls:
        await trial.clock.run(trial.handler(call))

    ada, elsewhere, bob = (call.key for call in calls)
    assert ada == elsewhere != bob
    assert "ada" not in ada
    assert len(ada) == 32


async def test_without_a_digester_no_key_is_noted() -> None:
    bench = LayerBench(RunPolicy(rate="1/minute", rate_key=("caller",)))
    layer = RateLimit.for_tool(bench.context)
    assert layer is not None
    call = bench.invocation()

    await bench.clock.run(compose([layer], bench.execute())(call))

    assert call.key == ""


async def test_handles_are_few_and_what_they_stand_for_is_not_lost() -> None:
    trial = Trial(rate="1/hour", rate_key=("caller",))
    await trial.call(ADA)

    for number in range(MAX_BOUND + 10):
        await trial.handler(trial.bench.invocation(session=Session(caller=str(number))))

    assert len(trial.layer._bound) == MAX_BOUND
    assert await trial.granted(ADA) == [False]


def test_tokens_are_told_of_a_tools_own_bucket_only() -> None:
    assert Trial().left == 2
    assert Trial(rate_key=("caller",)).bench.context.slots.find("tokens_left") is None
    windows = Trial(rate_strategy="fixed-window")
    assert windows.bench.context.slots.find("tokens_left") is None


async def test_other_strategies_are_chosen_by_name() -> None:
    for strategy in ("fixed-window", "moving-window", "sliding-window-counter"):
        trial = Trial(rate_strategy=strategy)
        assert await trial.granted(None, None, None) == [True, True, False]
        await trial.clock.advance(120)
        assert await trial.granted(None) == [True]


async def test_a_new_chain_goes_on_with_the_tokens_that_are_left() -> None:
    first = Trial()
    await first.granted(None, None)

    second = Trial(states=first.bench.states)

    assert await second.granted(None) == [False]


@pytest.mark.parametrize("strategy", STRATEGIES)
async def test_a_key_that_shares_a_budget_for_want_of_a_place_is_counted(
    monkeypatch: pytest.MonkeyPatch, strategy: str
) -> None:
    monkeypatch.setattr(MemoryBuckets.__init__, "__defaults__", (2,))
    monkeypatch.setattr(MemoryWindows.__init__, "__defaults__", (2,))
    trial = Trial(rate_key=("session",), rate="2/hour", rate_strategy=strategy)
    first, second, third, fourth = (Session(str(number)) for number in range(4))

    with_room = await trial.granted(first, second)
    before = list(trial.bench.events)
    beyond = await trial.granted(third, fourth, third, first)

    assert (with_room, beyond) == ([True, True], [True, True, False, True])
    assert before == []
    assert trial.bench.events == [("rate_limit", "keys_full")] * 3


async def test_so_is_the_only_key_of_a_tool_whose_place_others_have(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(MemoryBuckets.__init__, "__defaults__", (1,))
    crowd = Trial(rate_key=("session",), rate="100/hour")
    late = Trial(states=crowd.bench.states, name="late", rate="100/hour")

    await crowd.granted(Session("a"))
    await late.granted(None)

    assert late.bench.events == [("rate_limit", "keys_full")]
