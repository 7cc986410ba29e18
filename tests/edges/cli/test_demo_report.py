import io
from collections import Counter
from typing import Any

from seawall.contract.policy import BreakerPolicy, RunPolicy
from seawall.edges.cli.demo_report import report, write_report
from seawall.edges.cli.demo_service import ShopService
from seawall.edges.cli.demo_witness import DEEDS, Witness
from seawall.edges.cli.paper import Paper
from seawall.orchestration.pipeline import Pipeline
from seawall.pipeline.chance import SystemChance
from seawall.policy.model import Policies
from seawall.testing import FakeClock, scripted


class Silence:
    def show(self, event: str, **fields: object) -> None:
        """Show nothing."""


async def _reported() -> tuple[dict[str, Any], Witness]:
    clock = FakeClock()
    witness = Witness(Silence())
    pipeline = Pipeline(
        [scripted(ConnectionError("gone"), name="broken"), scripted("done", name="fine")],
        policies=Policies(RunPolicy(breaker=BreakerPolicy(threshold=1))),
        recorders=[witness],
        clock=clock,
    )
    for name in ("broken", "broken", "fine"):
        await clock.run(pipeline.call(name))
    return report(pipeline, witness, ShopService(clock, SystemChance(1))), witness


async def test_the_report_is_made_of_what_the_recorders_say() -> None:
    found, _ = await _reported()

    assert [
        (one["tool"], one["calls"], one["failed"], one["denied"]) for one in found["usage"]
    ] == [
        ("broken", 2, 1, 1),
        ("fine", 1, 0, 0),
    ]
    assert found["spans"] == {"success": 1, "failed": 1, "denied": 1, "skipped": 0}
    assert found["breakers"] == {"broken": {"state": "open", "opened": 1}}
    assert 'seawall_breaker_state{state="open",tool="broken"} 1.0' in found["metrics"]
    assert found["layers"]["breaker"] == {"acted": False, "did": {"opened": 1, "refused": 1}}


async def test_the_last_line_names_what_was_not_seen() -> None:
    found, _ = await _reported()
    stream = io.StringIO()

    write_report(found, Paper(stream))

    last = stream.getvalue().splitlines()[-1]
    assert last.startswith("not seen: environment_gate (refused); ")
    assert "breaker (probed, closed)" in last


async def test_the_last_line_says_that_all_seven_acted_if_they_did() -> None:
    found, witness = await _reported()
    witness.deeds = {layer: Counter(deeds) for layer, deeds in DEEDS.items()}
    found["missing"] = witness.missing()
    stream = io.StringIO()

    write_report(found, Paper(stream))

    assert stream.getvalue().splitlines()[-1] == (
        "all seven main layers acted: environment_gate, risk_gate, argument_check, rate_limit,"
        " retry, breaker, timeout"
    )
