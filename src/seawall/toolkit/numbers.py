"""Exact numbers in and out: decimal text to fractions and back, bounded in digits."""

import math
import re
from decimal import Context, Decimal
from fractions import Fraction

from seawall.toolkit.refusal import invalid, shown

MAX_DIGITS = 1000
"""Decimal digits of a whole number, an exponent, or what stands below a fraction's line."""
MAX_BITS = 3322
"""As many bits as `MAX_DIGITS` decimal digits take."""

_DECIMAL = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?\Z")


def fraction_of(number: float | str, field: str) -> Fraction:
    """Read a number as it is written: 0.1 is one tenth. Raises the refusal of `field`."""
    if isinstance(number, float) and not math.isfinite(number):
        raise invalid(field, f"{field} must be a finite number")
    if isinstance(number, int) and number.bit_length() > MAX_BITS:
        raise invalid(field, f"{field} has more than {MAX_DIGITS} digits")
    text = str(number).strip()
    if len(text) > MAX_DIGITS or not _DECIMAL.match(text):
        raise invalid(field, f"{field} must be a decimal number such as -12.5, not {shown(text)}")
    if exponent_of(text) > MAX_DIGITS:
        raise invalid(field, f"{field} has an exponent beyond {MAX_DIGITS}")
    return Fraction(text)


def exponent_of(text: str) -> int:
    """How large the exponent of a decimal text is, its sign left out."""
    return abs(int(text.lower().partition("e")[2] or "0"))


def decimal_text(value: Fraction, digits: int = 30, most_places: int = 60) -> tuple[str, bool]:
    """Write a fraction as decimal text, and say whether that text is exact.

    What does not end within `most_places` decimals is rounded to `digits` significant ones.
    """
    if value.denominator == 1:
        return str(value.numerator), True
    places = _places(value.denominator)
    if places is not None and places <= most_places:
        return _fixed(value, places), True
    context = Context(prec=digits)
    rounded = context.divide(Decimal(value.numerator), Decimal(value.denominator))
    return _plain(rounded.normalize(context)), False


def _places(denominator: int) -> int | None:
    """How many decimal places a fraction needs, None if no number of them is enough."""
    twos = (denominator & -denominator).bit_length() - 1
    rest = denominator >> twos
    fives = 0
    while rest % 5 == 0:
        rest //= 5
        fives += 1
    return max(twos, fives) if rest == 1 else None


def _fixed(value: Fraction, places: int) -> str:
    scaled = abs(value.numerator) * 10**places // value.denominator
    whole, part = divmod(scaled, 10**places)
    sign = "-" if value < 0 else ""
    return f"{sign}{whole}.{part:0{places}d}".rstrip("0").rstrip(".")


def _plain(number: Decimal) -> str:
    return format(number, "f") if -10 <= number.adjusted() <= 40 else str(number).lower()
