"""Whoever goes by `retryable` alone pays no second time.

A loop of an agent, or the client of a gateway, that makes a call again because its failure says
that this may help must not repeat what may have taken effect.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from seawall import (
    Annotations,
    Failure,
    FailureCode,
    FallbackPolicy,
    Hook,
    HookContext,
    Pipeline,
    Policies,
    Registry,
    Replace,
    RunPolicy,
    Tool,
    ToolFailed,
    ToolResult,
    to_langchain,
)
from seawall.edges.adapters._mcp_content import FAILURE, meta_for
from seawall.edges.gateway.answers import answer_of

if TYPE_CHECKING:
    from collections.abc import Callable

PAYS = Annotations(read_only=False)
READS = Annotations.for_reading()
SETS = Annotations(read_only=False, idempotent=True)


def raising(error: BaseException) -> Callable[..., Any]:
    async def run(_arguments: dict[str, Any], _context: Any) -> str:
        raise error

    return run


def giving(result: ToolResult) -> Callable[..., Any]:
    async def run(_arguments: dict[str, Any], _context: Any) -> ToolResult:
        return result

    return run


async def hanging(_arguments: dict[str, Any], _context: Any) -> str:
    await asyncio.Event().wait()
    return ""


def own(code: FailureCode, **fields: Any) -> ToolFailed:
    return ToolFailed(Failure(code=code, message="no", **fields))


def pipeline_of(executor: Callable[..., Any], hints: Annotations, **policy: Any) -> Pipeline:
    tool = Tool("pay", "Pay.", {"type": "object"}, executor, annotations=hints)
    return Pipeline([tool], policies=Policies(default=RunPolicy(**policy)))


async def failure_of(executor: Any, hints: Annotations, **policy: Any) -> Failure:
    result = await pipeline_of(executor, hints, **policy).call("pay", {})
    assert result.failure is not None
    return result.failure


IN_DOUBT: list[tuple[Any, dict[str, Any]]] = [
    (raising(ConnectionError("reset")), {}),
    (raising(TimeoutError()), {}),
    (raising(own(FailureCode.EXECUTION_FAILED, reason="transport")), {}),
    (raising(own(FailureCode.TIMEOUT)), {}),
    (raising(own(FailureCode.RATE_LIMITED, may_have_run=True)), {}),
    (giving(ToolResult.failed(FailureCode.EXECUTION_FAILED, "no")), {}),
    (giving(ToolResult(is_error=True)), {}),
    (hanging, {"timeout_s": 0.01}),
    (hanging, {"timeout_s": 0.01, "timeout_mode": "off", "deadline_s": 0.01}),
]


@pytest.mark.parametrize(("executor", "policy"), IN_DOUBT)
async def test_what_may_have_taken_effect_is_not_to_be_made_again(
    executor: Any, policy: dict[str, Any]
) -> None:
    failure = await failure_of(executor, PAYS, **policy)

    assert failure.may_have_run is not False
    assert failure.retryable is False


@pytest.mark.parametrize("hints", [READS, SETS])
@pytest.mark.parametrize(("executor", "policy"), IN_DOUBT)
async def test_what_may_be_repeated_blindly_may_be_made_again(
    executor: Any, policy: dict[str, Any], hints: Annotations
) -> None:
    assert (await failure_of(executor, hints, **policy)).retryable is True


@pytest.mark.parametrize(
    "error",
    [
        own(FailureCode.EXECUTION_FAILED, may_have_run=False),
        own(FailureCode.TIMEOUT, may_have_run=False),
        own(FailureCode.RATE_LIMITED, retry_after_s=1.0),
    ],
)
async def test_what_a_tool_knows_that_it_did_not_do_may_be_made_again(error: ToolFailed) -> None:
    assert (await failure_of(raising(error), PAYS)).retryable is True


async def test_what_was_refused_before_it_ran_may_be_made_again() -> None:
    pipeline = pipeline_of(giving(ToolResult.of_text("paid")), PAYS, rate="1/hour")
    await pipeline.call("pay", {})

    failure = (await pipeline.call("pay", {})).failure

    assert failure is not None
    assert (failure.reason, failure.retryable) == ("rate_limited", True)


async def test_a_reading_call_whose_fallback_pays_is_not_to_be_made_again() -> None:
    registry = Registry(
        [
            Tool("look", "d.", {"type": "object"}, raising(OSError("down")), annotations=READS),
            Tool("pay", "d.", {"type": "object"}, raising(OSError("reset")), annotations=PAYS),
        ]
    )
    policy = RunPolicy(fallback=FallbackPolicy(tool="pay"))
    pipeline = Pipeline(registry, policies=Policies(default=RunPolicy(), tools={"look": policy}))

    failure = (await pipeline.call("look", {})).failure

    assert failure is not None
    assert (failure.may_have_run, failure.retryable) == (True, False)


async def test_a_result_that_a_hook_made_an_error_is_not_to_be_made_again() -> None:
    class Strict(Hook):
        async def after(self, context: HookContext) -> Replace:
            assert context.result is not None
            return Replace(is_error=True)

    tool = Tool("pay", "d.", {"type": "object"}, giving(ToolResult.of_text("paid")))
    result = await Pipeline([tool], hooks=[Strict()]).call("pay", {})

    assert result.failure is not None
    assert (result.failure.code, result.failure.layer) == (FailureCode.EXECUTION_FAILED, "hooks")
    assert (result.failure.may_have_run, result.failure.retryable) == (True, False)


async def test_a_gateway_an_mcp_client_and_an_agent_are_told_the_same() -> None:
    pipeline = pipeline_of(raising(ConnectionError("reset")), PAYS)
    result = await pipeline.call("pay", {})
    (lc_tool,) = to_langchain(pipeline)
    call = {"name": "pay", "args": {}, "id": "1", "type": "tool_call"}
    message = await lc_tool.ainvoke(call)

    assert b'"retryable":false' in answer_of(result).body
    assert (meta_for(result) or {})[FAILURE]["retryable"] is False
    assert message.response_metadata["seawall"]["retryable"] is False
    assert pipeline.trace.spans()[0].retryable is False
