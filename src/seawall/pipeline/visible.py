"""What nobody sees, or takes for a blank, written out for a person who has to decide.

`pay("bob")` and `pay("bob" + U+3164)` are two calls, and look like one. So wherever somebody is
asked whether a call may run, what they read has none of these characters as it is. The table here
is the only one: the console's page is given it from here.
"""

from __future__ import annotations

import re

UNSEEN: tuple[tuple[int, int], ...] = (
    (0x0000, 0x0008),  # controls; a tabulator and the end of a line are seen
    (0x000B, 0x001F),
    (0x007F, 0x00A0),  # controls, and a blank that is none
    (0x00AD, 0x00AD),
    (0x034F, 0x034F),
    (0x061C, 0x061C),  # turns the order, as 200E, 200F, 202A to 202E and 2066 to 2069
    (0x115F, 0x1160),  # fillers for letters
    (0x1680, 0x1680),
    (0x17B4, 0x17B5),
    (0x180B, 0x180F),
    (0x2000, 0x200F),
    (0x2028, 0x202F),
    (0x205F, 0x206F),
    (0x2800, 0x2800),  # a sign of Braille without a dot
    (0x3000, 0x3000),
    (0x3164, 0x3164),
    (0xD800, 0xDFFF),  # halves of characters
    (0xFE00, 0xFE0F),  # other looks of the character before
    (0xFEFF, 0xFEFF),
    (0xFFA0, 0xFFA0),
    (0xFFF0, 0xFFFB),
    (0x13430, 0x13442),  # how hieroglyphs are set, and blanks among them
    (0x16FE4, 0x16FE4),
    (0x1BCA0, 0x1BCA3),
    (0x1D159, 0x1D159),  # a note without a head
    (0x1D173, 0x1D17A),
    (0xE0000, 0xE0FFF),
)
"""First and last code points, in their order: `Default_Ignorable_Code_Point`, what turns the order
of others, blanks but U+0020, controls, and letters that show nothing."""

_CLASS = "".join(f"{re.escape(chr(first))}-{re.escape(chr(last))}" for first, last in UNSEEN)
_unseen = re.compile(f"[{_CLASS}]")
_unseen_in_line = re.compile(f"[{_CLASS}\n\t]")


def visible(text: str) -> str:
    r"""Write them as `\u{3164}`; ends of lines and tabulators stay."""
    return _unseen.sub(_written, text)


def visible_line(text: str) -> str:
    """Write them in a text that is one line, and what would begin another with them."""
    return _unseen_in_line.sub(_written, text)


def visible_json(text: str) -> str:
    """Write them as JSON does, in JSON text: it says the same to programs as before."""
    return _unseen.sub(_written_as_json, text)


def _written(found: re.Match[str]) -> str:
    return f"\\u{{{ord(found[0]):04x}}}"


def _written_as_json(found: re.Match[str]) -> str:
    units = found[0].encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))
