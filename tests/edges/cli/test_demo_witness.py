from typing import Any

import pytest

from seawall.contract.annotations import Annotations, Risk
from seawall.contract.policy import BreakerPolicy, RunPolicy
from seawall.edges.cli.demo_witness import DEEDS, Witness
from seawall.layers.risk_questions import Answer
from seawall.orchestration.pipeline import Pipeline
from seawall.policy.model import Policies
from seawall.testing import FakeClock, FixedChance, scripted


class Audience:
    def __init__(self) -> None:
        self.shown: list[dict[str, Any]] = []

    def show(self, event: str, **fields: object) -> None:
        self.shown.append({"event": event, **fields})


def _pipeline(witness: Witness, clock: FakeClock, *answers: Any, **fields: Any) -> Pipeline:
    policy = fields.pop("policy", RunPolicy())
    confirm = fields.pop("confirm", None)
    tool = scripted(*answers, clock=clock, **fields)
    return Pipeline(
        [tool],
        policies=Policies(policy),
        recorders=[witness],
        clock=clock,
        chance=FixedChance(1.0),
        confirm=confirm,
    )


@pytest.fixture(name="audience")
def audience_fixture() -> Audience:
    return Audience()


@pytest.fixture(name="witness")
def witness_fixture(audience: Audience) -> Witness:
    return Witness(audience)


def test_nobody_acted_before_anything_happened(witness: Witness) -> None:
    assert witness.missing() == {layer: list(deeds) for layer, deeds in DEEDS.items()}


async def test_a_call_that_simply_succeeds_is_no_layers_deed(witness: Witness) -> None:
    clock = FakeClock()

    await clock.run(_pipeline(witness, clock, "done").call("scripted"))

    assert len(witness.missing()) == len(DEEDS)


async def test_a_wait_between_attempts_is_told_as_long_as_it_was(
    witness: Witness, audience: Audience
) -> None:
    clock = FakeClock()
    policy = RunPolicy(max_retries=1, base_delay_s=2.0)
    pipeline = _pipeline(
        witness,
        clock,
        ConnectionError("gone"),
        "done",
        annotations=Annotations.for_reading(),
        policy=policy,
    )

    await clock.run(pipeline.call("scripted"))

    attempts = [one for one in audience.shown if one["event"] == "attempt"]
    assert [one["waited_ms"] for one in attempts] == [None, 2000.0]
    assert "retry" not in witness.missing()


async def test_a_breaker_that_only_opened_has_not_done_all(witness: Witness) -> None:
    clock = FakeClock()
    policy = RunPolicy(breaker=BreakerPolicy(threshold=1))
    pipeline = _pipeline(witness, clock, ConnectionError("gone"), policy=policy)

    await clock.run(pipeline.call("scripted"))
    await clock.run(pipeline.call("scripted"))

    assert witness.missing()["breaker"] == ["probed", "closed"]


async def test_a_refusal_counts_for_the_layer_that_refused(witness: Witness) -> None:
    clock = FakeClock()
    pipeline = _pipeline(witness, clock, "done", needs=("root",), policy=RunPolicy(rate="1/hour"))

    pipeline.environment.set("root", value=False)
    await clock.run(pipeline.call("scripted"))

    assert witness.deeds["environment_gate"]["refused"] == 1
    assert witness.deeds["rate_limit"]["refused"] == 0


async def test_a_mended_argument_is_told_once_and_not_after_a_person_was_asked(
    witness: Witness, audience: Audience
) -> None:
    clock = FakeClock()
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}

    async def confirm(prepared: Any, _: Any) -> Answer:
        witness.asked(prepared.call_id)
        return Answer.ALLOW_ONCE

    plain = _pipeline(witness, clock, "done", input_schema=schema)
    risky = _pipeline(witness, clock, "done", input_schema=schema, risk=Risk.HIGH, confirm=confirm)
    await clock.run(plain.call("scripted", {"n": "3"}))
    await clock.run(risky.call("scripted", {"n": "3"}))

    assert witness.deeds["argument_check"]["mended"] == 2
    assert len([one for one in audience.shown if one["event"] == "mended"]) == 1
    assert witness.deeds["risk_gate"] == {"asked": 1, "allowed": 1}
