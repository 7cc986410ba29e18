"""JSONPath as RFC 9535 writes it: from text to a small tree, checked for what cannot be meant.

query       $ or @, then segments
segment     .name  .*  ..name  ..*  [selector, …]  ..[selector, …]
selector    'name'  *  index  start:stop:step  ?test
test        comparisons and existence, joined by || && ! and parentheses; five functions
"""

import re
from typing import Any, NamedTuple

from seawall.toolkit.refusal import invalid, shown

MAX_LENGTH = 1000
_MAX_DEPTH = 20
_MAX_INTEGER = 2**53 - 1


class Name(NamedTuple):
    """The member of an object by this name."""

    name: str


class Wildcard(NamedTuple):
    """All members or elements."""


class Index(NamedTuple):
    """The element at this place, from the end if negative."""

    at: int


class Slice(NamedTuple):
    """Elements from `start` to before `stop`."""

    start: int | None
    stop: int | None
    step: int


class Literal(NamedTuple):
    """A value that stands in the path."""

    value: Any


class Compare(NamedTuple):
    """Two values and one of == != < <= > >=."""

    sign: str
    left: "Comparable"
    right: "Comparable"


class Not(NamedTuple):
    """True if `part` is not."""

    part: "Test"


class Every(NamedTuple):
    """True if all parts are."""

    parts: tuple["Test", ...]


class Any_(NamedTuple):  # noqa: N801  # what the grammar calls it, were it not taken
    """True if one part is."""

    parts: tuple["Test", ...]


class Query(NamedTuple):
    """Segments applied to the root, or to the current node."""

    from_root: bool
    segments: tuple["Segment", ...]

    @property
    def singular(self) -> bool:
        """Whether it finds one node at most, whatever the document."""
        return all(
            not segment.deep
            and len(segment.selectors) == 1
            and isinstance(segment.selectors[0], (Name, Index))
            for segment in self.segments
        )


class Call(NamedTuple):
    """A function of the RFC with its arguments."""

    name: str
    arguments: tuple["Comparable", ...]


class Filter(NamedTuple):
    """All members or elements that pass a test."""

    test: "Test"


Selector = Name | Wildcard | Index | Slice | Filter
Comparable = Literal | Query | Call
Test = Compare | Not | Every | Any_ | Query | Call


class Segment(NamedTuple):
    """Selectors applied to each node, or with `deep` to each and all below it."""

    deep: bool
    selectors: tuple[Selector, ...]


def parse(text: str) -> Query:
    """Read a path; raises the refusal of `path` that says where it stops making sense."""
    if len(text) > MAX_LENGTH:
        raise invalid("path", f"path is longer than {MAX_LENGTH} characters")
    reader = _Reader(text.strip())
    reader.expect("$")
    query = reader.query(from_root=True)
    if reader.place < len(reader.text):
        raise reader.unexpected()
    return query


_BLANK = re.compile(r"[ \t\n\r]*")
_NAME = re.compile(
    r"[A-Za-z_\u0080-\ud7ff\ue000-\U0010ffff][\w\u0080-\ud7ff\ue000-\U0010ffff]*", re.ASCII
)
_INTEGER = re.compile(r"-?[0-9]+")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]{1,3})?")
_SIGN = re.compile(r"==|!=|<=|>=|<|>")
_FUNCTION = re.compile(r"([a-z][a-z_0-9]*)\(")
_ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "/": "/", "\\": "\\"}
_HEX = re.compile(r"[0-9A-Fa-f]{4}")
_WORDS = {"true": True, "false": False, "null": None}

_SIGNATURES = {
    "length": ("value",),
    "count": ("nodes",),
    "value": ("nodes",),
    "match": ("value", "value"),
    "search": ("value", "value"),
}
LOGICAL = frozenset({"match", "search"})
"""Functions that are a test by themselves; the others give a value to compare."""


