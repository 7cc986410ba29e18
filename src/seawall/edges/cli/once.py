"""Options that take one value are given once: of two, one would be dropped without a word.

What is dropped may be the stricter of two policies, or the state that approvals were to go to.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperCommand

if TYPE_CHECKING:
    from collections.abc import Sequence

_ADVICE = {"policy": "; a file builds on another with `extends`"}


class OnceCommand(TyperCommand):
    """A command that refuses an option given again, unless it takes several values."""

    def make_parser(self, ctx: Any) -> Any:
        """Make the parser; it knows every option as it was given, which nothing after it does."""
        parser: Any = super().make_parser(ctx)
        parse = parser.parse_args

        def parse_once(args: list[str]) -> Any:
            given = tuple(args)  # it is emptied while it is read
            found = parse(args=args)
            for option in found[2]:
                if _takes_one_value(option) and found[2].count(option) > 1:
                    raise typer.BadParameter(_said(option, given), ctx=ctx, param=option)
            return found

        parser.parse_args = parse_once
        return parser


def each_option_once(app: typer.Typer) -> None:
    """Let all commands of an app, and of the groups in it, refuse a second value."""
    for command in app.registered_commands:
        command.cls = OnceCommand
    for group in app.registered_groups:
        if group.typer_instance is not None:
            each_option_once(group.typer_instance)


def _takes_one_value(option: Any) -> bool:
    is_option = option.param_type_name == "option"
    return is_option and not (option.multiple or option.is_flag or option.count)


def _said(option: Any, given: Sequence[str]) -> str:
    values = [value for value in _values(option.opts, given) if "://" not in value]
    # An address may have a password in it; names of files may be shown.
    shown = f": {', '.join(values)}" if len(values) > 1 else ""
    return f"it is given more than once{shown}; give one{_ADVICE.get(option.name, '')}"


def _values(names: Sequence[str], given: Sequence[str]) -> list[str]:
    """Find the values of an option, for showing."""
    found = []
    for at, word in enumerate(given):
        name, has_value, value = word.partition("=")
        if has_value and name in names:
            found.append(value)
        elif word in names and at + 1 < len(given):
            found.append(given[at + 1])
    return found
