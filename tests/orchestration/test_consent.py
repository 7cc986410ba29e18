"""What was allowed for a step, and when it no longer holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from seawall.contract.annotations import Risk
from seawall.contract.decision import Action, Decision
from seawall.contract.hook import Rewrite
from seawall.contract.policy import RunPolicy
from seawall.orchestration.batch import BatchRunner
from seawall.orchestration.pipeline import Pipeline
from seawall.policy.model import Policies
from seawall.testing import FakeClock, scripted

if TYPE_CHECKING:
    from seawall.contract.decision import Prepared
    from seawall.contract.hook import Before
    from seawall.orchestration.hooks import HookContext
    from seawall.orchestration.outcome import BatchOutcome


class Person:
    def __init__(self, *answers: bool) -> None:
        self.answers = list(answers)
        self.asked: list[dict[str, Any]] = []

    def __call__(self, prepared: Prepared, decision: Decision) -> bool:
        self.asked.append(prepared.arguments)
        return self.answers[len(self.asked) - 1]


async def run(steps: Any, **options: Any) -> BatchOutcome:
    clock = FakeClock()
    tools = [scripted("A", name="a"), scripted("sent", name="send", risk=Risk.HIGH)]
    options.setdefault("policies", Policies(default=RunPolicy()))
    pipeline = Pipeline(tools, clock=clock, **options)
    return await clock.run(BatchRunner(pipeline).run(steps))


class Rewriting:
    """A hook that gives `send` another argument."""

    def before(self, context: HookContext) -> Before:
        return Rewrite({"to": "all"}) if context.tool.name == "send" else None


async def test_a_hook_that_changes_what_was_allowed_has_it_asked_again() -> None:
    person = Person(True, False)

    outcome = await run(
        [{"tool": "send", "arguments": {"to": "me"}}], confirm=person, hooks=[Rewriting()]
    )

    assert person.asked == [{"to": "me"}, {"to": "all"}]
    assert outcome.statuses == ("failed",)


class ByArguments:
    """Asks about some arguments, and denies others."""

    def decide(self, prepared: Prepared) -> Decision:
        said = str(prepared.arguments.get("text", ""))
        action = {"A": Action.ASK, "B": Action.DENY}.get(said, Action.ALLOW)
        return Decision(action, f"it says {said}")


async def test_what_only_shows_when_a_value_is_filled_in_is_decided_then() -> None:
    person = Person(True, False)
    step = {"tool": "send", "arguments": {"text": "{0}"}}

    allowed = await run([{"tool": "a"}, step], risk=ByArguments(), confirm=person)
    denied = await run([{"tool": "a"}, step], risk=ByArguments(), confirm=person)

    assert person.asked == [{"text": "A"}, {"text": "A"}]
    assert allowed.complete
    assert denied.statuses == ("executed", "failed")


async def test_a_policy_that_fails_keeps_all_from_running() -> None:
    class Broken:
        def decide(self, prepared: Prepared) -> Decision:
            raise RuntimeError("oops")

    outcome = await run([{"tool": "a"}, {"tool": "send"}], risk=Broken())

    assert outcome.refusal is not None
    assert outcome.refusal.reason == "gate_failed"
    assert outcome.at_step == 0


async def test_where_the_gate_is_off_or_only_watches_nobody_is_asked() -> None:
    person = Person()

    for mode in ("off", "shadow"):
        policies = Policies(default=RunPolicy(gate_mode=mode))
        outcome = await run([{"tool": "send"}], policies=policies, confirm=person)
        assert outcome.complete

    assert person.asked == []
