import inspect

import pytest
import typer
from typer.testing import CliRunner

from seawall.contract.errors import ConfigurationError, Fault
from seawall.edges.cli.app import app
from seawall.edges.cli.options import ends_with_code

OF_ALL_THAT_RUN_TOOLS = ("call", "batch")
OF_ALL_THAT_LIST_TOOLS = ("call", "batch", "check-arguments", "tools", "demo")


def parameters(command: str) -> dict[str, str]:
    """The help of each parameter of a command."""
    group = typer.main.get_command(app)
    found = group.commands[command]  # type: ignore[attr-defined]  # a group has commands
    return {one.name: getattr(one, "help", "") for one in found.params}


@pytest.mark.parametrize(
    ("name", "commands"),
    [
        ("policy", OF_ALL_THAT_LIST_TOOLS),
        ("mcp_config", ("call", "batch", "check-arguments", "tools")),  # the demo has no registry
        ("trust", OF_ALL_THAT_LIST_TOOLS),
        ("pins", OF_ALL_THAT_LIST_TOOLS),
        ("registry", ("call", "batch", "check-arguments", "tools")),
        ("tool", ("call", "check-arguments")),
        ("arguments", ("call", "check-arguments")),
        ("state", OF_ALL_THAT_RUN_TOOLS),
        ("yes", OF_ALL_THAT_RUN_TOOLS),
        ("record", OF_ALL_THAT_RUN_TOOLS),
    ],
)
def test_an_option_is_explained_the_same_by_every_command(
    name: str, commands: tuple[str, ...]
) -> None:
    assert len({parameters(command)[name] for command in commands}) == 1


def run(command: typer.models.CommandFunctionType, *options: str) -> tuple[int, str]:
    single = typer.Typer()
    single.command()(command)
    ran = CliRunner().invoke(single, list(options))
    return ran.exit_code, ran.stderr


def test_a_command_ends_with_the_code_that_it_gives() -> None:
    @ends_with_code
    def command(code: int = 0) -> int:
        """Give a code."""
        return code

    assert run(command, "--code", "7") == (7, "")
    assert inspect.getdoc(command) == "Give a code."


def test_a_faulty_configuration_is_told_fault_by_fault_and_ends_with_2() -> None:
    @ends_with_code
    def command() -> int:
        raise ConfigurationError([Fault("is empty", "a"), Fault("is odd", "b")])

    code, said = run(command)

    assert code == 2
    assert [line.startswith("error: ") for line in said.splitlines()] == [True, True]
