"""`calculate`: arithmetic on text, by a parser of our own.

Nothing is handed to Python to evaluate: the only names are those of two tables below, there are
no attributes, and every intermediate value is bounded, so no expression can run long.
"""

import math
import operator
import re
from collections.abc import Callable, Sequence
from decimal import Context, Decimal
from fractions import Fraction
from typing import Annotated, Any

from pydantic import Field

from seawall.contract.failure import ToolFailed
from seawall.toolkit.numbers import MAX_BITS, MAX_DIGITS, decimal_text, exponent_of
from seawall.toolkit.refusal import invalid, shown

Number = Fraction | float
"""A fraction as long as the value is exact, a float from the first function that is not."""

MAX_LENGTH = 1000
_MAX_DEPTH = 50
_MAX_ARGUMENTS = 100


def calculate(
    expression: Annotated[
        str,
        Field(
            min_length=1,
            max_length=MAX_LENGTH,
            description="Such as (12.5 + 3) * 2 ** 10 or round(sqrt(2), 3). No variables.",
        ),
    ],
) -> dict[str, Any]:
    """Work out an arithmetic expression exactly where that is possible: 0.1 + 0.2 is 0.3.

    Operators: + - * / // % ** and parentheses, with the precedence of Python. Functions: abs, sqrt,
    cbrt, round, floor, ceil, trunc, min, max, sum, mean, exp, ln, log (natural, or log(x, base)),
    log2, log10, sin, cos, tan, asin, acos, atan, atan2, sinh, cosh, tanh, degrees, radians, hypot,
    factorial, comb, gcd, lcm, sign. Constants: pi, e, tau. Angles are in radians; round takes the
    even neighbour of a half.
    """
    if len(expression) > MAX_LENGTH:
        raise _refusal(f"the expression is longer than {MAX_LENGTH} characters")
    return _answer(evaluate(expression))


def evaluate(expression: str) -> Number:
    """Work out an expression; raises the refusal that says what is wrong, and where."""
    reader = _Reader(_tokens(expression))
    value = reader.expression(0)
    reader.end()
    return value


def _answer(value: Number) -> dict[str, Any]:
    if isinstance(value, float):
        return {"result": _float_text(value), "exact": False}
    text, exact = decimal_text(value, digits=15)
    if exact:
        return {"result": text, "exact": True}
    answer = {"result": text, "exact": False}
    # Past a few dozen digits the fraction tells a reader nothing.
    return answer if value.denominator > 10**20 else {**answer, "fraction": str(value)}


def _float_text(value: float) -> str:
    """Fifteen digits are what a float holds for sure; the rest is noise of the last bits."""
    rounded = Context(prec=15).create_decimal_from_float(value + 0.0)
    if rounded == 0:
        return "0"
    if -7 <= rounded.adjusted() < 21:
        return format(_trimmed(rounded), "f")
    return str(rounded.normalize()).lower()


def _trimmed(number: Decimal) -> Decimal:
    whole = number.to_integral_value()
    return whole if whole == number else number.normalize()


class _Token:
    """A piece of the expression and the place, from 1, where it begins."""

    __slots__ = ("place", "text")

    def __init__(self, text: str, place: int) -> None:
        self.text = text
        self.place = place


_PIECE = re.compile(
    r"\s*(?:((?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[A-Za-z_][A-Za-z_0-9]*"
    r"|\*\*|//|[-+*/%(),])|\Z)"
)
_SPELLINGS = str.maketrans(
    {"\N{MULTIPLICATION SIGN}": "*", "\N{DIVISION SIGN}": "/", "\N{MINUS SIGN}": "-"}
)


def _tokens(expression: str) -> list[_Token]:
    text = expression.translate(_SPELLINGS)
    found: list[_Token] = []
    place = 0
    while place < len(text):
        piece = _PIECE.match(text, place)
        if piece is None:
            raise _stray(text, place)
        if piece.group(1):
            found.append(_Token(piece.group(1), piece.start(1) + 1))
        place = piece.end()
    return found


def _stray(text: str, place: int) -> ToolFailed:
    place += len(text[place:]) - len(text[place:].lstrip())
    advice = "; write ** for a power" if text[place] == "^" else ""
    return _refusal(f"{text[place]!r} at character {place + 1} is not understood{advice}")


_BINDING = {"+": 10, "-": 10, "*": 20, "/": 20, "//": 20, "%": 20, "**": 40}
_SIGN_BINDING = 30
"""Looser than a power, so that -2 ** 2 is -4; tighter than a product."""


