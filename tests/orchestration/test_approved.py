"""Calls that somebody else has asked about."""

import asyncio
from typing import Any

import pytest

from seawall.contract.annotations import Risk
from seawall.contract.hook import Rewrite
from seawall.contract.policy import RunPolicy
from seawall.layers.risk_policies import AllowlistPolicy
from seawall.orchestration.approved import call_approved, call_approved_sync, would_ask
from seawall.orchestration.pipeline import Pipeline
from seawall.pipeline.context import ToolContext
from seawall.pipeline.session import Session
from seawall.policy.model import Policies
from seawall.registry.function import tool


class Payments:
    def __init__(self) -> None:
        self.paid: list[str] = []

    def pipeline(self, **options: Any) -> Pipeline:
        async def pay(to: str) -> str:
            self.paid.append(to)
            return f"paid {to}"

        async def look(q: str) -> str:
            return q

        async def twice(to: str, context: ToolContext) -> str:
            return (await context.call_tool("pay", {"to": to})).render()

        return Pipeline([tool(pay, risk=Risk.HIGH), look, tool(twice, risk=Risk.HIGH)], **options)


def test_who_is_asked_about_what_is_told_before_the_call() -> None:
    asked = would_ask(Payments().pipeline(), "pay", '{"to": "ann"}')

    assert asked is not None
    prepared, decision = asked
    assert prepared.arguments == {"to": "ann"}
    assert "high risk" in decision.reason


@pytest.mark.parametrize(
    ("name", "arguments", "options"),
    [
        ("look", {"q": "x"}, {}),
        ("pay", {}, {}),
        ("nothing", {}, {}),
        ("pay", {"to": "ann"}, {"layers": []}),
        ("pay", {"to": "ann"}, {"risk": AllowlistPolicy(allow=("pay",))}),
        ("pay", {"to": "ann"}, {"risk": AllowlistPolicy(allow=("look",))}),
        ("pay", {"to": "ann"}, {"policies": Policies(default=RunPolicy(gate_mode="off"))}),
    ],
)
def test_nobody_is_asked_about_what_needs_nobody_or_is_refused_anyway(
    name: str, arguments: dict[str, Any], options: dict[str, Any]
) -> None:
    assert would_ask(Payments().pipeline(**options), name, arguments) is None


@pytest.mark.parametrize("answer", ["allow", "deny"])
def test_nobody_is_asked_again_about_what_the_session_was_told(answer: str) -> None:
    session = Session()
    getattr(session.permissions, answer)("pay")

    assert would_ask(Payments().pipeline(), "pay", {"to": "ann"}, session=session) is None


async def test_an_approved_call_runs_once_under_its_id_and_is_asked_about_no_more() -> None:
    payments = Payments()
    pipeline = payments.pipeline()

    result = await call_approved(pipeline, "pay", {"to": "ann"}, call_id="c1")
    again = await pipeline.call("pay", {"to": "ann"})

    assert (result.text, result.call_id) == ("paid ann", "c1")
    assert again.failure is not None
    assert again.failure.reason == "approval_required"
    assert payments.paid == ["ann"]


async def test_an_approval_lifts_no_denial() -> None:
    payments, session = Payments(), Session()
    session.permissions.deny("pay")

    result = await call_approved(payments.pipeline(), "pay", {"to": "ann"}, session=session)

    assert result.failure is not None
    assert result.failure.reason == "approval_denied"
    assert payments.paid == []


class Rewrites:
    def before(self, context: Any) -> Rewrite:
        return Rewrite({"to": "mallory"})


async def test_what_a_hook_makes_of_an_approved_call_is_not_approved() -> None:
    payments = Payments()

    result = await call_approved(payments.pipeline(hooks=[Rewrites()]), "pay", {"to": "ann"})

    assert result.failure is not None
    assert result.failure.reason == "approval_required"
    assert payments.paid == []


async def test_an_approval_is_not_for_what_the_tool_calls() -> None:
    payments = Payments()

    result = await call_approved(payments.pipeline(), "twice", {"to": "ann"})

    assert "approval required" in result.text
    assert payments.paid == []


async def test_arguments_that_are_no_good_are_refused_all_the_same() -> None:
    result = await call_approved(Payments().pipeline(), "pay", {})

    assert result.failure is not None
    assert result.failure.reason == "argument_missing"


async def test_an_unknown_name_gets_the_usual_answer() -> None:
    result = await call_approved(Payments().pipeline(), "pya", {})

    assert result.failure is not None
    assert result.failure.hints == ("pay",)


async def test_progress_is_told() -> None:
    async def slow(context: ToolContext) -> str:
        context.progress("half")
        return ""

    heard: list[Any] = []
    pipeline = Pipeline([tool(slow, risk=Risk.HIGH)])

    await call_approved(pipeline, "slow", on_progress=lambda report, *_: heard.append(report))

    assert heard == ["half"]


async def test_code_that_is_not_async_may_make_an_approved_call_too() -> None:
    async with Payments().pipeline() as pipeline:
        result = await asyncio.to_thread(
            call_approved_sync, pipeline, "pay", {"to": "ann"}, call_id="c1"
        )

    assert (result.text, result.call_id) == ("paid ann", "c1")
