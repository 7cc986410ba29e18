"""Read argument text that is not quite JSON, without guessing.

One pass over tokens with an explicit stack: linear in time, bounded in depth. What it
takes beyond JSON has one reading only: raw control characters inside strings, a comma
before a closing bracket, and Python's spelling of the same values. Text that ends too
early is never completed and of several values none is chosen.
"""

from __future__ import annotations

import json
import math
import re
from typing import TYPE_CHECKING, Any, Literal

from seawall.pipeline.arguments.reading.floats import LostDigits, float_of

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_BYTES = 1 << 20
"""Argument text, as UTF-8, may be this long."""
MAX_DEPTH = 128
"""Objects and arrays may stand in each other this deep."""
MAX_DIGITS = 4096
"""A number may have this many characters; the rest of the world is slow beyond."""
MAX_VALUES = 20_000
"""Values, those inside of others included. They cost, not the bytes: one text may be a whole file,
but each value is looked at, mended and checked for itself."""
MAX_READ_SLOWLY = 10_000
"""Values in text that is not strict JSON, which is read token by token."""

TOO_MANY = (
    f"too many values: the arguments may hold {MAX_VALUES:,} as strict JSON, {MAX_READ_SLOWLY:,}"
    " otherwise; send less, or in several calls, or large data as one text"
)

Reason = Literal[
    "arguments_not_json",
    "arguments_not_object",
    "arguments_truncated",
    "argument_invalid",
    "too_deep",
    "too_large",
]


class ArgumentTextFault(ValueError):  # noqa: N818  # a fault of the text, not of the program
    """Argument text that has no single meaning; says why in words for a model."""

    def __init__(self, reason: Reason, message: str) -> None:
        super().__init__(message)
        self.reason: Reason = reason
        self.message = message


PYTHON = "Python literal"
CONTROL = "raw control character"
COMMA = "trailing comma"

