from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from seawall import (
    BreakerPolicy,
    ConfigurationError,
    FailureCode,
    Pipeline,
    Policies,
    Risk,
    RunPolicy,
    ToolFailed,
    tool,
)
from seawall.policy.build import BY_NAME, LAYERS, listed
from seawall.policy.settings import RiskSettings
from seawall.testing import FakeClock, scripted

if TYPE_CHECKING:
    from seawall import Handler, Invocation, ToolResult


@tool
async def greet(name: str = "you") -> str:
    """Greet somebody."""
    return f"hello {name}"


async def test_a_layer_of_ones_own_that_raises_is_a_refusal_and_not_an_exception() -> None:
    async def broken(call: Invocation, proceed: Handler) -> ToolResult:
        raise KeyError("api_key=abcdef")

    result = await Pipeline([greet], layers=[broken]).call("greet")

    assert result.failure is not None
    assert result.failure.reason == "gate_failed"
    assert result.failure.may_have_run is False
    assert "abcdef" not in result.render()


async def test_a_layer_that_forgets_to_give_the_result_back_is_told() -> None:
    async def forgetful(call: Invocation, proceed: Handler) -> Any:
        await proceed(call)

    result = await Pipeline([greet], layers=[forgetful]).call("greet")

    assert result.failure is not None
    assert "NoneType" in result.failure.message
    assert result.failure.may_have_run is True


async def test_without_layers_text_is_parsed_and_the_value_becomes_a_result() -> None:
    result = await Pipeline([greet], layers=[]).call("greet", '{"name": "sea"}')

    assert result.text == "hello sea"


async def test_without_layers_a_large_result_is_not_cut() -> None:
    huge = scripted("x" * 1_000, name="huge")
    policies = Policies(default=RunPolicy(max_result_bytes=256))

    whole = await Pipeline([huge], layers=[], policies=policies).call("huge")
    cut = await Pipeline([huge], policies=policies).call("huge")

    assert len(whole.text) == 1_000
    assert len(cut.text) < 1_000


async def test_a_limit_of_the_call_holds_whichever_layers_were_listed() -> None:
    clock = FakeClock()
    slow = scripted(("sleep", 60), clock=clock, name="slow")
    pipeline = Pipeline([slow], layers=[], clock=clock)

    result = await clock.run(pipeline.call("slow", timeout_s=2))

    assert result.failure is not None
    assert result.failure.reason == "attempt_timeout"
    assert clock.now() == 2


async def test_a_reload_takes_the_risk_settings_too() -> None:
    wipe = scripted("gone", name="wipe", risk=Risk.HIGH)
    pipeline = Pipeline([wipe], policies=Policies(risk=RiskSettings(allow=("wipe",))))
    assert not (await pipeline.call("wipe")).is_error

    pipeline.replace_policies(Policies(risk=RiskSettings(allow=())))

    refused = await pipeline.call("wipe")
    assert refused.failure is not None
    assert refused.failure.reason == "denied_by_policy"


async def test_without_layers_text_that_is_no_json_is_refused_all_the_same() -> None:
    result = await Pipeline([greet], layers=[]).call("greet", "{")

    assert result.failure is not None
    assert result.failure.reason.startswith("arguments_")


async def test_layers_are_entered_in_the_order_they_are_listed() -> None:
    entered: list[str] = []

    def noting(name: str) -> Any:
        async def layer(call: Invocation, proceed: Handler) -> ToolResult:
            entered.append(name)
            return await proceed(call)

        return layer

    await Pipeline([greet], layers=[noting("outer"), noting("inner")]).call("greet")

    assert entered == ["outer", "inner"]


def test_the_default_chain_is_that_of_the_design() -> None:
    assert list(BY_NAME) == [
        "result_limit",
        "environment_gate",
        "risk_gate",
        "argument_check",
        "fallback",
        "cache",
        "rate_limit",
        "bulkhead",
        "adaptive_limit",
        "exclusive",
        "ledger",
        "retry",
        "hedge",
        "breaker",
        "timeout",
    ]
    assert listed(None) == LAYERS


def test_all_that_is_no_layer_is_named_at_once() -> None:
    with pytest.raises(ConfigurationError) as raised:
        listed(["retries", 7, "retry"])  # type: ignore[list-item]  # what is tested

    assert [fault.key for fault in raised.value.faults] == ["layers[0]", "layers[1]"]


