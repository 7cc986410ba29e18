"""From a terminal: what waits is seen, answered once, run once, while others use the state."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner, Result

from seawall import Annotations, Pipeline, Risk, Session, Tool, tool
from seawall.edges.cli.app import app
from seawall.edges.cli.exits import Exit

if TYPE_CHECKING:
    from pathlib import Path

TOOLS = """
from pathlib import Path
from seawall import Annotations, tool

@tool(annotations=Annotations.for_destroying())
async def wipe(path: str, password: str = "") -> str:
    with Path("wiped.txt").open("a") as file:
        file.write(path)
    return f"wiped {path}"

tools = [wipe]
"""

Run = Callable[..., Result]


@pytest.fixture(name="run")
def run_fixture(
    module: Callable[[str, str], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Run:
    where = module("wiping", TOOLS) + ":tools"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SEAWALL_STATE", f"sqlite:///{tmp_path}/state.db")

    def run(*arguments: str, stdin: str | None = None) -> Result:
        has_tools = arguments[0] == "call" or arguments[1:2] == ("resume",)
        options = ["--registry", where] if has_tools else []
        return CliRunner().invoke(app, [*arguments, *options], input=stdin)

    return run


def waiting(run: Run) -> str:
    """Have a call wait; its id."""
    said = run("call", "wipe", '{"path": "/a"}', "--json")
    assert said.exit_code == Exit.REFUSED
    found: str = json.loads(said.output)["approval_id"]
    return found


def data(result: Result) -> Any:
    return json.loads(result.output)


def test_a_list_says_how_many_older_ones_it_leaves_out_and_how_to_see_them(run: Run) -> None:
    asked = []
    for number in range(3):
        said = run("call", "wipe", json.dumps({"path": f"/{number}"}), "--json")
        asked.append(json.loads(said.output)["approval_id"])

    first = run("approvals", "list", "--limit", "1", "--json")
    assert [one["id"] for one in json.loads(first.stdout)] == [asked[2]]
    assert first.stderr.startswith("2 older ones are left: --after ")
    after = first.stderr.split()[-1]
    second = run("approvals", "list", "--after", after, "--json")
    assert [one["id"] for one in json.loads(second.stdout)] == asked[1::-1]
    assert second.stderr == ""
    wrong = run("approvals", "list", "--after", "yesterday")
    assert wrong.exit_code == Exit.USAGE
    assert "--after" in wrong.stderr


def test_what_nobody_sees_is_written_out_for_whoever_decides(run: Run) -> None:
    hidden = "\u3164\u2800\ufe0f\U000e0100\u034f\u115f\uffa0\u202e\u00a0\u3000"
    said = run("call", "wipe", json.dumps({"path": f"bob{hidden}"}), "--json")
    approval_id = json.loads(said.output)["approval_id"]

    shown = run("approvals", "show", approval_id).output
    as_json = run("approvals", "show", approval_id, "--json").output

    written = "\\u3164\\u2800\\ufe0f\\udb40\\udd00\\u034f\\u115f\\uffa0\\u202e\\u00a0\\u3000"
    assert f'"bob{written}"' in shown
    assert not set(hidden) & set(shown + as_json + run("approvals", "list").output)
    (item,) = json.loads(as_json)["approvals"]
    assert json.loads(item["arguments"])["path"] == f"bob{hidden}"


def test_all_of_long_arguments_is_shown_to_whoever_decides(run: Run) -> None:
    path = "x" * 3_000 + "IN THE MIDDLE" + "y" * 3_000
    arguments = {f"k{number}": "v" for number in range(300)} | {"path": path}
    said = run("call", "wipe", json.dumps(arguments), "--json")
    approval_id = json.loads(said.output)["approval_id"]

    shown = run("approvals", "show", approval_id).output
    (item,) = json.loads(run("approvals", "show", approval_id, "--json").output)["approvals"]
    (listed,) = json.loads(run("approvals", "list", "--json").output)

    assert path in shown
    assert json.loads(item["arguments"]) == arguments
    assert item["arguments_cut"] is False
    assert listed["approvals"][0]["arguments_cut"] is True
    assert len(listed["approvals"][0]["arguments"]) < 3_000


def test_a_call_waits_is_approved_run_and_read(run: Run, tmp_path: Path) -> None:
    batch_id = waiting(run)

    (listed,) = data(run("approvals", "list", "--json"))
    assert (listed["id"], listed["status"]) == (batch_id, "pending")
    approved = run("approvals", "approve", batch_id, "--by", "ada")
    assert (approved.exit_code, approved.output) == (
        0,
        f"Approved: {batch_id} is approved\n",
    )
    assert not (tmp_path / "wiped.txt").exists()
    resumed = run("approvals", "resume", batch_id)
    again = run("approvals", "resume", batch_id)

    assert (resumed.exit_code, "wiped /a" in resumed.output) == (0, True)
    assert (again.exit_code, "approval used" in again.output) == (Exit.REFUSED, True)
    assert (tmp_path / "wiped.txt").read_text() == "/a"
    assert "wiped /a" in run("approvals", "outcome", batch_id).output
    shown = data(run("approvals", "show", batch_id, "--json"))
    assert (shown["status"], shown["approvals"][0]["decided_by"]) == ("done", "ada")
    assert shown["approvals"][0]["risk"] == "high"


@pytest.mark.parametrize(("front", "is_read"), [("", True), ("gateway", False)])
def test_a_look_from_here_reads_no_results_for_a_client_of_a_gateway(
    run: Run, tmp_path: Path, *, front: str, is_read: bool
) -> None:
    async def there(work: Any) -> Any:
        async with Pipeline([wipe], state=f"sqlite:///{tmp_path}/state.db") as pipeline:
            return await work(pipeline)

    @tool(annotations=Annotations.for_destroying())
    async def wipe(path: str) -> str:
        """Wipe."""
        return f"wiped {path}"

    async def ran(pipeline: Pipeline) -> str:
        session = Session("chat")
        session.front = front
        waits = await pipeline.call("wipe", {"path": "/a"}, session=session)
        assert waits.metadata is not None
        batch_id: str = waits.metadata["approval_id"]
        await pipeline.approvals.approve(batch_id)
        await pipeline.resume(batch_id)
        return batch_id

    batch_id = asyncio.run(there(ran))

    assert "wiped /a" in run("approvals", "outcome", batch_id).output
    frozen = asyncio.run(there(lambda pipeline: pipeline.approvals.frozen(batch_id)))
    assert (frozen.read is not None) is is_read


def test_what_is_listed_and_shown_reads_well(run: Run) -> None:
    batch_id = waiting(run)

    listed = run("approvals", "list").output.splitlines()
    shown = run("approvals", "show", f"{batch_id}.0").output

    assert listed[0].split() == ["id", "status", "tools", "risk", "why", "expires", "session"]
    assert listed[1].split()[:4] == [batch_id, "pending", "wipe", "high"]
    assert "in 24 h" in listed[1]
    assert '"path": "/a"' in shown
    assert f"wipe  {batch_id}.0" in shown


@pytest.mark.parametrize(
    ("origins", "column"),
    [
        ([""], []),
        (["npx a"], []),
        (["npx a", "npx a"], []),
        (["npx a", "npx b"], ["npx a", "npx b"]),
        (["npx a", ""], ["npx a", ""]),
    ],
)
def test_the_server_is_listed_where_there_are_several_and_always_for_programs(
    run: Run, tmp_path: Path, origins: list[str], column: list[str]
) -> None:
    async def wipe(arguments: Any, context: Any) -> str:
        return "wiped"

    async def wait() -> None:
        for origin in origins:
            schema = {"type": "object"}
            asks = Tool("wipe", "", schema, wipe, risk=Risk.HIGH, origin=origin)
            async with Pipeline([asks], state=f"sqlite:///{tmp_path}/state.db") as pipeline:
                await pipeline.call("wipe", {}, session=Session("chat"))

    asyncio.run(wait())
    head, *rows = run("approvals", "list").output.splitlines()
    told = data(run("approvals", "list", "--json"))

    begins = head.find("server")
    listed = [row[begins:].split("  ")[0] for row in rows] if begins > 0 else []
    assert sorted(listed) == sorted(column)
    assert sorted(each["approvals"][0]["origin"] for each in told) == sorted(origins)


def test_a_denial_reaches_the_model_with_its_reason(run: Run) -> None:
    batch_id = waiting(run)

    assert run("approvals", "deny", batch_id, "not on a Friday").exit_code == 0
    resumed = run("approvals", "resume", batch_id, "--json")

    (result,) = data(resumed)["results"]
    assert (resumed.exit_code, result["failure"]["reason"]) == (Exit.REFUSED, "approval_denied")
    assert "not on a Friday" in result["text"]


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (["show", "apr_nothing"], Exit.NOT_FOUND),
        (["approve", "apr_nothing"], Exit.NOT_FOUND),
        (["resume", "apr_nothing"], Exit.NOT_FOUND),
        (["outcome", "apr_nothing"], Exit.NOT_FOUND),
        (["approve", "ID"], Exit.REFUSED),
        (["withdraw", "ID"], Exit.REFUSED),
        (["list", "--status", "perhaps"], Exit.USAGE),
        (["list", "--state", "memory:"], Exit.USAGE),
        (["list", "--state", "sqlite:////proc/nowhere/state.db"], Exit.USAGE),
        (["list", "--state", "mysql://x"], Exit.USAGE),
        (["resume", "ID", "--arguments", "[1]"], Exit.USAGE),
        (["resume", "ID", "--arguments", "{"], Exit.USAGE),
    ],
)
@pytest.mark.parametrize("as_json", [False, True])
def test_what_cannot_be_done_is_said_with_its_exit_code(
    run: Run, command: list[str], code: Exit, as_json: bool
) -> None:
    batch_id = waiting(run)
    run("approvals", "withdraw", batch_id)
    given = [batch_id if word == "ID" else word for word in command]

    said = run("approvals", *given, *(["--json"] if as_json else []))

    assert said.exit_code == code, said.output
    assert said.output.strip()


def test_who_resumes_with_the_bundled_tools_alone_is_told(run: Run) -> None:
    batch_id = waiting(run)
    run("approvals", "approve", batch_id)

    said = CliRunner().invoke(app, ["approvals", "resume", batch_id])

    assert said.exit_code == Exit.REFUSED
    assert said.stderr.endswith("These are the bundled tools; --registry names others.\n")
    again = run("approvals", "resume", batch_id)
    assert (again.exit_code, again.stderr) == (Exit.OK, "")


def test_that_nothing_waits_is_said(run: Run) -> None:
    run("approvals", "withdraw", waiting(run))

    assert "Nothing waits for an answer." in run("approvals", "list").output


@pytest.mark.parametrize(
    "command",
    [["list"], ["show", "apr_x"], ["approve", "apr_x"], ["resume", "apr_x"], ["outcome", "apr_x"]],
)
def test_a_state_that_is_not_there_is_told_and_not_made(
    run: Run, tmp_path: Path, command: list[str]
) -> None:
    said = run("approvals", *command)

    assert said.exit_code == Exit.USAGE
    assert "error: --state: there is no state at" in said.stderr
    assert not list(tmp_path.glob("state.db*"))


def test_without_a_state_it_says_what_to_give(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SEAWALL_STATE")

    said = run("approvals", "list")

    assert (said.exit_code, "--state: is needed" in said.output) == (Exit.USAGE, True)


def test_arguments_given_again_have_to_be_those_that_were_approved(run: Run) -> None:
    batch_id = waiting(run)
    run("approvals", "approve", batch_id)

    wrong = run("approvals", "resume", batch_id, "--arguments", '{"path": "/b"}')
    right = run("approvals", "resume", batch_id, "--arguments", "-", stdin='{"path": "/a"}')

    assert (wrong.exit_code, right.exit_code) == (Exit.REFUSED, 0)
    assert "not those that were approved" in wrong.output


def test_what_waits_is_told_where_its_results_are_asked_for(run: Run) -> None:
    batch_id = waiting(run)

    plain = run("approvals", "outcome", batch_id)
    as_json = run("approvals", "outcome", batch_id, "--json")

    assert (plain.exit_code, "is pending" in plain.output) == (Exit.REFUSED, True)
    assert data(as_json)["status"] == "waiting"