class _Reader:
    """Reads tokens from left to right and works out what they say, by binding strength."""

    def __init__(self, tokens: Sequence[_Token]) -> None:
        self._tokens = tokens
        self._next = 0
        self._depth = 0

    def expression(self, floor: int) -> Number:
        """Read as far as operators bind at least as strongly as `floor`."""
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise _refusal(f"the expression is nested more than {_MAX_DEPTH} levels deep")
        left = self._operand()
        while (sign := self._peek()) in _BINDING and _BINDING[sign] >= floor:
            token = self._take()
            # A power groups to the right, everything else to the left.
            right = self.expression(_BINDING[sign] + (sign != "**"))
            left = _guarded(token, _OPERATORS[sign], (left, right))
        self._depth -= 1
        return left

    def end(self) -> None:
        """Refuse what is left over."""
        if self._next == len(self._tokens):
            return
        token = self._tokens[self._next]
        advice = {
            ",": "; a comma stands only between the arguments of a function, write 1000 for 1,000",
            "(": "; write * for a product",
            ")": "; it closes nothing",
        }.get(token.text, "; an operator is missing before it")
        raise _refusal(f"{shown(token.text)} at character {token.place} is not expected{advice}")

    def _peek(self) -> str:
        return self._tokens[self._next].text if self._next < len(self._tokens) else ""

    def _take(self) -> _Token:
        if self._next == len(self._tokens):
            raise _refusal("the expression ends where a number is expected")
        self._next += 1
        return self._tokens[self._next - 1]

    def _operand(self) -> Number:
        token = self._take()
        text = token.text
        if text[0] in "0123456789.":
            return _literal(token)
        if text[0].isalpha() or text[0] == "_":
            return self._named(token)
        if text in ("-", "+"):
            value = self.expression(_SIGN_BINDING)
            return -value if text == "-" else value
        if text == "(":
            value = self.expression(0)
            self._close(token)
            return value
        raise _refusal(f"{text!r} at character {token.place} stands where a number is expected")

    def _named(self, token: _Token) -> Number:
        name = token.text.lower()
        if name in _FUNCTIONS:
            return self._call(token, name)
        if name in _CONSTANTS:
            return _CONSTANTS[name]
        known = ", ".join([*_FUNCTIONS, *_CONSTANTS])
        raise _refusal(f"{shown(token.text)} at character {token.place} is unknown; known: {known}")

    def _call(self, token: _Token, name: str) -> Number:
        if self._peek() != "(":
            raise _refusal(f"{name} at character {token.place} is a function: write {name}(…)")
        arguments = self._arguments()
        function, least, most = _FUNCTIONS[name]
        if not least <= len(arguments) <= most:
            wanted = str(least) if least == most else f"{least} to {most}"
            raise _refusal(
                f"{name} at character {token.place} takes {wanted} arguments, not {len(arguments)}"
            )
        return _guarded(token, function, arguments)

    def _arguments(self) -> list[Number]:
        opening = self._take()
        found: list[Number] = []
        if self._peek() == ")":
            self._take()
            return found
        found.append(self.expression(0))
        while self._peek() == ",":
            self._take()
            found.append(self.expression(0))
        self._close(opening)
        return found

    def _close(self, opening: _Token) -> None:
        if self._peek() != ")":
            raise _refusal(f"the parenthesis at character {opening.place} is not closed")
        self._take()


def _literal(token: _Token) -> Fraction:
    if len(token.text) > MAX_DIGITS or exponent_of(token.text[: MAX_DIGITS + 1]) > MAX_DIGITS:
        raise _refusal(f"the number at character {token.place} has more than {MAX_DIGITS} digits")
    return Fraction(token.text)


def _guarded(token: _Token, function: Callable[..., Number], arguments: Sequence[Number]) -> Number:
    """Apply one operator or function, and refuse what has no finite value of bearable size."""
    where = f"{token.text} at character {token.place}"
    try:
        value = function(*arguments)
    except ZeroDivisionError:
        raise _refusal(f"{where} divides by zero") from None
    except OverflowError:
        raise _refusal(f"the result of {where} is too large") from None
    except ValueError as error:
        raise _refusal(f"{where}: {_reason(error)}") from None
    if isinstance(value, float):
        if not math.isfinite(value):
            raise _refusal(f"the result of {where} is not a finite number")
        return value
    value = Fraction(value)
    if max(value.numerator.bit_length(), value.denominator.bit_length()) > MAX_BITS:
        raise _refusal(f"the result of {where} has more than {MAX_DIGITS} digits")
    return value


def _reason(error: ValueError) -> str:
    text = str(error)
    return text if isinstance(error, _NoValueError) else f"it has no value there ({text})"


class _NoValueError(ValueError):
    """What a function below refuses, in words for the reader."""


def _refusal(message: str) -> ToolFailed:
    return invalid("expression", message)


def _power(base: Number, exponent: Number) -> Number:
    if isinstance(exponent, Fraction) and exponent.denominator == 1:
        return _whole_power(base, exponent.numerator)
    if base < 0:
        raise _NoValueError("a negative number has no real power that is not whole")
    return math.pow(base, exponent)


