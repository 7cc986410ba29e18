"""Who decides about calls: what was given, or what the policies say."""

from __future__ import annotations

from typing import Any

import pytest
from tests.orchestration.desk import Desk, reason

from seawall import (
    AllowlistPolicy,
    Policies,
    Risk,
    RiskPolicy,
    RunPolicy,
)
from seawall.layers.risk_gate import Gate
from seawall.policy.settings import RiskSettings
from seawall.testing import scripted


@pytest.mark.parametrize(
    ("risk", "settings", "why"),
    [
        (None, None, "approval_required"),
        (RiskPolicy(), None, "approval_required"),
        (AllowlistPolicy(allow=["t"]), None, ""),
        (Gate(policy=AllowlistPolicy(deny=["t"])), None, "denied_by_policy"),
        (None, RiskSettings(allow=("t",)), ""),
        (None, RiskSettings(allow=()), "denied_by_policy"),
        (AllowlistPolicy(allow=["t"]), RiskSettings(allow=()), ""),
    ],
)
async def test_who_decides_is_given_or_said_by_the_policies(
    risk: Any, settings: RiskSettings | None, why: str
) -> None:
    policies = Policies(default=RunPolicy(), risk=settings)
    desk = Desk(scripted("well", name="t", risk=Risk.HIGH), risk=risk, policies=policies)

    assert reason(await desk.call()) == why


async def test_the_questions_of_new_policies_are_asked() -> None:
    desk = Desk()

    desk.pipeline.replace_policies(Policies(default=RunPolicy(), risk=RiskSettings(allow=())))

    assert reason(await desk.call()) == "denied_by_policy"
