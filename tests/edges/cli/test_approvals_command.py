"""The options of `seawall approvals`, and that asking for help loads nothing."""

from __future__ import annotations

import getpass

import pytest
from typer.testing import CliRunner

from seawall.edges.cli.app import app
from seawall.edges.cli.approvals_command import _name


@pytest.mark.parametrize(
    "command", ["list", "show", "approve", "deny", "withdraw", "resume", "outcome"]
)
def test_every_command_says_what_it_does(command: str) -> None:
    said = CliRunner().invoke(app, ["approvals", command, "--help"])

    assert said.exit_code == 0
    assert "--state" in said.output
    assert "--json" in said.output


def test_who_answers_is_the_user_of_this_machine_unless_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(getpass, "getuser", lambda: "ada")
    assert (_name(None), _name("bob"), _name("")) == ("ada", "bob", "")

    def nobody() -> str:
        raise OSError("no such user")

    monkeypatch.setattr(getpass, "getuser", nobody)
    assert _name(None) == ""
