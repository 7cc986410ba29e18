"""`${…}` in a configuration: the environment, the user's folders, and what VS Code asks for."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from seawall.contract.errors import Fault

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_VARIABLE = re.compile(r"\$\{(?P<name>[^{}]*?)(?::-(?P<default>[^{}]*))?\}")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

INPUT_VARIABLE = "SEAWALL_INPUT_"
"""An input `api-key` that nobody answers is read from `SEAWALL_INPUT_API_KEY`."""


class Input(msgspec.Struct, frozen=True):
    """A value that a VS Code configuration asks the user for."""

    id: str
    description: str = ""
    password: bool = False
    default: str | None = None

    @property
    def variable(self) -> str:
        """The environment variable that answers it."""
        return INPUT_VARIABLE + re.sub(r"[^A-Za-z0-9]", "_", self.id).upper()


class Variables:
    """What `${…}` stands for. `ask` answers an input, or gives None."""

    def __init__(
        self,
        environ: Mapping[str, str],
        folder: Path,
        inputs: Mapping[str, Input],
        ask: Callable[[Input], str | None] | None = None,
    ) -> None:
        self._environ = environ
        self._inputs = inputs
        self._ask = ask
        self._answers: dict[str, str | None] = {}
        self._known: dict[str, str] = {
            "userHome": str(Path.home()),
            "workspaceFolder": str(folder),
            "workspaceFolderBasename": folder.name,
            "workspaceRoot": str(folder),
            "cwd": str(folder),
            "pathSeparator": os.sep,
            "/": os.sep,
        }

    def filled(self, text: str, key: str, faults: list[Fault]) -> str:
        """Put the values in; what has none is a fault at `key`."""

        def value(found: re.Match[str]) -> str:
            given = self._value(found["name"])
            if isinstance(given, str):
                return given
            if found["default"] is not None:
                return found["default"]
            faults.append(Fault(f"{found[0]}: {given.message}", key))
            return ""

        return _VARIABLE.sub(value, text)

    def _value(self, name: str) -> str | Fault:
        kind, colon, rest = name.partition(":")
        if colon and kind == "input":
            return self._answer(rest)
        if colon and kind != "env":
            return Fault(f"{kind!r} is not known here; use env, input, or a variable's name")
        wanted = rest if colon else name
        if not colon and name in self._known:
            return self._known[name]
        found = self._environ.get(wanted)
        if found is not None:
            return found
        if not _NAME.fullmatch(wanted):
            return Fault(
                f"{wanted[:80]!r} is no name of a variable: use letters, digits and underscores"
            )
        return Fault(f"the environment variable {wanted} is not set; set it before this is started")

    def _answer(self, name: str) -> str | Fault:
        wanted = self._inputs.get(name)
        if wanted is None:
            return Fault(f"there is no input {name!r} under 'inputs'; add it there")
        if name not in self._answers:
            self._answers[name] = self._asked(wanted)
        found = self._answers[name]
        if found is not None:
            return found
        about = f" ({wanted.description})" if wanted.description else ""
        return Fault(f"needs a value{about}; give it in the environment as {wanted.variable}")

    def _asked(self, wanted: Input) -> str | None:
        found = self._environ.get(wanted.variable)
        if found is None and self._ask is not None:
            found = self._ask(wanted)
        return wanted.default if found is None else found
