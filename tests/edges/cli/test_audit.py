import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text
from typer.testing import CliRunner, Result

from seawall import Action, AllowlistPolicy, Annotations, Decision, Pipeline, open_state
from seawall.edges.cli.app import app
from seawall.testing import scripted


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


@pytest.fixture
def url(tmp_path: Path) -> str:
    """A state with a call that was allowed, one that was refused, and a turn."""
    url = f"sqlite:///{tmp_path}/state.db"

    async def fill() -> None:
        tools = [
            scripted("seen", name="look", annotations=Annotations.for_reading()),
            scripted("gone", name="wipe", annotations=Annotations.for_destroying()),
        ]
        risk = AllowlistPolicy(allow=["look"], deny=["wipe"])
        async with Pipeline(tools, state=url, risk=risk) as pipeline:
            await pipeline.call("look", call_id="a")
            await pipeline.call("wipe", call_id="b")
            await pipeline.turn([("look", {})])

    asyncio.run(fill())
    return url


def spoil(url: str, statement: str) -> None:
    async def execute() -> None:
        async with open_state(url) as state:
            assert state.database is not None
            await state.database.write(lambda connection: connection.execute(text(statement)))

    asyncio.run(execute())


def test_entries_are_listed_with_who_decided(url: str) -> None:
    shown = run("audit", "show", "--state", url)

    assert shown.exit_code == 0
    assert "denied_by_policy" in shown.stdout
    assert "policy" in shown.stdout


def test_the_state_may_be_named_by_the_environment(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEAWALL_STATE", url)

    assert run("audit", "verify").exit_code == 0


@pytest.mark.parametrize(
    ("options", "kept"),
    [
        ((), ["call look", "call wipe", "call look", "turn "]),
        (("--kind", "turn"), ["turn "]),
        (("--tool", "wipe"), ["call wipe"]),
        (("--limit", "1"), ["turn "]),
        (("--limit", "0"), []),
    ],
)
def test_entries_can_be_chosen(url: str, options: tuple[str, ...], kept: list[str]) -> None:
    shown = run("audit", "show", "--state", url, "--json", *options)

    entries = json.loads(shown.stdout)
    assert [f"{entry['kind']} {entry.get('tool', '')}" for entry in entries] == kept


def test_all_entries_are_exported_as_lines_that_can_be_checked(url: str) -> None:
    lines = [
        json.loads(line) for line in run("audit", "export", "--state", url).stdout.splitlines()
    ]

    assert [line["seq"] for line in lines] == [1, 2, 3, 4]
    entries = [json.loads(line["text"]) for line in lines]
    assert [entry["previous"] for entry in entries] == ["", *(line["hash"] for line in lines[:-1])]


def test_a_sound_log_is_said_to_be_so(url: str) -> None:
    checked = run("audit", "verify", "--state", url)

    assert checked.exit_code == 0
    assert checked.stdout.startswith("4 entries, as written\nlast: 4:")


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("UPDATE audit SET entry = replace(entry, 'wipe', 'look')", "entry 2: it was changed"),
        ("DELETE FROM audit WHERE seq = 2", "entry 3: what should follow 1 is not there"),
        ("UPDATE audit SET entry = '[]' WHERE seq = 2", "entry 2: it cannot be read"),
    ],
)
def test_a_log_that_was_changed_is_told_and_ends_with_1(
    url: str, statement: str, said: str
) -> None:
    spoil(url, statement)

    checked = run("audit", "verify", "--state", url)

    assert checked.exit_code == 1
    assert said in checked.stderr
    assert "NOT as written" in checked.stdout
    assert run("audit", "show", "--state", url).exit_code == 0


def test_a_cut_end_shows_with_what_was_noted_before(url: str) -> None:
    last = run("audit", "verify", "--state", url).stdout.split("last: ")[1].strip()
    spoil(url, "DELETE FROM audit WHERE seq = 4")
    spoil(url, "UPDATE audit_head SET seq = 3, hash = (SELECT hash FROM audit WHERE seq = 3)")

    assert run("audit", "verify", "--state", url).exit_code == 0
    checked = run("audit", "verify", "--state", url, "--last", last, "--json")

    assert checked.exit_code == 1
    assert json.loads(checked.stdout)["faults"] == [
        {"seq": 4, "said": "the end of the log was cut off: this entry was there"}
    ]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("show", "--state", "memory:"), "--state: is in memory"),
        (("verify", "--state", "sqlite:////nowhere/state.db"), "there is no state at"),
        (("verify", "--state", "mysql://a"), "--state: mysql:… is no address of a"),
        (("show", "--state", "postgresql://u@127.0.0.1:1/a"), "is not available"),
    ],
)
def test_a_state_that_is_not_there_is_not_made(arguments: tuple[str, ...], said: str) -> None:
    result = run("audit", *arguments)

    assert result.exit_code == 2
    assert said in result.stderr


