"""`regex_extract` and `regex_replace`: regular expressions that cannot hang.

They run on RE2, whose time grows with the length of the text alone. It has no look-around and no
back-references; a pattern that needs them is refused. RE2 comes with the extra `toolkit`.
"""

import importlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Protocol

from pydantic import Field

from seawall.contract.failure import FailureCode
from seawall.toolkit.refusal import failed, invalid, shown

MAX_TEXT = 100_000
MAX_PATTERN = 1000
_MAX_PROGRAM = 3000
"""Instructions of a compiled pattern: repeats such as {500} multiply."""
_MAX_MEMORY = 1 << 20
_MAX_OUTPUT = 1_000_000
_MAX_REPLACEMENTS = 10_000
_LIMIT_S = 2.0
"""For all matches together: each alone is linear, but one may look at the whole rest."""


class Match(Protocol):
    """One place where a pattern was found."""

    def group(self, number: int = 0, /) -> str:
        """Give the text of a group, empty if it took no part."""

    def groups(self) -> Sequence[str | None]:
        """Give all groups but the whole."""

    def groupdict(self) -> Mapping[str, str | None]:
        """Give the named groups."""

    def span(self) -> tuple[int, int]:
        """Give where it begins and ends."""


class Pattern(Protocol):
    """A compiled pattern, as RE2's Python module has it."""

    @property
    def groups(self) -> int:
        """Number of groups."""

    @property
    def groupindex(self) -> Mapping[str, int]:
        """Numbers of the named groups."""

    @property
    def programsize(self) -> int:
        """Number of instructions."""

    def search(self, text: str) -> Match | None:
        """Find the first match."""

    def fullmatch(self, text: str) -> Match | None:
        """Match the whole text."""

    def finditer(self, text: str) -> Iterator[Match]:
        """Find all matches that do not overlap."""


_PatternText = Annotated[
    str,
    Field(
        min_length=1,
        max_length=MAX_PATTERN,
        description="RE2 syntax: no look-around, no back-references.",
    ),
]
_Text = Annotated[str, Field(max_length=MAX_TEXT)]
_Flags = Annotated[
    str,
    Field(
        pattern="^[ims]{0,3}$",
        description="Any of i (ignore case), m (^ and $ at line ends), s (. takes line ends).",
    ),
]


class Patterns:
    """The two tools; `now` is a monotonic clock."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now

    def regex_extract(
        self,
        text: _Text,
        pattern: _PatternText,
        flags: _Flags = "",
        limit: Annotated[int, Field(ge=1, le=1000)] = 100,
    ) -> dict[str, Any]:
        """Find where a regular expression matches, with groups and positions."""
        found: list[dict[str, Any]] = []
        more = False
        for match in self._matches(compiled(pattern, "pattern", flags), text):
            if len(found) == limit:
                more = True
                break
            found.append(_shown(match))
        return {"matches": found, "more": more}

    def regex_replace(
        self,
        text: _Text,
        pattern: _PatternText,
        replacement: Annotated[
            str, Field(max_length=2000, description=r"\1 or \g<name> for a group, \\ for \.")
        ],
        flags: _Flags = "",
        limit: Annotated[int, Field(ge=0, description="0 replaces all.")] = 0,
    ) -> dict[str, Any]:
        """Replace what a regular expression matches."""
        program = compiled(pattern, "pattern", flags)
        template = _template(replacement, program)
        pieces: list[str] = []
        size = end = count = 0
        for match in self._matches(program, text):
            begin, stop = match.span()
            put = "".join(
                part if isinstance(part, str) else _group(match, part) for part in template
            )
            pieces += (text[end:begin], put)
            end = stop
            count += 1
            size += len(put)
            if size > _MAX_OUTPUT or count > _MAX_REPLACEMENTS:
                raise invalid("text", "the replacement grows too large; work on smaller parts")
            if count == limit:
                break
        return {"text": "".join((*pieces, text[end:])), "replaced": count}

    def _matches(self, program: Pattern, text: str) -> Iterator[Match]:
        encodable(text, "text")
        if len(text) > MAX_TEXT:
            raise invalid("text", f"text is longer than {MAX_TEXT} characters")
        began = self._now()
        for match in program.finditer(text):
            yield match
            if self._now() - began > _LIMIT_S:
                raise invalid("pattern", "this pattern takes too long on this text; narrow it down")


def compiled(pattern: str, field: str, flags: str = "") -> Pattern:
    """Compile a pattern; raises the refusal of `field`, or of the whole if RE2 is not there."""
    re2 = _engine()
    encodable(pattern, field)
    if len(pattern) > MAX_PATTERN:
        raise invalid(field, f"{field} is longer than {MAX_PATTERN} characters")
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MAX_MEMORY
    try:
        program: Pattern = re2.compile(f"(?{flags}){pattern}" if flags else pattern, options)
    except re2.error as error:
        raise invalid(
            field, f"{field} is no pattern that RE2 can run: {_said(error)}", guidance=_ADVICE
        ) from None
    if program.programsize > _MAX_PROGRAM:
        raise invalid(field, f"{field} is too large once its repeats are written out")
    return program


_ADVICE = "Look-around and back-references do not exist here; match more, and use groups."


def encodable(text: str, field: str) -> None:
    """Refuse text with half of a surrogate pair, which has no bytes to match."""
    try:
        text.encode()
    except UnicodeError:
        raise invalid(field, f"{field} holds half of a character (a lone surrogate)") from None


def _engine() -> Any:
    try:
        return importlib.import_module("re2")
    except ImportError:
        raise failed(
            FailureCode.UNSUPPORTED,
            "regular expressions need google-re2, which is not installed here; it comes with"
            " pip install 'seawall[toolkit]'",
            may_have_run=False,
        ) from None


def _said(error: Exception) -> str:
    said = error.args[0] if error.args else ""
    return (said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said))[:200]


def _shown(match: Match) -> dict[str, Any]:
    start, end = match.span()
    found: dict[str, Any] = {"match": match.group(), "start": start, "end": end}
    if groups := match.groups():
        found["groups"] = list(groups)
    if named := match.groupdict():
        found["named"] = dict(named)
    return found


_REFERENCE = re.compile(r"\\(?:([1-9][0-9]?)|g<([A-Za-z_0-9]{1,64})>|(.))", re.DOTALL)
_ESCAPES = {"\\": "\\", "n": "\n", "t": "\t", "r": "\r"}


def _template(replacement: str, program: Pattern) -> list[str | int]:
    """Split a replacement into text and numbers of groups."""
    parts: list[str | int] = []
    end = 0
    for found in _REFERENCE.finditer(replacement):
        parts += (replacement[end : found.start()], _reference(found, program))
        end = found.end()
    rest = replacement[end:]
    if "\\" in rest:
        raise invalid("replacement", r"replacement ends with a single \; write \\ for one")
    return [*parts, rest]


def _reference(found: re.Match[str], program: Pattern) -> str | int:
    number, name, escape = found.groups()
    if escape is not None:
        if escape not in _ESCAPES:
            raise invalid(
                "replacement", f"replacement has {shown(found.group())}; write \\\\ for one \\"
            )
        return _ESCAPES[escape]
    group = number or name
    index = int(group) if group.isdecimal() else program.groupindex.get(group, -1)
    if not 0 <= index <= program.groups:
        raise invalid("replacement", f"replacement names group {group}, which pattern has not")
    return index


def _group(match: Match, number: int) -> str:
    return match.group(number) or ""