class _Reader:
    """Walks through the text of a path."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.place = 0
        self._depth = 0

    def unexpected(self, wanted: str = "") -> Exception:
        """Build the refusal of what stands here."""
        found = shown(self.text[self.place : self.place + 12]) if self._more() else "the end"
        advice = f"; expected {wanted}" if wanted else ""
        return invalid(
            "path", f"path is not JSONPath at character {self.place + 1}: {found}{advice}"
        )

    def expect(self, text: str) -> None:
        """Go past `text`, or refuse."""
        if not self._skip(text):
            raise self.unexpected(repr(text))

    def query(self, *, from_root: bool) -> Query:
        """Read segments up to the first thing that is none."""
        segments: list[Segment] = []
        while True:
            before = self.place
            self._blanks()
            if self._skip(".."):
                segments.append(Segment(deep=True, selectors=self._after_dots()))
            elif self._skip("."):
                segments.append(Segment(deep=False, selectors=(self._after_dot(),)))
            elif self._skip("["):
                segments.append(Segment(deep=False, selectors=self._bracketed()))
            else:
                self.place = before
                return Query(from_root, tuple(segments))

    def _after_dots(self) -> tuple[Selector, ...]:
        return self._bracketed() if self._skip("[") else (self._after_dot(),)

    def _after_dot(self) -> Selector:
        if self._skip("*"):
            return Wildcard()
        name = self._match(_NAME)
        if name is None:
            raise self.unexpected("a name or *")
        return Name(name)

    def _bracketed(self) -> tuple[Selector, ...]:
        found = [self._selector()]
        while self._skip_blank(","):
            found.append(self._selector())
        self._blanks()
        self.expect("]")
        return tuple(found)

    def _selector(self) -> Selector:
        self._blanks()
        here = self.text[self.place : self.place + 1]
        if here in ("'", '"') and here:
            return Name(self._string())
        if self._skip("*"):
            return Wildcard()
        if self._skip("?"):
            return Filter(self._test())
        return self._position()

    def _position(self) -> Selector:
        start = self._integer()
        if not self._skip_blank(":"):
            if start is None:
                raise self.unexpected("a name in quotes, *, an index, a slice or ?")
            return Index(start)
        self._blanks()
        stop = self._integer()
        step = None
        if self._skip_blank(":"):
            self._blanks()
            step = self._integer()
        return Slice(start, stop, 1 if step is None else step)

    def _integer(self) -> int | None:
        began = self.place
        text = self._match(_INTEGER)
        if text is None:
            return None
        if (text.lstrip("-")[0] == "0" and text != "0") or abs(int(text)) > _MAX_INTEGER:
            self.place = began
            raise self.unexpected("a whole number without leading zeros")
        return int(text)

    def _string(self) -> str:
        quote = self.text[self.place]
        self.place += 1
        found: list[str] = []
        while self._more():
            character = self.text[self.place]
            if character == quote:
                self.place += 1
                return "".join(found)
            if character < " ":
                break
            self.place += 1
            found.append(self._escaped(quote) if character == "\\" else character)
        raise self.unexpected(f"the closing {quote}")

    def _escaped(self, quote: str) -> str:
        character = self.text[self.place : self.place + 1]
        self.place += 1
        if character == quote or character in _ESCAPES:
            return _ESCAPES.get(character, character)
        if character != "u":
            self.place -= 1
            raise self.unexpected("a character that may be escaped")
        unit = self._unit()
        if 0xD800 <= unit < 0xDC00 and self._skip("\\u"):
            low = self._unit()
            if 0xDC00 <= low < 0xE000:
                return chr(0x10000 + (unit - 0xD800) * 0x400 + low - 0xDC00)
        if 0xD800 <= unit < 0xE000:
            raise self.unexpected("both halves of the character")
        return chr(unit)

    def _unit(self) -> int:
        digits = self._match(_HEX)
        if digits is None:
            raise self.unexpected("four hexadecimal digits")
        return int(digits, 16)

    def _test(self) -> Test:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise invalid("path", f"path nests tests more than {_MAX_DEPTH} levels deep")
        parts = [self._conjunction()]
        while self._skip_blank("||"):
            parts.append(self._conjunction())
        self._depth -= 1
        return parts[0] if len(parts) == 1 else Any_(tuple(parts))

    def _conjunction(self) -> Test:
        parts = [self._basic()]
        while self._skip_blank("&&"):
            parts.append(self._basic())
        return parts[0] if len(parts) == 1 else Every(tuple(parts))

    def _basic(self) -> Test:
        if self._skip_blank("!"):
            self._blanks()
            return Not(self._grouped() if self._skip("(") else self._standing(self._comparable()))
        if self._skip_blank("("):
            return self._grouped()
        left = self._comparable()
        self._blanks()
        sign = self._match(_SIGN)
        if sign is None:
            return self._standing(left)
        right = self._comparable()
        return Compare(sign, self._single(left), self._single(right))

    def _grouped(self) -> Test:
        test = self._test()
        self._blanks()
        self.expect(")")
        return test

    def _standing(self, part: Comparable) -> Test:
        """Let pass what is a test without being compared."""
        if isinstance(part, Query) or (isinstance(part, Call) and part.name in LOGICAL):
            return part
        raise self.unexpected("a comparison")

    def _single(self, part: Comparable) -> Comparable:
        """Let pass what has one value, so that it can be compared."""
        if isinstance(part, Query) and not part.singular:
            raise self.unexpected("a query for one value, such as @.price, in a comparison")
        if isinstance(part, Call) and part.name in LOGICAL:
            raise self.unexpected(f"{part.name}(…) without a comparison")
        return part

    def _comparable(self) -> Comparable:
        self._blanks()
        here = self.text[self.place : self.place + 1]
        if here in ("@", "$") and here:
            self.place += 1
            return self._nested(from_root=here == "$")
        if here in ("'", '"') and here:
            return Literal(self._string())
        if (number := self._number()) is not None:
            return Literal(number)
        if (name := self._match(_FUNCTION)) is not None:
            return self._call(name[:-1])
        word = self._match(_NAME)
        if word in _WORDS:
            return Literal(_WORDS[word])
        self.place -= len(word or "")
        raise self.unexpected("@, $, a value or a function")

    def _nested(self, *, from_root: bool) -> Query:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise invalid("path", f"path nests queries more than {_MAX_DEPTH} levels deep")
        query = self.query(from_root=from_root)
        self._depth -= 1
        return query

    def _number(self) -> int | float | None:
        text = self._match(_NUMBER)
        if text is None:
            return None
        return int(text) if text.lstrip("-").isdecimal() else float(text)

    def _call(self, name: str) -> Call:
        if name not in _SIGNATURES:
            known = ", ".join(_SIGNATURES)
            raise invalid("path", f"path calls {shown(name)}; the functions are {known}")
        arguments: list[Comparable] = []
        for kind in _SIGNATURES[name]:
            if arguments:
                self._blanks()
                self.expect(",")
            argument = self._comparable()
            if kind == "nodes" and not isinstance(argument, Query):
                raise self.unexpected(f"a query in {name}(…)")
            arguments.append(argument if kind == "nodes" else self._single(argument))
        self._blanks()
        self.expect(")")
        return Call(name, tuple(arguments))

    def _more(self) -> bool:
        return self.place < len(self.text)

    def _blanks(self) -> None:
        self._match(_BLANK)

    def _match(self, pattern: re.Pattern[str]) -> str | None:
        found = pattern.match(self.text, self.place)
        if found is None:
            return None
        self.place = found.end()
        return found.group()

    def _skip(self, text: str) -> bool:
        if not self.text.startswith(text, self.place):
            return False
        self.place += len(text)
        return True

    def _skip_blank(self, text: str) -> bool:
        self._blanks()
        return self._skip(text)