@pytest.mark.parametrize("command", ["show", "export"])
def test_a_kind_that_no_entry_has_is_refused(url: str, command: str) -> None:
    result = run("audit", command, "--state", url, "--kind", "calls")

    assert result.exit_code == 2
    assert result.stderr == (
        "error: --kind: is 'calls'; use one of call, effect, turn, approval, gap\n"
    )


@pytest.mark.parametrize("last", ["", "4", "x:ab", "4:", "٤:ab"])
def test_a_mark_that_is_none_is_refused(url: str, last: str) -> None:
    result = run("audit", "verify", "--state", url, "--last", last)

    assert result.exit_code == 2
    assert "NUMBER:HASH" in result.stderr


REGISTRY = """
from seawall import Registry, tool

registry = Registry()

@registry.tool
def pay(amount: int) -> str:
    with open("effects", "a") as file:
        file.write(f"{amount}\\n")
    return f"paid {amount}"
"""


def test_a_call_with_a_key_is_one_effect_however_often_it_is_made(
    module: Any, tmp_path: Path
) -> None:
    module("shop", REGISTRY)
    call = ("call", "pay", '{"amount": 5}', "--registry", "shop:registry", "--once", "order-7")

    said = [run(*call, "--state", f"sqlite:///{tmp_path}/state.db") for _ in range(2)]

    assert [(one.exit_code, one.stdout) for one in said] == [(0, "paid 5\n")] * 2
    assert (tmp_path / "effects").read_text() == "5\n"
    assert "forgotten at once" in run(*call).stderr


def test_notes_of_the_command_line_are_kept(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/state.db"
    run("call", "note_add", '{"text": "buy milk"}', "--state", url)

    found = run("call", "note_search", '{"query": "milk"}', "--state", url)

    assert "buy milk" in found.stdout
    assert "buy milk" not in run("call", "note_search", "{}").stdout


def test_a_batch_is_in_the_log(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/state.db"
    steps = tmp_path / "steps.json"
    steps.write_text('[{"tool": "calculate", "arguments": {"expression": "1+1"}}]')

    assert run("batch", str(steps), "--state", url).exit_code == 0
    assert "calculate" in run("audit", "show", "--state", url).stdout


def test_a_policy_opens_an_address_to_the_bundled_tool(tmp_path: Path) -> None:
    policy = tmp_path / "policy.toml"
    policy.write_text('[http_check]\nallow = ["127.0.0.1:1"]\n')
    call = ("call", "http_check", '{"url": "http://127.0.0.1:1/"}', "--json")

    assert json.loads(run(*call).stdout)["failure"]["reason"] == "address_refused"
    opened = json.loads(run(*call, "--policy", str(policy)).stdout)
    assert opened["structured_content"]["reachable"] is False


def test_what_is_sealed_is_shown_with_the_key_and_said_to_be_sealed_without(
    tmp_path: Path,
) -> None:
    url = f"sqlite:///{tmp_path}/state.db"

    class Mine:
        def decide(self, prepared: Any) -> Decision:
            return Decision(Action.DENY, f"not to {prepared.arguments['to']}")

    async def fill() -> None:
        async with Pipeline([scripted(name="pay")], state=url, risk=Mine()) as pipeline:
            await pipeline.call("pay", {"to": "ada"})

    asyncio.run(fill())
    shown = run("audit", "show", "--state", url, "--json")
    exported = run("audit", "export", "--state", url)
    (tmp_path / "state.db.key").write_text("11" * 32 + "\n")
    foreign = run("audit", "show", "--state", url, "--json")

    assert [entry["why"] for entry in json.loads(shown.stdout)] == ["not to ada"]
    assert "why_sealed" in exported.stdout
    assert "ada" not in exported.stdout
    assert [entry["why"] for entry in json.loads(foreign.stdout)] == [
        "(sealed with a key that is not here)"
    ]
