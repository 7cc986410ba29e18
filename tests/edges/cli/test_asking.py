import asyncio
import io
import threading

import pytest

from seawall.contract.decision import Action, Decision, Prepared
from seawall.contract.tool import Tool
from seawall.edges.cli.asking import Terminal, allowed_once, shown_arguments
from seawall.layers.risk_questions import Answer

DECISION = Decision(Action.ASK, "high risk")


class Tty(io.StringIO):
    def isatty(self) -> bool:
        return True


def _prepared(**arguments: object) -> Prepared:
    schema = {
        "type": "object",
        "properties": {"path": {"type": "string"}, "key": {"type": "string", "writeOnly": True}},
    }
    tool = Tool("wipe", "Wipes.", schema, executor=lambda _, __: None)
    return Prepared(tool=tool, arguments=dict(arguments))


async def _asked(heard: str) -> tuple[Answer, str]:
    said = Tty()
    answer = await Terminal(Tty(heard), said).confirm(_prepared(path="/a"), DECISION)
    return answer, said.getvalue()


@pytest.mark.parametrize(
    ("heard", "expected"),
    [
        ("y\n", Answer.ALLOW_ONCE),
        ("YES\n", Answer.ALLOW_ONCE),
        (" once \n", Answer.ALLOW_ONCE),
        ("s\n", Answer.ALLOW_SESSION),
        ("session\n", Answer.ALLOW_SESSION),
        ("n\n", Answer.DENY),
        ("no\n", Answer.DENY),
        ("what?\ny\n", Answer.ALLOW_ONCE),
        ("\n\ny\n", Answer.ALLOW_ONCE),
        ("a\nb\nc\ny\n", Answer.DENY_ONCE),
        ("", Answer.DENY_ONCE),
    ],
)
async def test_a_line_is_an_answer(heard: str, expected: Answer) -> None:
    answer, _ = await _asked(heard)

    assert answer is expected


async def test_the_question_says_what_would_run_and_why_it_is_asked() -> None:
    _, said = await _asked("y\n")

    assert "wipe needs your word (high risk)" in said
    assert '"path": "/a"' in said
    assert "[y] this once, [s] for this session, [n] no" in said


def test_a_secret_is_not_shown_to_the_one_who_decides() -> None:
    shown, is_cut = shown_arguments(_prepared(path="/a", key="hunter2"))

    assert not is_cut
    assert "hunter2" not in shown
    assert '"path": "/a"' in shown


@pytest.mark.parametrize("hidden", ["\u3164", "\u2800", "\ufe0f", "\u034f", "\u3000"])
async def test_what_nobody_sees_is_written_out_before_it_is_decided(hidden: str) -> None:
    said = Tty()
    decision = Decision(Action.ASK, f"to bob{hidden}")

    await Terminal(Tty("y\n"), said).confirm(_prepared(path=f"bob{hidden}"), decision)

    assert hidden not in said.getvalue()
    assert f'"bob\\u{ord(hidden):04x}"' in said.getvalue()


async def test_a_part_is_told_to_be_one_and_all_is_shown_when_it_is_asked_for() -> None:
    said = Tty()
    path = "/a" + " " * 5_000 + "/b" + " " * 5_000 + "/c"

    answer = await Terminal(Tty("a\ny\n"), said).confirm(_prepared(path=path), DECISION)

    first, _, rest = said.getvalue().partition("Part of it is not shown.")
    assert answer is Answer.ALLOW_ONCE
    assert "/c" in first
    assert "/b" not in first
    assert "[a] show all of it" in rest
    assert path in rest


async def test_a_question_cannot_control_the_terminal() -> None:
    said = Tty()

    await Terminal(Tty("y\n"), said).confirm(_prepared(path="a\x1b[2Kb\u202ec"), DECISION)

    assert "\x1b" not in said.getvalue()
    assert "\u202e" not in said.getvalue()


@pytest.mark.parametrize(
    ("heard_from", "said_to", "expected"),
    [(Tty(), Tty(), True), (io.StringIO(), Tty(), False), (Tty(), io.StringIO(), False)],
)
def test_a_person_is_there_only_at_both_ends_of_a_terminal(
    heard_from: io.StringIO, said_to: io.StringIO, expected: object
) -> None:
    assert Terminal(heard_from, said_to).is_there is expected


async def test_a_question_that_nobody_answers_can_be_given_up() -> None:
    answered = threading.Event()

    def silent() -> str:
        answered.wait()
        return "y\n"

    person = Tty()
    person.readline = silent  # type: ignore[assignment,method-assign]  # nobody types anything
    task = asyncio.create_task(Terminal(person, Tty()).confirm(_prepared(), DECISION))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    answered.set()


async def test_a_word_given_beforehand_is_for_this_call_alone() -> None:
    assert await allowed_once(_prepared(), DECISION) is Answer.ALLOW_ONCE
