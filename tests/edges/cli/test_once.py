from __future__ import annotations

import pytest
import typer
from typer.testing import CliRunner

from seawall.edges.cli.app import app


def commands(group: object, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """The words of every command that has `--policy`."""
    found: list[tuple[str, ...]] = []
    for name, one in getattr(group, "commands", {}).items():
        found += commands(one, (*path, name))
    if any("--policy" in one.opts for one in getattr(group, "params", [])):
        found.append(path)
    return found


COMMANDS = commands(typer.main.get_command(app))


def refused(*words: str) -> str:
    ran = CliRunner().invoke(app, list(words))
    assert ran.exit_code == 2, ran.output
    return " ".join(ran.stderr.split())


def test_most_commands_take_a_policy() -> None:
    assert {("serve",), ("proxy",), ("call",), ("policy", "explain")} <= set(COMMANDS)


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_second_policy_is_refused_by_every_command_and_both_are_named(
    command: tuple[str, ...],
) -> None:
    said = refused(*command, "--policy", "strict", "--policy=read-only-agent")

    assert "'--policy'" in said
    assert "it is given more than once: strict, read-only-agent; give one" in said
    assert "extends" in said


def test_the_same_value_twice_is_refused_too() -> None:
    assert "registry" in refused("tools", "--registry", "shop", "--registry", "shop")


def test_an_address_that_is_given_twice_is_not_shown() -> None:
    said = refused("call", "t", "--state", "postgresql://u:secret@h/a", "--state", "sqlite:///b")

    assert ("'--state'" in said, "secret" in said) == (True, False)


@pytest.mark.parametrize(
    "words",
    [
        ("tools", "--json", "--json"),
        ("policy", "simulate", "--trace", "a", "--trace", "b", "--policy", "no-such"),
        ("proxy", "--policy", "no-such", "--", "server", "--policy", "a", "--policy", "b"),
    ],
)
def test_switches_lists_and_the_options_of_others_may_be_repeated(words: tuple[str, ...]) -> None:
    assert "more than once" not in CliRunner().invoke(app, list(words)).output
