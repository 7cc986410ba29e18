"""`base_convert`: whole numbers between bases 2 and 36."""

from typing import Annotated, Any

from pydantic import Field

from seawall.toolkit.refusal import invalid, shown

MAX_DIGITS = 1000
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
_PREFIXES = {"0b": 2, "0o": 8, "0x": 16}
_Base = Annotated[int, Field(ge=2, le=36)]


def base_convert(
    number: Annotated[
        str,
        Field(
            min_length=1,
            max_length=MAX_DIGITS + 10,
            description="A whole number as text, such as -255, ff or 0xFF; _ may group digits.",
        ),
    ],
    from_base: _Base,
    to_base: _Base,
) -> dict[str, Any]:
    """Convert a whole number between number bases 2 to 36, exactly, up to a thousand digits."""
    value = _read(number, from_base)
    return {"number": write(value, to_base), "base": to_base, "bits": value.bit_length()}


def _read(number: str, base: int) -> int:
    text = number.strip().lower()
    negative = text.startswith("-")
    digits = text[1:] if text[:1] in ("-", "+") else text
    # In bases above 11 and 24 these letters are digits as well; there the prefix still wins only
    # in the base that it names.
    if _PREFIXES.get(digits[:2]) == base:
        digits = digits[2:]
    digits = digits.replace("_", "")
    if not digits or len(digits) > MAX_DIGITS:
        raise invalid("number", f"number must have 1 to {MAX_DIGITS} digits")
    value = 0
    for digit in digits:
        place = _DIGITS.find(digit)
        if not 0 <= place < base:
            raise invalid("number", _complaint(digit, base))
        value = value * base + place
    return -value if negative else value


def _complaint(digit: str, base: int) -> str:
    if digit in (".", ","):
        return "number must be whole; fractions are not converted"
    return f"{shown(digit)} is no digit of base {base}; its digits are {_DIGITS[:base]}"


def write(value: int, base: int) -> str:
    """Write a whole number in a base, in lower case."""
    rest, digits = abs(value), []
    while rest:
        rest, digit = divmod(rest, base)
        digits.append(_DIGITS[digit])
    return ("-" if value < 0 else "") + ("".join(reversed(digits)) or "0")
