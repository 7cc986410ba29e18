"""The text a model reads when its arguments were refused."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

from seawall.contract.failure import Issue, dotted
from seawall.pipeline.arguments.faults.wording import name, plain
from seawall.pipeline.arguments.schema.dialects import DRAFT_2020, dialect_named
from seawall.pipeline.arguments.schema.documents import Documents
from seawall.pipeline.arguments.schema.normal_form import NotUsable, copied
from seawall.pipeline.arguments.schema.redaction import Secrecy
from seawall.pipeline.arguments.schema.validators import CompileErrors, Validators
from seawall.pipeline.copying import SCALARS

ISSUES_SHOWN = 20
ARGUMENTS_SHOWN = 2_000
"""Characters of the arguments; what is left out is told."""
_LONGEST_PATH = 200
_LONGEST_MESSAGE = 600
_LONGEST_TEXT = 500
_LEVELS_AT_MOST = 60
_SECRETS_AT_MOST = 200
HIDDEN = "(not shown)"


class Extent(NamedTuple):
    """How much of arguments is written."""

    room: int
    """Characters in all."""
    text: int
    """Characters of one text."""
    tail: int = 0
    """How many of them are its end."""
    levels: int = _LEVELS_AT_MOST


FOR_MODEL = Extent(ARGUMENTS_SHOWN, _LONGEST_TEXT)
FOR_PERSON = Extent(ARGUMENTS_SHOWN, _LONGEST_TEXT, 200)
"""What a person sees first: what is at the end of a text matters as much as its beginning."""
FOR_QUESTION = Extent(20_000, 10_000, 2_000)
"""What a person sees who can be shown no more than one text."""
ALL_THERE_IS = Extent(500_000, 500_000, levels=130)
"""As good as all: what is longer and has secrets in it nobody writes in a moment."""


class Shown(NamedTuple):
    """Arguments as they were written."""

    text: str
    is_cut: bool
    """Whether anything was left out that is no secret."""
    has_secrets: bool
    """Whether something may have been left out because it is one."""


_NOT_SHOWN = json.dumps(HIDDEN)


class Redaction:
    """What one schema says of secrets. It is looked through when it is first asked.

    Nothing of values is kept; several threads may use it. A schema that is `plain` holds nothing
    but JSON and does not change; of others a copy is made.
    """

    __slots__ = ("_is_readable", "_plain", "_schema", "_secrecy")

    def __init__(self, schema: Mapping[str, Any], *, plain: bool = False) -> None:
        self._schema: Mapping[str, Any] | None = schema
        self._plain = plain
        self._secrecy: Secrecy | None = None
        self._is_readable = True

    def show(self, received: Any) -> str:
        """Write arguments as JSON without their secrets, cut where it says so."""
        return self.shown(received, FOR_MODEL).text

    def shown(self, received: Any, extent: Extent) -> Shown:
        """Write so much of arguments as JSON without their secrets."""
        secrecy = self._read()
        if not self._is_readable:
            # Nobody can say what is secret.
            return Shown(_NOT_SHOWN, is_cut=False, has_secrets=True)
        sheet = _Sheet(extent)
        text = sheet.write(received, secrecy)
        has_secrets = secrecy is not None and secrecy.has_inside
        return Shown(text, sheet.is_cut, has_secrets)

    def secrets(self, received: Any) -> tuple[str, ...]:
        """Give the texts and numbers of arguments, as texts, that must not be shown."""
        secrecy = self._read()
        return _hidden_by(secrecy, received) if secrecy is not None and secrecy.has_inside else ()

    def _read(self) -> Secrecy | None:
        """Give what the schema says; None if it speaks of no secrets."""
        schema = self._schema
        if schema is not None:
            try:
                secrecy = _secrecy(schema if self._plain else copied(schema))
                self._secrecy = secrecy if secrecy.has_secrets else None
            except NotUsable:
                self._is_readable = False  # no such schema is called with
            self._schema = None
        return self._secrecy


def explain(tool: str, issues: Sequence[Issue], received: Any, redaction: Redaction) -> str:
    """Say what is wrong with the arguments of a call, and show them without their secrets."""
    lines = [f"Validation failed for tool {name(tool)}:"]
    lines += [_line(issue) for issue in islice(issues, ISSUES_SHOWN)]
    more = len(issues) - ISSUES_SHOWN
    if more > 0:
        lines.append(f"  … and {more} more")
    return "\n".join([*lines, "", "Received arguments:", redaction.show(received)])


def show(received: Any, schema: Mapping[str, Any]) -> str:
    """Do once what `Redaction.show` does, which is better for many values."""
    return Redaction(schema).show(received)


def _hidden_by(secrecy: Secrecy, received: Any) -> tuple[str, ...]:
    found: dict[str, None] = {}
    waiting: list[tuple[Any, Secrecy | None, int]] = [(received, secrecy, _LEVELS_AT_MOST)]
    while waiting and len(found) < _SECRETS_AT_MOST:
        value, known, level = waiting.pop()
        if known is not None and known.is_secret:
            known = None
        if isinstance(value, (dict, list, tuple)):
            waiting += _inside(value, known, level - 1) if level else ()
        elif (known is None or known.hides(value)) and type(value) in (str, int, float):
            found[str(value)] = None
    return tuple(found)


def _inside(
    value: Any, known: Secrecy | None, level: int
) -> Iterator[tuple[Any, Secrecy | None, int]]:
    """Give what a container holds, with what is known of it; None means that all is secret."""
    members = value.items() if isinstance(value, dict) else enumerate(value)
    for step, item in members:
        below = None if known is None else known.of(step)
        if known is not None and below is not None and not below.places:
            below = None if _is_doubtful(known, step) else below
        yield item, below, level


def _is_doubtful(known: Secrecy, step: Any) -> bool:
    return known.hides_member(step) if isinstance(step, str) else known.has_inside


def _line(issue: Issue) -> str:
    path = _one_line(dotted(issue.path) if issue.path else "root", _LONGEST_PATH)
    return f"  - {path}: {_one_line(issue.message, _LONGEST_MESSAGE)}"


def _one_line(text: str, longest: int) -> str:
    shown = text[: longest + 1]
    if not shown.isprintable():
        shown = "".join(char if char.isprintable() else " " for char in shown)
    return shown if len(shown) <= longest else f"{shown[: longest - 1]}…"


def _secrecy(root: Mapping[str, Any]) -> Secrecy:
    dialect = dialect_named(root.get("$schema")) or DRAFT_2020
    documents = Documents(root, dialect, {})
    validators = Validators(root, dialect, {}, assert_formats=False)
    return Secrecy(documents, _Patterns(validators).matches, [documents.root])


class _Patterns:
    def __init__(self, validators: Validators) -> None:
        self._validators = validators
        self._tests: dict[str, Callable[[Any], bool]] = {}

    def matches(self, pattern: str, name: str) -> bool:
        """Whether a name matches; yes in doubt, so that what the pattern hides is hidden."""
        try:
            if pattern not in self._tests:
                self._tests[pattern] = self._validators.alone({"pattern": pattern}).is_valid
            return self._tests[pattern](name)
        except CompileErrors:
            return True


class _Full(Exception):  # noqa: N818  # ends the writing; never leaves this module
    pass


class _Sheet:
    """JSON with two-space indent, on a sheet of limited size."""

    def __init__(self, extent: Extent) -> None:
        self._parts: list[str] = []
        self._room = extent.room
        self._extent = extent
        self._begun: list[str] = []
        self.is_cut = False
        """Whether anything was left out that is no secret."""

    def write(self, received: Any, secrecy: Secrecy | None) -> str:
        try:
            self._value(received, secrecy, 0)
        except _Full:
            self.is_cut = True
            self._parts.append(self._rest(received))
        return plain("".join(self._parts))

    def _rest(self, received: Any) -> str:
        said = f"\n… cut after {self._extent.room:,} characters"
        if not isinstance(received, dict):
            return said
        begun = set(self._begun)
        left = [str(key) for key in received if str(key) not in begun]
        if not left:
            return f"{said}, inside of {name(self._begun[-1])}" if self._begun else said
        shown = ", ".join(name(key) for key in left[:10])
        more = f" and {len(left) - 10} more" if len(left) > 10 else ""
        return f"{said}; not shown: {shown}{more}"

    def _put(self, text: str) -> None:
        self._parts.append(text[: self._room])
        self._room -= len(text)
        if self._room < 0:
            raise _Full

    def _value(self, value: Any, secrecy: Secrecy | None, level: int) -> None:
        if secrecy is not None and secrecy.hides(value):
            self._put(_NOT_SHOWN)
        elif type(value) in SCALARS:
            self._put(self._scalar(value))
        elif isinstance(value, Mapping):
            self._object(value, secrecy, level)
        elif isinstance(value, (list, tuple)):
            self._array(value, secrecy, level)
        else:
            self._put(self._scalar(value))

    def _object(self, value: Mapping[Any, Any], secrecy: Secrecy | None, level: int) -> None:
        if not value or level >= self._extent.levels:
            self.is_cut = self.is_cut or bool(value)
            self._put("{…}" if value else "{}")
            return
        opening, next_one = f"{{\n{'  ' * (level + 1)}", f",\n{'  ' * (level + 1)}"
        for key, item in value.items():
            step = str(key)
            if level == 0:
                self._begun.append(step)
            name_of_it, opening = f"{opening}{self._scalar(step)}: ", next_one
            if secrecy is None and type(item) in SCALARS:
                self._put(name_of_it + self._scalar(item))
                continue
            self._put(name_of_it)
            below = secrecy and secrecy.of(step)
            if below and not below.places and secrecy and secrecy.hides_member(step):
                self._put(_NOT_SHOWN)
            else:
                self._value(item, below, level + 1)
        self._put(f"\n{'  ' * level}}}")

    def _array(self, value: Sequence[Any], secrecy: Secrecy | None, level: int) -> None:
        if not value or level >= self._extent.levels:
            self.is_cut = self.is_cut or bool(value)
            self._put("[…]" if value else "[]")
            return
        opening, next_one = f"[\n{'  ' * (level + 1)}", f",\n{'  ' * (level + 1)}"
        for index, item in enumerate(value):
            self._put(opening)
            opening = next_one
            below = secrecy and secrecy.of(index)
            if below and not below.places and secrecy and secrecy.has_inside:
                self._put(_NOT_SHOWN)
            else:
                self._value(item, below, level + 1)
        self._put(f"\n{'  ' * level}]")

    def _scalar(self, value: Any) -> str:
        if type(value) is int:
            return repr(value)
        if isinstance(value, str):
            return _quoted(value) if len(value) <= self._extent.text else self._cut(value)
        if value is None or isinstance(value, (bool, int, float)):
            return json.dumps(value)
        self.is_cut = True
        return json.dumps(f"({type(value).__name__})")

    def _cut(self, value: str) -> str:
        self.is_cut = True
        tail = self._extent.tail
        head, more = self._extent.text - tail, len(value) - self._extent.text
        end = f" …{value[-tail:]}" if tail else ""
        return _quoted(f"{value[:head]}… ({more:,} more characters){end}")


_quoted = json.JSONEncoder(ensure_ascii=False).encode
