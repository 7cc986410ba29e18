import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from seawall.edges.cli.app import app
from seawall.edges.cli.tools import COLUMNS
from seawall.toolkit.bundle import bundled

Module = Callable[[str, str], str]

TOOLS = """
from seawall import Annotations, Registry, Tool, tool

@tool(
    annotations=Annotations.for_destroying(), category="files", family="disk", tags=("slow",),
    needs=("root",), exclusive="$path", duration=7.0, examples=(({"path": "/a"}, "wiped"),),
)
async def wipe(path: str) -> str:
    "Wipe a path.\\n\\nFor good."
    return "wiped"

@tool
async def plain() -> str:
    "Do something."
    return "done"

registry = Registry([wipe, plain])
registry.register(
    Tool("odd", "Odd.", {"type": "no-such-type"}, lambda a, c: None), on_invalid="quarantine"
)
empty = Registry()
"""


@pytest.fixture(name="run")
def run_fixture(module: Module) -> Callable[..., Result]:
    where = module("listing", TOOLS)

    def run(*arguments: str, attribute: str = "registry") -> Result:
        return CliRunner().invoke(app, ["tools", *arguments, "--registry", f"{where}:{attribute}"])

    return run


Run = Callable[..., Result]


def _rows(output: str) -> list[list[str]]:
    return [[cell for cell in line.split("  ") if cell] for line in output.splitlines()]


def test_the_bundled_tools_are_listed_without_a_registry() -> None:
    ran = CliRunner().invoke(app, ["tools"])

    assert [row[0] for row in _rows(ran.stdout)] == ["name", *bundled().names()]


def test_a_row_says_risk_hints_and_policy(run: Run) -> None:
    rows = [[cell.strip() for cell in row] for row in _rows(run().stdout)]

    assert rows[0] == list(COLUMNS)
    assert rows[1] == ["wipe", "high", "destructive", "60 s", "0", "no limit", "5, 15 s", "files"]
    assert rows[2][:3] == ["plain", "low", "not declared"]


def test_a_tool_that_is_set_aside_is_listed_with_the_reason(run: Run) -> None:
    ran = run()

    assert _rows(ran.stdout)[3][0] == "odd"
    assert "set aside" in ran.stdout
    assert "odd is set aside: odd.input_schema" in ran.stderr


def test_retries_that_never_happen_are_not_promised(run: Run) -> None:
    Path("mine.toml").write_text("[tools.wipe]\nmax_retries = 3\n")

    rows = [[cell.strip() for cell in row] for row in _rows(run("--policy", "mine.toml").stdout)]

    assert rows[1][4] == "0"


def test_an_empty_registry_is_said(run: Run) -> None:
    ran = run(attribute="empty")

    assert (ran.exit_code, ran.stdout) == (0, "")
    assert "no tools" in ran.stderr


def test_json_lists_what_programs_may_want(run: Run) -> None:
    wipe, plain, odd = json.loads(run("--json").stdout)

    assert wipe["name"] == "wipe"
    assert wipe["risk"] == "high"
    assert wipe["annotations"]["destructive"] is True
    assert wipe["policy"]["timeout_s"] == 60
    assert plain["annotations"] == {"sensitive": False}
    assert "input_schema" in odd["quarantined"]


def test_describing_says_everything(run: Run) -> None:
    said = run("--describe", "wipe").stdout

    for part in (
        "Wipe a path.\n\nFor good.",
        "risk         high",
        "category     files",
        "family       disk",
        "tags         slow",
        "needs        root",
        "exclusive    $path",
        "duration     7.0",
        "retry-safe   no, a second call may have a second effect",
        '"path": {',
        'with {"path": "/a"}',
        "gives wiped",
        "timeout_s",
        "annotations: neither open world nor retry-safe -> preset mutating",
    ):
        assert part in said


def test_describing_says_which_rule_gave_each_value(run: Run) -> None:
    Path("mine.toml").write_text("[tools.wipe]\ntimeout_s = 3\n")

    said = json.loads(run("--describe", "wipe", "--policy", "mine.toml", "--json").stdout)

    assert said["explained"]["timeout_s"] == {"value": 3, "rule": "tools.wipe (mine.toml:2)"}
    assert "preset mutating" in said["explained"]["grace_s"]["rule"]


