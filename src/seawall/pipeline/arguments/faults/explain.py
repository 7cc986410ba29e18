"""The text a model reads when its arguments were refused."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from seawall.contract.failure import Issue, dotted
from seawall.pipeline.arguments.faults.wording import name, plain
from seawall.pipeline.arguments.schema.dialects import DRAFT_2020, dialect_named
from seawall.pipeline.arguments.schema.documents import Documents
from seawall.pipeline.arguments.schema.normal_form import NotUsable, copied
from seawall.pipeline.arguments.schema.redaction import Secrecy
from seawall.pipeline.arguments.schema.validators import CompileErrors, Validators

ISSUES_SHOWN = 20
ARGUMENTS_SHOWN = 2_000
"""Characters of the arguments; what is left out is told."""
_LONGEST_PATH = 200
_LONGEST_MESSAGE = 600
_LONGEST_TEXT = 500
_LEVELS_AT_MOST = 60
_SECRETS_AT_MOST = 200
HIDDEN = "(not shown)"


def explain(tool: str, issues: Sequence[Issue], received: Any, schema: Mapping[str, Any]) -> str:
    """Say what is wrong with the arguments of a call, and show them without their secrets."""
    lines = [f"Validation failed for tool {name(tool)}:"]
    lines += [_line(issue) for issue in islice(issues, ISSUES_SHOWN)]
    more = len(issues) - ISSUES_SHOWN
    if more > 0:
        lines.append(f"  … and {more} more")
    return "\n".join([*lines, "", "Received arguments:", show(received, schema)])


def show(received: Any, schema: Mapping[str, Any]) -> str:
    """Write arguments as JSON without their secrets, cut where it says so."""
    try:
        root = copied(schema)
    except NotUsable:
        return json.dumps(HIDDEN)  # nobody can say what is secret
    return _Sheet().write(received, _secrecy(root))


def secret_values(schema: Mapping[str, Any], received: Any) -> tuple[str, ...]:
    """Give the texts and numbers of arguments, as texts, that must not be shown."""
    secrecy = _if_any(schema)
    return () if secrecy is None else _hidden_by(secrecy, received)


def secrets_of(schema: Mapping[str, Any]) -> Callable[[Any], tuple[str, ...]]:
    """Give `secret_values` for one schema, which is looked through when it is first asked."""
    is_read = False
    secrecy: Secrecy | None = None

    def secrets(received: Any) -> tuple[str, ...]:
        nonlocal is_read, secrecy
        if not is_read:
            secrecy, is_read = _if_any(schema), True
        return () if secrecy is None else _hidden_by(secrecy, received)

    return secrets


def _if_any(schema: Mapping[str, Any]) -> Secrecy | None:
    """Read what a schema says of secrets; None if it speaks of none."""
    try:
        secrecy = _secrecy(copied(schema))
    except NotUsable:
        return None  # no such schema is called with
    return secrecy if secrecy.has_inside else None


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
    shown = "".join(char if char.isprintable() else " " for char in text[: longest + 1])
    return shown if len(shown) <= longest else f"{shown[: longest - 1]}…"


def _secrecy(root: dict[str, Any]) -> Secrecy:
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

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._room = ARGUMENTS_SHOWN
        self._begun: list[str] = []

    def write(self, received: Any, secrecy: Secrecy) -> str:
        try:
            self._value(received, secrecy, 0)
        except _Full:
            self._parts.append(self._rest(received))
        return plain("".join(self._parts))

    def _rest(self, received: Any) -> str:
        said = f"\n… cut after {ARGUMENTS_SHOWN:,} characters"
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

    def _value(self, value: Any, secrecy: Secrecy, level: int) -> None:
        if secrecy.hides(value):
            self._put(json.dumps(HIDDEN))
        elif isinstance(value, Mapping):
            self._object(value, secrecy, level)
        elif isinstance(value, (list, tuple)):
            self._array(value, secrecy, level)
        else:
            self._put(_scalar(value))

    def _object(self, value: Mapping[Any, Any], secrecy: Secrecy, level: int) -> None:
        if not value or level >= _LEVELS_AT_MOST:
            self._put("{…}" if value else "{}")
            return
        opening = "{"
        for key, item in value.items():
            step = str(key)
            if level == 0:
                self._begun.append(step)
            self._put(f"{opening}\n{'  ' * (level + 1)}{_scalar(step)}: ")
            opening = ","
            below = secrecy.of(step)
            if not below.places and secrecy.hides_member(step):
                self._put(json.dumps(HIDDEN))
            else:
                self._value(item, below, level + 1)
        self._put(f"\n{'  ' * level}}}")

    def _array(self, value: Sequence[Any], secrecy: Secrecy, level: int) -> None:
        if not value or level >= _LEVELS_AT_MOST:
            self._put("[…]" if value else "[]")
            return
        opening = "["
        for index, item in enumerate(value):
            self._put(f"{opening}\n{'  ' * (level + 1)}")
            opening = ","
            below = secrecy.of(index)
            if not below.places and secrecy.has_inside:
                self._put(json.dumps(HIDDEN))
            else:
                self._value(item, below, level + 1)
        self._put(f"\n{'  ' * level}]")


def _scalar(value: Any) -> str:
    if isinstance(value, str):
        cut = value if len(value) <= _LONGEST_TEXT else value[:_LONGEST_TEXT]
        more = len(value) - len(cut)
        said = f"{cut}… ({more:,} more characters)" if more else cut
        return json.dumps(said, ensure_ascii=False)
    if value is None or isinstance(value, (bool, int, float)):
        return json.dumps(value)
    return json.dumps(f"({type(value).__name__})")