_SPACE = re.compile(r"[ \t\n\r]*")
_QUOTE = re.compile(r"([rRuU]?)('''|\"\"\"|'|\")")
_BODY = {
    '"': re.compile(r'[^"\\]*+(?>\\.[^"\\]*+)*+', re.DOTALL),
    "'": re.compile(r"[^'\\]*+(?>\\.[^'\\]*+)*+", re.DOTALL),
    '"""': re.compile(r'(?>[^"\\]|\\.|"(?!""))*+', re.DOTALL),
    "'''": re.compile(r"(?>[^'\\]|\\.|'(?!''))*+", re.DOTALL),
}
_RAW = re.compile(r"[\x00-\x1f]")
_HALF = re.compile("[\ud800-\udfff]")
_ESCAPE = re.compile(
    r"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|U([0-9a-fA-F]{8})|([0-7]{1,3})|(.))", re.DOTALL
)
_PLAIN = {'"': '"', "\\": "\\", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_unquoted = json.JSONDecoder(strict=False).decode
_PYTHONS = {"a": "\a", "v": "\v"}

_NUMBER = re.compile(r"[-+]?(?:[0-9]++\.?[0-9]*+|\.[0-9]++)(?:[eE][-+]?[0-9]++)?")
_JSON_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_NUMBER_START = re.compile(r"[-+]?(?:[0-9]++\.?[0-9]*+)?(?:[eE][-+]?)?\Z")
_WORD = re.compile(r"[-+]?[^\W\d]\w*")

_JSON_WORDS = {"true": True, "false": False, "null": None}
_PYTHON_WORDS = {"True": True, "False": False, "None": None}
_NOT_FINITE = {"nan", "inf", "infinity"}
_CLOSERS = {dict: "}", list: "]"}


class Reader:
    """Reads one text once.

    With `repair` off the same reader takes JSON only, and says precisely why it stopped.
    """

    def __init__(
        self,
        text: str,
        *,
        repair: bool,
        depth: int = MAX_DEPTH,
        floats: Callable[[str], int | float | str] = float_of,
    ) -> None:
        self.repaired: dict[str, None] = {}
        self._floats = floats
        self._text = text
        self._at = 0
        self._repair = repair
        self._depth = depth
        self._values = 0
        self._single_quotes = False
        self._python_words = False
        self._python_escape: int | None = None
        self._slash_escape: int | None = None

    def document(self) -> Any:
        """Give the one value that the whole text is."""
        root = self._tree()
        self._skip_space()
        if self._at < len(self._text):
            raise self._more_text()
        self._check_dialect()
        return root

    def _tree(self) -> Any:
        root: Any = None
        stack: list[dict[str, Any] | list[Any]] = []
        while True:
            value, opened = self._member(stack[-1]) if stack else self._value()
            if not stack:
                root = value
            if opened:
                self._push(stack, value)
            while stack and not self._another(stack[-1], first=opened):
                stack.pop()
                opened = False
            if not stack:
                return root

    def _push(self, stack: list[dict[str, Any] | list[Any]], container: Any) -> None:
        if len(stack) >= self._depth:
            raise ArgumentTextFault(
                "too_deep",
                f"the arguments are nested deeper than {self._depth} levels;"
                " send a flatter structure",
            )
        stack.append(container)

    def _member(self, container: dict[str, Any] | list[Any]) -> tuple[Any, bool]:
        if isinstance(container, list):
            value, opened = self._value()
            container.append(value)
            return value, opened
        key = self._key()
        if key in container:
            raise ArgumentTextFault(
                "argument_invalid",
                f"the key {shown(key)} appears twice in one object; send each key once",
            )
        value, opened = self._value()
        container[key] = value
        return value, opened

    def _another(self, container: dict[str, Any] | list[Any], *, first: bool) -> bool:
        """Whether a further member follows; if not, the closing bracket has been read."""
        closer = _CLOSERS[type(container)]
        self._skip_space()
        if self._taken(closer):
            return False
        if first:
            return self._go_on()
        comma = self._at
        if not self._taken(","):
            raise self._expected(f"',' or '{closer}'")
        self._skip_space()
        if self._taken(closer):
            self._note(COMMA, comma)
            return False
        return self._go_on()

    def _go_on(self) -> bool:
        if self._at == len(self._text):
            raise self._cut_off("inside an object or array")
        return True

    def _key(self) -> str:
        self._skip_space()
        quote = _QUOTE.match(self._text, self._at)
        if quote is None:
            raise self._expected("a key in double quotes")
        key = self._string(quote)
        self._skip_space()
        if not self._taken(":"):
            raise self._expected("':' after the key")
        return key

    def _value(self) -> tuple[Any, bool]:
        self._values += 1
        if self._values > MAX_READ_SLOWLY:
            raise ArgumentTextFault("too_large", TOO_MANY)
        self._skip_space()
        start = self._text[self._at : self._at + 1]
        if start == "{":
            self._at += 1
            return {}, True
        if start == "[":
            self._at += 1
            return [], True
        quote = _QUOTE.match(self._text, self._at)
        if quote is not None:
            return self._string(quote), False
        word = _WORD.match(self._text, self._at)
        if word is not None:
            return self._word(word.group()), False
        return self._number(), False

    def _word(self, word: str) -> bool | None:
        start = self._at
        self._at += len(word)
        if word in _JSON_WORDS:
            return _JSON_WORDS[word]
        if word in _PYTHON_WORDS:
            self._note(PYTHON, start)
            self._python_words = True
            return _PYTHON_WORDS[word]
        if word.lstrip("+-").lower() in _NOT_FINITE:
            raise ArgumentTextFault(
                "argument_invalid",
                f"NaN and Infinity are not JSON numbers ({self._where(start)});"
                " send a finite number or leave the field out",
            )
        if self._at == len(self._text) and _begins_a_word(word):
            raise self._cut_off("inside a value")
        raise self._not_json("a bare word is not a value; put text in double quotes", start)

    def _number(self) -> int | float | str:
        found = _NUMBER.match(self._text, self._at)
        if found is None:
            if _NUMBER_START.match(self._text, self._at):
                raise self._cut_off("where a value was expected")
            raise self._expected("a value")
        start, token = self._at, found.group()
        self._at = found.end()
        follows = self._text[self._at : self._at + 1]
        if follows.isalnum() or follows in {"_", "."}:
            if _NUMBER_START.match(self._text, start):
                raise self._cut_off("inside a number")
            raise self._not_json("this is no plain number", start)
        return self._numeral(token, start)

    def _numeral(self, token: str, start: int) -> int | float | str:
        if len(token) > MAX_DIGITS:
            raise _too_many_digits()
        digits = token.lstrip("+-")
        if len(digits) > 1 and digits[0] == "0" and digits[1].isdigit():
            raise self._not_json("a number must not begin with 0", start)
        if not _JSON_NUMBER.fullmatch(token):
            if self._at == len(self._text):
                raise self._cut_off("inside a number")
            self._note(PYTHON, start)
        try:
            number = int(token) if digits.isdigit() else self._floats(token)
        except LostDigits:
            raise self._lost(token, start) from None
        except ValueError:  # a process may allow fewer digits than we do
            raise _too_many_digits() from None
        return number

    def _lost(self, token: str, start: int) -> ArgumentTextFault:
        if math.isinf(float(token)):
            said = f"a number is too large to be represented ({self._where(start)})"
        else:
            said = (
                f"a number has more digits than can be kept ({self._where(start)}); send it with"
                " fewer, or as a text if that is accepted"
            )
        return ArgumentTextFault("argument_invalid", said)

    def _string(self, opening: re.Match[str]) -> str:
        prefix, quote = opening.groups()
        body = self._body(opening, quote)
        if prefix or quote != '"':
            self._note(PYTHON, opening.start())
            self._single_quotes = True
        if _RAW.search(body):
            self._control(body, quote, opening.start())
        if "\\" in body and prefix not in {"r", "R"}:
            body = self._unescaped(body, quote, opening.end())
        if _HALF.search(body):
            body = _whole(body)
        return body

    def _body(self, opening: re.Match[str], quote: str) -> str:
        found = _BODY[quote].match(self._text, opening.end())
        end = found.end() if found else len(self._text)
        if not self._text.startswith(quote, end):
            # An empty '' or "" that only looked like the start of a long string.
            raise self._cut_off("inside a text", opening.start())
        self._at = end + len(quote)
        return self._text[opening.end() : end]

    def _control(self, body: str, quote: str, start: int) -> None:
        if len(quote) == 3 and not _RAW.search(body.replace("\n", "").replace("\t", "")):
            return
        self._note(CONTROL, start)

    def _unescaped(self, body: str, quote: str, start: int) -> str:
        if quote == '"' and "\\/" not in body:  # what that means is not yet known
            try:
                return str(_unquoted(f'"{body}"'))
            except json.JSONDecodeError:
                pass

        def replaced(found: re.Match[str]) -> str:
            four, two, eight, octal, other = found.groups()
            if four is not None:
                return chr(int(four, 16))
            at = start + found.start()
            if other is not None:
                return self._simple(other, quote, at)
            self._python_only(at)
            code = int(octal, 8) if octal is not None else int(two or eight, 16)
            if code > 0x10FFFF:
                raise self._not_json("an escape names no character", at)
            return chr(code)

        return _ESCAPE.sub(replaced, body)

    def _simple(self, letter: str, quote: str, at: int) -> str:
        if letter in _PLAIN:
            return _PLAIN[letter]
        if letter == "'":
            self._note(PYTHON, at)
            return "'"
        if letter == "/" and quote == '"':
            self._slash_escape = at
            return "/"
        if letter in _PYTHONS:
            self._python_only(at)
            return _PYTHONS[letter]
        raise self._not_json(
            "a backslash in a text is followed by a character it does not go with;"
            " write two backslashes to send one",
            at,
        )

    def _python_only(self, at: int) -> None:
        self._note(PYTHON, at)
        self._python_escape = at

    def _check_dialect(self) -> None:
        """Refuse escapes that read differently in the two languages the text may be in."""
        python = self._single_quotes or self._python_words
        if self._python_escape is not None and not python:
            raise self._not_json("an escape is not one of JSON's", self._python_escape)
        if self._slash_escape is not None and self._single_quotes:
            raise self._not_json(r"the escape \/ is not one of Python's", self._slash_escape)

    def _skip_space(self) -> None:
        found = _SPACE.match(self._text, self._at)
        self._at = found.end()  # type: ignore[union-attr]  # no space at all matches too

    def _taken(self, character: str) -> bool:
        if self._text.startswith(character, self._at):
            self._at += 1
            return True
        return False

    def _note(self, what: str, at: int) -> None:
        if not self._repair:
            raise self._not_json(f"{what}: only strict JSON is taken", at)
        self.repaired[what] = None

    def _where(self, at: int) -> str:
        line = self._text.count("\n", 0, at) + 1
        column = at - self._text.rfind("\n", 0, at)
        return f"line {line}, column {column}"

    def _not_json(self, what: str, at: int) -> ArgumentTextFault:
        return ArgumentTextFault(
            "arguments_not_json",
            f"the arguments are not JSON at {self._where(at)}: {what}",
        )

    def _expected(self, what: str) -> ArgumentTextFault:
        if self._at >= len(self._text):
            return self._cut_off(f"where {what} was expected")
        return self._not_json(f"expected {what}", self._at)

    def _cut_off(self, where: str, at: int | None = None) -> ArgumentTextFault:
        place = f", which began at {self._where(at)}" if at is not None else ""
        return ArgumentTextFault(
            "arguments_truncated",
            f"the argument text is incomplete: it was cut off {where}{place};"
            " send all of it again, shorter if need be",
        )

    def _more_text(self) -> ArgumentTextFault:
        if self._text[self._at] in "{[":
            what = "a second value follows the first; send one object in one call"
        else:
            what = "there is text after the value; send the object alone"
        return self._not_json(what, self._at)


def shown(key: str) -> str:
    """Quote a key for a message, cut to a length a reader takes."""
    short = key if len(key) <= 60 else f"{key[:59]}…"
    return ascii(short)


def _begins_a_word(word: str) -> bool:
    return any(full.startswith(word) for full in (*_JSON_WORDS, *_PYTHON_WORDS))


def _too_many_digits() -> ArgumentTextFault:
    return ArgumentTextFault(
        "too_large", f"a number has more than {MAX_DIGITS} digits; send it as a text"
    )


def _whole(text: str) -> str:
    """Join the halves of characters that were escaped one by one; a lone half is refused."""
    try:
        return text.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        raise ArgumentTextFault(
            "argument_invalid",
            "a text holds half of a character (a lone surrogate); send the whole character",
        ) from None
