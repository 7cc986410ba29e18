"""`seawall policy check`, `explain`, `diff` and `schema`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner, Result

from seawall.edges.cli.app import app

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SHOP = '''
from seawall import Annotations, Registry

registry = Registry()

@registry.tool(annotations=Annotations.for_reading(open_world=True))
async def stock(item: str) -> str:
    """Say what there is."""
    return item
'''


@pytest.fixture(name="folder")
def folder_fixture(module: Callable[[str, str], str], tmp_path: Path) -> Path:
    module("shop", SHOP)
    (tmp_path / "good.toml").write_text('extends = "default"\n[tools.stock]\ntimeout_s = "5s"\n')
    (tmp_path / "bad.toml").write_text("[tools.stock]\ntimeout_s = 0\n\nmax_retrys = 2\n")
    (tmp_path / "odd.toml").write_text('[tools.stok]\ntimeout_s = "5s"\n')
    (tmp_path / "servers.toml").write_text('[families.git]\nservers = ["githb"]\ncost = 1\n')
    return tmp_path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["policy", *arguments])


def test_check_tells_every_fault_with_its_place_and_a_suggestion(folder: Path) -> None:
    result = run("check", "good.toml", "bad.toml")

    assert result.exit_code == 2
    assert result.stdout == "good.toml: can be used\n"
    first, second = result.stderr.splitlines()
    assert first.startswith("error: bad.toml:2:1: tools.stock.timeout_s: must be above 0")
    assert second == (
        "error: bad.toml:4:1: tools.stock.max_retrys: is unknown; did you mean max_retries?"
    )


def test_check_of_good_files_ends_well(folder: Path) -> None:
    assert run("check", "good.toml", "strict", "default").exit_code == 0


def test_check_notes_what_fits_no_tool_if_it_is_given_the_tools(folder: Path) -> None:
    assert run("check", "odd.toml").stderr == ""

    result = run("check", "odd.toml", "--registry", "shop:registry")

    assert result.exit_code == 0
    assert "fits no tool; did you mean stock?" in result.stderr
    assert run("check", "odd.toml", "--registry", "shop:registry", "--strict").exit_code == 2


def test_check_notes_servers_that_a_configuration_does_not_have(folder: Path) -> None:
    (folder / "mcp.json").write_text('{"mcpServers": {"github": {"command": "x"}}}')

    result = run("check", "servers.toml", "--mcp-config", "mcp.json")

    assert "for the server 'githb', which the configuration does not have" in result.stderr
    assert "did you mean github?" in result.stderr


@pytest.mark.parametrize("text", ["", "[]", '{"mcp": {}}', "{"])
def test_what_is_no_configuration_is_told(folder: Path, text: str) -> None:
    (folder / "mcp.json").write_text(text)

    result = run("check", "good.toml", "--mcp-config", "mcp.json")

    assert result.exit_code == 2
    assert "mcp.json: " in result.stderr


def test_check_writes_json_for_programs(folder: Path) -> None:
    result = run("check", "bad.toml", "--json")

    (found,) = json.loads(result.stdout)
    assert found["file"] == "bad.toml"
    assert [fault["line"] for fault in found["faults"]] == [2, 4]


def test_explain_shows_a_policy_by_its_rules(folder: Path) -> None:
    result = run("explain", "stock", "--policy", "good.toml", "--registry", "shop:registry")

    assert len(result.stdout.splitlines()) < 12
    assert "by annotations: open world -> preset network\n  max_retries   2" in result.stdout
    assert "by tools.stock\n  timeout_s     5  (good.toml:3)" in result.stdout
    assert "other settings are as they are without any rule: see --full." in result.stdout


def test_explain_in_full_shows_each_value_with_its_rule(folder: Path) -> None:
    shop = ("--policy", "good.toml", "--registry", "shop:registry")

    result = run("explain", "stock", *shop, "--full")

    assert len(result.stdout.splitlines()) == 1 + len(
        json.loads(run("explain", "stock", *shop, "--json").stdout)
    )
    lines = {line.split()[0]: line for line in result.stdout.splitlines()}
    assert lines["timeout_s"].endswith("tools.stock (good.toml:3)")
    assert "annotations: open world -> preset network" in lines["rate"]


def test_explain_shows_what_the_environment_says(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEAWALL_POLICY__TOOLS__stock__TIMEOUT_S", "7s")

    result = run("explain", "stock", "--registry", "shop:registry", "--json")

    assert json.loads(result.stdout)["timeout_s"] == {
        "value": 7.0,
        "rule": "tools.stock (SEAWALL_POLICY__TOOLS__stock__TIMEOUT_S)",
    }


def test_explain_of_an_unknown_tool_names_the_near_ones(folder: Path) -> None:
    result = run("explain", "stok", "--registry", "shop:registry")

    assert result.exit_code == 5
    assert "Near names: stock" in result.stderr


def test_diff_shows_which_tools_change_and_by_which_rule(folder: Path) -> None:
    result = run("diff", "default", "good.toml", "--registry", "shop:registry")

    assert result.exit_code == 0
    title, _, row = result.stdout.splitlines()
    assert title == "stock"
    assert row.split() == ["timeout_s", "90", "5", "tools.stock", "(good.toml:3)"]


def test_diff_in_full_has_a_line_for_each_value_of_each_tool(folder: Path) -> None:
    result = run("diff", "default", "good.toml", "--registry", "shop:registry", "--full")

    _, row = result.stdout.splitlines()
    assert row.split()[:4] == ["stock", "timeout_s", "90", "5"]
    assert "tools.stock (good.toml:3), before: annotations" in row


def test_diff_can_tell_a_script_by_its_code(folder: Path) -> None:
    shop = ("--registry", "shop:registry", "--exit-code")

    assert run("diff", "default", "good.toml", *shop).exit_code == 1
    assert run("diff", "default", "default", *shop).exit_code == 0


def test_diff_writes_json_for_programs(folder: Path) -> None:
    result = run("diff", "default", "good.toml", "--registry", "shop:registry", "--json")

    (found,) = json.loads(result.stdout)
    assert (found["tool"], found["before"], found["after"]) == ("stock", 90, 5)


def test_schema_is_json() -> None:
    assert json.loads(run("schema").stdout)["title"] == "Seawall policy"