def _whole_power(base: Number, exponent: int) -> Number:
    if isinstance(base, float):
        return math.pow(base, exponent)
    if base in (-1, 0, 1):
        # Only sign and parity count, however large the exponent is.
        return base ** (exponent if abs(exponent) < 2 else _sign_of(exponent) * (2 + exponent % 2))
    bits = max(base.numerator.bit_length(), base.denominator.bit_length())
    if (bits - 1) * abs(exponent) > MAX_BITS:
        raise OverflowError
    return base**exponent


def _square_root(value: Number) -> Number:
    if isinstance(value, Fraction) and value >= 0:
        top, bottom = math.isqrt(value.numerator), math.isqrt(value.denominator)
        if top * top == value.numerator and bottom * bottom == value.denominator:
            return Fraction(top, bottom)
    return math.sqrt(value)


def _logarithm(value: Number, base: Number | None = None) -> Number:
    if base is None:
        return _natural_logarithm(value)
    if base == 10:
        return math.log10(value)
    if base == 2:
        return math.log2(value)
    return _natural_logarithm(value) / _natural_logarithm(base)


def _natural_logarithm(value: Number) -> float:
    if isinstance(value, Fraction) and value.denominator == 1:
        # Whole numbers may be larger than any float.
        return math.log(value.numerator)
    return math.log(value)


def _rounded(value: Number, places: Number = Fraction(0)) -> Number:
    digits = _whole(places)
    if abs(digits) > MAX_DIGITS:
        raise _NoValueError(f"it rounds to {MAX_DIGITS} places at most")
    if isinstance(value, float) and digits:
        return round(value, digits)
    return Fraction(round(Fraction(value), digits))


def _sign_of(value: Number) -> int:
    return (value > 0) - (value < 0)


def _sign(value: Number) -> Number:
    return Fraction(_sign_of(value))


def _mean(*values: Number) -> Number:
    return _total(*values) / len(values)


def _total(*values: Number) -> Number:
    total: Number = Fraction(0)
    for value in values:
        total += value
    return total


def _whole(value: Number) -> int:
    if isinstance(value, float) or value.denominator != 1:
        raise _NoValueError("it takes whole numbers only")
    return value.numerator


def _counting(value: Number, bound: int) -> int:
    number = _whole(value)
    if not 0 <= number <= bound:
        raise _NoValueError(f"it takes whole numbers from 0 to {bound}")
    return number


def _factorial(value: Number) -> Number:
    return Fraction(math.factorial(_counting(value, 449)))


def _combinations(total: Number, chosen: Number) -> Number:
    return Fraction(math.comb(_counting(total, 3000), _counting(chosen, 3000)))


def _divisor(*values: Number) -> Number:
    return Fraction(math.gcd(*map(_whole, values)))


def _multiple(*values: Number) -> Number:
    product = 1
    for value in values:
        product = math.lcm(product, _whole(value))
        if product.bit_length() > MAX_BITS:
            raise OverflowError
    return Fraction(product)


_OPERATORS: dict[str, Callable[..., Number]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
    "**": _power,
}

_FUNCTIONS: dict[str, tuple[Callable[..., Number], int, int]] = {
    "abs": (abs, 1, 1),
    "sqrt": (_square_root, 1, 1),
    "cbrt": (math.cbrt, 1, 1),
    "round": (_rounded, 1, 2),
    "floor": (math.floor, 1, 1),
    "ceil": (math.ceil, 1, 1),
    "trunc": (math.trunc, 1, 1),
    "min": (lambda *values: min(values), 1, _MAX_ARGUMENTS),
    "max": (lambda *values: max(values), 1, _MAX_ARGUMENTS),
    "sum": (_total, 1, _MAX_ARGUMENTS),
    "mean": (_mean, 1, _MAX_ARGUMENTS),
    "exp": (math.exp, 1, 1),
    "ln": (_logarithm, 1, 1),
    "log": (_logarithm, 1, 2),
    "log2": (math.log2, 1, 1),
    "log10": (math.log10, 1, 1),
    "sin": (math.sin, 1, 1),
    "cos": (math.cos, 1, 1),
    "tan": (math.tan, 1, 1),
    "asin": (math.asin, 1, 1),
    "acos": (math.acos, 1, 1),
    "atan": (math.atan, 1, 1),
    "atan2": (math.atan2, 2, 2),
    "sinh": (math.sinh, 1, 1),
    "cosh": (math.cosh, 1, 1),
    "tanh": (math.tanh, 1, 1),
    "degrees": (math.degrees, 1, 1),
    "radians": (math.radians, 1, 1),
    "hypot": (math.hypot, 1, _MAX_ARGUMENTS),
    "factorial": (_factorial, 1, 1),
    "comb": (_combinations, 2, 2),
    "gcd": (_divisor, 1, _MAX_ARGUMENTS),
    "lcm": (_multiple, 1, _MAX_ARGUMENTS),
    "sign": (_sign, 1, 1),
}

_CONSTANTS: dict[str, Number] = {"pi": math.pi, "e": math.e, "tau": math.tau}
