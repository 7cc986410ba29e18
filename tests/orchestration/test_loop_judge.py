"""The judge: asked rarely, bounded, and unable to stop anybody by failing."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from seawall import LoopPolicy, LoopQuestion, LoopVerdict, Pipeline, Session, ToolCall, TurnStatus
from seawall.orchestration.loop_judge import judged
from seawall.pipeline.graced import GRACE_S
from seawall.testing import FakeClock, scripted

YES = LoopVerdict(is_loop=True, reason="it keeps reading the same file", confidence=0.9)


class Judge:
    """Gives one answer for ever, and keeps what it was asked."""

    def __init__(self, answer: Any = None) -> None:
        self.answer = answer
        self.questions: list[LoopQuestion] = []

    async def __call__(self, question: LoopQuestion) -> Any:
        self.questions.append(question)
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer


async def turns(count: int, judge: Any, **numbers: Any) -> list[Any]:
    """Run so many turns of a session, each of which does something new."""
    clock, session = FakeClock(), Session("s")
    pipeline = Pipeline(
        [scripted("done", clock=clock, name="t")],
        clock=clock,
        loop=LoopPolicy(judge=judge, **numbers),
    )
    return [
        await clock.run(pipeline.turn([("t", {"n": n})], session=session)) for n in range(count)
    ]


async def test_the_judge_is_asked_after_30_turns_and_every_10_then() -> None:
    judge = Judge()

    await turns(55, judge)

    assert [question.turns for question in judge.questions] == [30, 40, 50]


@pytest.mark.parametrize(
    ("after", "every", "asked"), [(0, 1, [1, 2, 3]), (2, 1, [2, 3]), (1, 2, [1, 3]), (9, 1, [])]
)
async def test_when_it_is_asked_is_a_matter_of_policy(
    after: int, every: int, asked: list[int]
) -> None:
    judge = Judge()

    await turns(4, judge, judge_after=after, judge_every=every)

    assert [question.turns for question in judge.questions] == asked


async def test_the_judge_is_told_whose_turn_it_is_and_what_the_model_wants() -> None:
    judge = Judge()

    await turns(2, judge, judge_after=1)

    [question] = judge.questions
    assert question.session.id == "s"
    assert question.calls == (ToolCall("t", {"n": 1}),)


@pytest.mark.parametrize(
    "answer",
    [
        YES,
        {"is_loop": True, "reason": "it keeps reading the same file", "confidence": 0.8},
        '{"is_loop": true, "reason": "it keeps reading the same file", "confidence": 1}',
    ],
)
async def test_a_verdict_stops_the_turn_before_anything_runs(answer: Any) -> None:
    [_, outcome] = await turns(2, Judge(answer), judge_after=1)

    assert outcome.status is TurnStatus.LOOP
    [result] = outcome.results
    assert result.failure.reason == "loop_detected"
    assert result.attempts == 0
    assert result.metadata == {"loop": {"detector": "judge", "count": 1}}
    assert "it keeps reading the same file" in outcome.reason


@pytest.mark.parametrize(
    "answer",
    [
        None,
        LoopVerdict(is_loop=False, confidence=1.0),
        LoopVerdict(is_loop=True, confidence=0.79),
        LoopVerdict(is_loop=True, confidence=float("nan")),
        {"is_loop": True},
        {"is_loop": "yes", "confidence": 1},
        {"confidence": 1},
        "not JSON",
        "[]",
        7,
        RuntimeError("no quota"),
        asyncio.CancelledError(),
    ],
)
async def test_no_other_answer_stops_anybody(answer: Any) -> None:
    [_, outcome] = await turns(2, Judge(answer), judge_after=1)

    assert outcome.status is TurnStatus.DONE


async def test_a_judge_that_takes_too_long_stops_nobody() -> None:
    clock = FakeClock()

    async def slow(_: LoopQuestion) -> LoopVerdict:
        await clock.sleep(60)
        return YES

    question = LoopQuestion(Session("s"), 30, ())

    assert await clock.run(judged(slow, question, clock, 30)) is None
    assert clock.now() == 30


@pytest.mark.parametrize("value", [YES, None])
async def test_a_judge_that_ignores_its_cancel_is_ended_and_stops_nobody(value: Any) -> None:
    clock = FakeClock()

    async def deaf(_: LoopQuestion) -> Any:
        while True:
            try:
                await clock.sleep(60)
            except asyncio.CancelledError:
                if value is not None:
                    return value

    assert await clock.run(judged(deaf, LoopQuestion(Session(), 30, ()), clock, 30)) is None
    assert clock.now() == (30 if value is not None else 30 + GRACE_S)


async def test_a_plain_function_may_judge_too() -> None:
    [_, outcome] = await turns(2, lambda _: YES, judge_after=1)

    assert outcome.status is TurnStatus.LOOP


async def test_a_cancel_while_the_judge_is_asked_passes_through() -> None:
    clock = FakeClock()

    async def slow(_: LoopQuestion) -> None:
        await clock.sleep(60)

    task = asyncio.create_task(judged(slow, LoopQuestion(Session(), 1, ()), clock, 30))
    await clock.settle()
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