def test_a_rate_that_cannot_be_read_is_told_when_the_pipeline_is_made() -> None:
    with pytest.raises(ConfigurationError, match=r"default\.rate"):
        Pipeline([greet], policies=Policies(default=RunPolicy(rate="often")))


async def test_a_breaker_outside_of_retry_counts_a_call_once() -> None:
    clock = FakeClock()
    flaky = scripted(
        ConnectionError("down"), clock=clock, name="flaky", annotations=greet.annotations
    )
    policy = RunPolicy(
        max_retries=4, breaker=BreakerPolicy(threshold=2, outside_retry=True), rate=None
    )
    from seawall import Annotations, Tool  # noqa: PLC0415  # beside what it is for

    reading = Tool("flaky", "", {}, flaky.executor, annotations=Annotations.for_reading())
    pipeline = Pipeline([reading], policies=Policies(default=policy), clock=clock)

    first = await clock.run(pipeline.call("flaky"))

    assert first.attempts == 5
    assert pipeline.breakers.state("flaky") == "closed"
    await clock.run(pipeline.call("flaky"))
    assert pipeline.breakers.state("flaky") == "open"


async def test_new_policies_are_taken_all_or_not_at_all() -> None:
    pipeline = Pipeline([greet], policies=Policies(default=RunPolicy(timeout_s=7)))

    with pytest.raises(ConfigurationError):
        pipeline.replace_policies(Policies(default=RunPolicy(rate="often")))
    assert pipeline.policy_of("greet").timeout_s == 7
    pipeline.replace_policies(Policies(default=RunPolicy(timeout_s=9)))

    assert pipeline.policy_of("greet").timeout_s == 9


async def test_buckets_and_circuits_survive_new_policies() -> None:
    clock = FakeClock()
    policy = RunPolicy(rate="1/hour", breaker=BreakerPolicy(threshold=1))
    pipeline = Pipeline([greet], policies=Policies(default=policy), clock=clock)
    await clock.run(pipeline.call("greet"))
    pipeline.breakers.circuit("greet").failure(1, "down")

    pipeline.replace_policies(
        Policies(default=RunPolicy(rate="1/hour", breaker=BreakerPolicy(threshold=3)))
    )

    assert pipeline.breakers.state("greet") == "open"
    pipeline.breakers.close("greet")
    again = await clock.run(pipeline.call("greet"))
    assert again.failure is not None
    assert again.failure.reason == "rate_limited"


async def test_a_refusal_of_ones_own_layer_says_who_refused() -> None:
    class QuietHours:
        name = "quiet_hours"

        async def __call__(self, call: Invocation, proceed: Handler) -> ToolResult:
            return call.refuse(FailureCode.PERMISSION_DENIED, "not at night")

    result = await Pipeline([greet], layers=[QuietHours()]).call("greet")

    assert result.failure is not None
    assert result.failure.layer == "quiet_hours"


async def test_a_tool_may_fail_with_a_text_alone() -> None:
    @tool
    async def find(name: str) -> str:
        raise ToolFailed(f"nobody is called {name}")

    result = await Pipeline([find]).call("find", {"name": "Ann"})

    assert result.failure is not None
    assert (result.failure.message, result.failure.retryable) == ("nobody is called Ann", False)


def test_a_tool_with_hints_of_the_wrong_kind_is_refused_where_it_is_made() -> None:
    with pytest.raises(ConfigurationError, match="annotations"):
        tool(annotations="read")(print)
    with pytest.raises(ConfigurationError, match="risk"):
        tool(risk="enormous")(print)


async def test_a_layer_that_cancels_itself_is_a_refusal_and_the_callers_cancel_none() -> None:
    clock = FakeClock()

    async def quits(call: Any, proceed: Any) -> ToolResult:
        if call.given:
            await clock.sleep(5)
        raise asyncio.CancelledError

    pipeline = Pipeline([scripted("x", name="t")], layers=[quits], clock=clock)

    result = await pipeline.call("t")
    running = asyncio.ensure_future(pipeline.call("t", {"a": 1}))
    await clock.advance(1)
    running.cancel()
    await clock.advance(1)

    assert result.failure is not None
    assert result.failure.reason == "gate_failed"
    assert running.cancelled()
