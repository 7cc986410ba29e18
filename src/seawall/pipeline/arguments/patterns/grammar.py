r"""Translate JavaScript's regular expressions for jsonschema-rs.

It reads most of their grammar; what it reads otherwise is rewritten here: escapes that only the
older, flagless grammar allows, word boundaries, empty classes, named groups, surrogate pairs, and
`\d \w \s .`, which it takes for Unicode's where it has to backtrack.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_QUANTIFIER = re.compile(r"(?:[*+?]|\{[0-9]+(?:,[0-9]*)?\})\??")
_OPENING = re.compile(r"\((?:\?(?:[:=!]|<[=!]|<(?P<name>[A-Za-z_$][\w$]*)>))?")
_GROUPS = re.compile(r"\\.|\[(?:\\.|[^\]\\])*\]|(\((?!\?(?!<[^=!])))(?:\?<([^>]*)>)?", re.DOTALL)
_OCTAL = re.compile(r"[0-3]?[0-7]{1,2}")
_HEX = {"x": re.compile(r"[0-9a-fA-F]{2}"), "u": re.compile(r"[0-9a-fA-F]{4}")}
_BRACED = re.compile(r"\{([^{}]+)\}")
_DIGITS = re.compile("0*[0-9a-fA-F]{1,6}")
_TOO_LARGE = 0x110000
_LOW_HALF = re.compile(r"\\u(d[c-f][0-9a-f]{2})", re.IGNORECASE)
_SYNTAX = frozenset("^$\\.*+?()[]{}|/")
_SETS = {
    "d": "0-9",
    "D": r"\u{0}-\u{2F}\u{3A}-\u{10FFFF}",
    "w": "0-9A-Z_a-z",
    "W": r"\u{0}-\u{2F}\u{3A}-\u{40}\u{5B}-\u{5E}\u{60}\u{7B}-\u{10FFFF}",
    "s": r"\u{9}-\u{D}\u{20}\u{A0}\u{1680}\u{2000}-\u{200A}\u{2028}\u{2029}\u{202F}\u{205F}"
    r"\u{3000}\u{FEFF}",
    "S": r"\u{0}-\u{8}\u{E}-\u{1F}\u{21}-\u{9F}\u{A1}-\u{167F}\u{1681}-\u{1FFF}\u{200B}-\u{2027}"
    r"\u{202A}-\u{202E}\u{2030}-\u{205E}\u{2060}-\u{2FFF}\u{3001}-\u{FEFE}\u{FF00}-\u{10FFFF}",
}
_IN_CLASS = {"b": 8, "-": ord("-")}
_CONTROLS = {"f": 12, "n": 10, "r": 13, "t": 9, "v": 11}
_NEVER, _ANY, _DOT = r"[^\s\S]", r"[\s\S]", r"[^\u{A}\u{D}\u{2028}\u{2029}]"
_EDGE = "(?:(?<=[{w}])(?![{w}])|(?<![{w}])(?=[{w}]))".format(w=_SETS["w"])
_NO_EDGE = "(?:(?<=[{w}])(?=[{w}])|(?<![{w}])(?![{w}]))".format(w=_SETS["w"])


class PatternError(ValueError):
    """A pattern that no grammar here can read."""


def translated(source: str, *, unicode: bool) -> str:
    """Rewrite a pattern, read by the grammar of the `u` flag or by the one without it."""
    return _Translation(source, unicode=unicode).result()


class _Translation:
    """One walk over a pattern."""

    def __init__(self, source: str, *, unicode: bool) -> None:
        self._source = source
        self._unicode = unicode
        self._at = 0
        self._out: list[str] = []
        self._readers: dict[str, Callable[[str], tuple[str, int | str]]] = {
            "x": self._code,
            "u": self._code,
            "c": self._control,
            **dict.fromkeys("01234567", self._zero),
            **(dict.fromkeys("pP", self._property) if unicode else {}),
        }
        groups = [found[2] for found in _GROUPS.finditer(source) if found[1]]
        self._count = len(groups)
        self._names = {name: number for number, name in enumerate(groups, 1) if name}

    def result(self) -> str:
        repeatable = False
        while self._at < len(self._source):
            repeatable = self._step(repeatable)
        return "".join(self._out)

    def _step(self, repeatable: bool) -> bool:  # noqa: FBT001  # a state, not an option
        """Translate one token; say whether a quantifier may follow it."""
        quantifier = _QUANTIFIER.match(self._source, self._at)
        if quantifier:
            if not repeatable:
                raise PatternError("nothing to repeat")
            self._copy(quantifier[0])
            return False
        char = self._source[self._at]
        if char == "(":
            return self._open()
        if char == "[":
            self._class()
        elif char == "\\":
            return self._escape()
        elif char in "^$|":
            self._copy(char)
            return False
        elif char in "{}]":
            self._refuse_in_unicode()
            self._copy(char, "\\" + char)
        else:
            self._copy(char, _DOT if char == "." else None)
        return True

    def _copy(self, text: str, emitted: str | None = None) -> None:
        self._at += len(text)
        self._out.append(text if emitted is None else emitted)

    def _refuse_in_unicode(self) -> None:
        if self._unicode:
            raise PatternError("not allowed with the u flag")

    def _open(self) -> bool:
        found = _OPENING.match(self._source, self._at)
        if not found or (found[0] == "(" and self._source.startswith("(?", self._at)):
            raise PatternError("unknown group")
        self._copy(found[0], "(" if found["name"] else None)
        return False

    def _escape(self) -> bool:
        """Translate an escape outside of a class."""
        following = self._source[self._at + 1 : self._at + 2]
        if not following:
            raise PatternError("a backslash at the end")
        if following in "bB":
            self._copy("\\b", _EDGE if following == "b" else _NO_EDGE)
            return False
        if following in "123456789":
            self._reference()
        elif following == "k" and (self._unicode or self._names):
            self._named_reference()
        else:
            text, meaning = self._shared_escape(following)
            self._copy(text, f"[{meaning}]" if isinstance(meaning, str) else _outside(meaning))
        return True

    def _reference(self) -> None:
        r"""Translate `\1`: a group that exists, else (without the u flag) an octal escape."""
        found = re.compile("[0-9]+").match(self._source, self._at + 1)
        assert found is not None  # noqa: S101  # a digit was seen
        if int(found[0][:4]) <= self._count:
            self._copy("\\" + found[0], f"(?:\\{found[0]})")
        else:
            text, code = self._octal()
            self._copy(text, _outside(code))

    def _named_reference(self) -> None:
        found = re.compile("<([^>]*)>").match(self._source, self._at + 2)
        if not found or found[1] not in self._names:
            raise PatternError("a reference to no group")
        self._copy("\\k" + found[0], f"(?:\\{self._names[found[1]]})")

    def _octal(self) -> tuple[str, int]:
        self._refuse_in_unicode()
        found = _OCTAL.match(self._source, self._at + 1)
        if not found:
            digit = self._source[self._at + 1]
            return "\\" + digit, ord(digit)
        return "\\" + found[0], int(found[0], 8)

    def _shared_escape(self, following: str) -> tuple[str, int | str]:
        """Read an escape that means the same in and out of a class: its text, and what it is.

        That is a code point, or the text of a set of characters.
        """
        if following in _SETS:
            return "\\" + following, _SETS[following]
        if following in _CONTROLS:
            return "\\" + following, _CONTROLS[following]
        reader = self._readers.get(following)
        if reader is not None:
            return reader(following)
        if following not in _SYNTAX:
            self._refuse_in_unicode()
        return "\\" + following, ord(following)

    def _zero(self, following: str) -> tuple[str, int]:
        after = self._source[self._at + 2 : self._at + 3]
        if following == "0" and not after.isdigit():
            return "\\0", 0
        return self._octal()

    def _code(self, following: str) -> tuple[str, int]:
        start = self._at + 2
        braced = _BRACED.match(self._source, start) if following == "u" and self._unicode else None
        if braced:
            return "\\u" + braced[0], _code_point(braced[1])
        found = _HEX[following].match(self._source, start)
        if not found:
            self._refuse_in_unicode()
            return "\\" + following, ord(following)
        code = int(found[0], 16)
        low = _LOW_HALF.match(self._source, found.end()) if 0xD800 <= code < 0xDC00 else None
        if low:
            pair = 0x10000 + ((code & 0x3FF) << 10) + (int(low[1], 16) & 0x3FF)
            return f"\\u{found[0]}{low[0]}", pair
        return f"\\{following}{found[0]}", code

    def _property(self, following: str) -> tuple[str, str]:
        found = _BRACED.match(self._source, self._at + 2)
        if not found:
            raise PatternError("a property without its name")
        return f"\\{following}{found[0]}", f"\\{following}{found[0]}"

    def _control(self, _: str) -> tuple[str, int]:
        letter = self._source[self._at + 2 : self._at + 3]
        if letter.isascii() and letter.isalpha():
            return "\\c" + letter, ord(letter) % 32
        self._refuse_in_unicode()
        return "\\", ord("\\")

    def _class(self) -> None:
        """Translate `[…]`; the closing bracket right after the opening one makes it empty."""
        source = self._source
        negated = source.startswith("[^", self._at)
        self._at += 2 if negated else 1
        parts: list[str] = []
        while not source.startswith("]", self._at):
            parts.append(self._range())
        self._at += 1
        members = "".join(parts)
        if members:
            self._out.append(f"[{'^' if negated else ''}{members}]")
        else:
            self._out.append(_ANY if negated else _NEVER)

    def _range(self) -> str:
        """Translate one member of a class, or two with a dash between."""
        low = self._member()
        dash = self._source.startswith("-", self._at)
        if not dash or self._source.startswith("-]", self._at):
            return low if isinstance(low, str) else _span(low, low)
        self._at += 1
        high = self._member()
        if isinstance(low, int) and isinstance(high, int):
            return _span(low, high)
        self._refuse_in_unicode()
        return "".join(m if isinstance(m, str) else _span(m, m) for m in (low, ord("-"), high))

    def _member(self) -> int | str:
        """Read one character of a class, as its code point, or one set, as its text."""
        char = self._source[self._at : self._at + 1]
        if not char:
            raise PatternError("a class without its end")
        if char != "\\":
            self._at += 1
            return ord(char)
        following = self._source[self._at + 1 : self._at + 2]
        if not following:
            raise PatternError("a backslash at the end")
        if following in _IN_CLASS:
            self._at += 2
            return _IN_CLASS[following]
        text, meaning = self._shared_escape(following)
        self._at += len(text)
        return meaning


def _code_point(digits: str) -> int:
    code = int(digits, 16) if _DIGITS.fullmatch(digits) else _TOO_LARGE
    if code >= _TOO_LARGE:
        raise PatternError("no code point")
    return code


def _outside(code: int) -> str:
    """Write one character; half of a surrogate pair never stands alone in valid text."""
    if 0xD800 <= code < 0xE000:
        return _NEVER
    return chr(code) if chr(code).isalnum() else f"\\u{{{code:X}}}"


def _span(low: int, high: int) -> str:
    """Write a range of a class, without the surrogates it may hold."""
    if low > high:
        raise PatternError("a range out of order")
    if 0xD800 <= low < 0xE000:
        low = 0xE000
    if 0xD800 <= high < 0xE000:
        high = 0xD7FF
    if low > high:
        return ""
    return _outside(low) if low == high else f"{_outside(low)}-{_outside(high)}"