def test_describing_as_json_has_schema_and_examples(run: Run) -> None:
    said = json.loads(run("--describe", "wipe", "--json").stdout)

    assert said["input_schema"]["required"] == ["path"]
    assert said["examples"] == [{"arguments": {"path": "/a"}, "result": "wiped"}]
    assert said["needs"] == ["root"]


def test_describing_a_tool_that_is_set_aside_says_why(run: Run) -> None:
    ran = run("--describe", "odd")

    assert ran.exit_code == 0
    assert "Set aside: odd.input_schema" in ran.stdout


def test_describing_an_unknown_tool_gives_near_names(run: Run) -> None:
    ran = run("--describe", "wype")

    assert ran.exit_code == 5
    assert "Near names: wipe" in ran.stderr
    assert ran.stdout == ""


BUNDLED = "These are the bundled tools; "


@pytest.mark.parametrize(
    "command",
    [
        ["tools", "refund"],
        ["call", "refund", "{}"],
        ["check-arguments", "refund", "{}"],
        ["policy", "explain", "refund"],
        ["batch", "steps.json"],
    ],
    ids=" ".join,
)
def test_who_looks_for_a_tool_of_ones_own_among_the_bundled_ones_is_told(
    module: Module, command: list[str]
) -> None:
    where = module("listing", TOOLS)
    Path("steps.json").write_text('[{"tool": "refund", "arguments": {}}]')

    without = CliRunner().invoke(app, command)
    own = CliRunner().invoke(app, [*command, "--registry", f"{where}:registry"])

    assert (without.exit_code, own.exit_code) == (5, 5)
    how = "--registry" if command[0] == "policy" else "--registry or --mcp-config"
    assert without.stderr.endswith(f"{BUNDLED}{how} names others.\n")
    assert BUNDLED not in own.stderr


@pytest.mark.parametrize("name", bundled().names())
def test_every_bundled_tool_can_be_described(name: str) -> None:
    assert CliRunner().invoke(app, ["tools", "--describe", name]).exit_code == 0


def test_what_the_policy_probably_did_not_mean_is_noted(run: Run) -> None:
    Path("mine.toml").write_text("[tools.wip]\ntimeout_s = 3\n")

    assert "note: tools.wip" in run("--policy", "mine.toml").stderr


def test_a_name_is_enough_to_describe_a_tool(run: Run) -> None:
    assert run("wipe").stdout == run("--describe", "wipe").stdout
    assert run("wipe", "--describe", "wipe").stdout == run("wipe").stdout
    assert run("wipe", "--describe", "odd").exit_code == 2


def test_retries_that_are_never_made_are_said_to_be_unused(run: Run) -> None:
    Path("mine.toml").write_text("[tools.wipe]\nmax_retries = 3\n")

    described = run("wipe", "--policy", "mine.toml").stdout
    data = json.loads(run("wipe", "--policy", "mine.toml", "--json").stdout)

    assert "3 (unused: not retry-safe)" in described
    assert (data["retries"], data["policy"]["max_retries"]) == (0, 3)


def test_whether_a_person_is_asked_is_shown_with_the_rules_for_arguments(
    run: Run,
) -> None:
    Path("ruled.toml").write_text(
        "[[risk.rules]]\ntool = 'wipe'\nargument = '/path'\nunder = '/tmp'\n"
        "decide = 'allow'\notherwise = 'deny'\nreason = 'only there'\n"
    )

    said = run("--describe", "wipe", "--policy", "ruled.toml").stdout
    as_json = json.loads(run("--describe", "wipe", "--policy", "ruled.toml", "--json").stdout)

    assert "ask (high risk)" in said
    rule = "allow if /path is under /tmp, otherwise deny"
    assert f"{rule}: only there (ruled.toml:1)" in said
    assert as_json["approval"] == {
        "decision": "ask",
        "reason": "high risk",
        "rules": [{"rule": rule, "reason": "only there", "place": "ruled.toml:1"}],
    }


def test_a_module_of_plain_functions_is_told_how_to_name_them(module: Module) -> None:
    where = module("undeclared", "def f(x: int) -> int:\n    'F.'\n    return x\n")

    ran = CliRunner().invoke(app, ["tools", "--registry", where])

    assert ran.stdout == ""
    assert ran.stderr == (
        "The registry has no tools. Functions of a module need @tool, or are named:"
        f" {where}:FUNCTION.\n"
    )


def test_a_registry_that_is_named_has_no_functions_to_name(run: Run) -> None:
    assert run(attribute="empty").stderr == "The registry has no tools.\n"
