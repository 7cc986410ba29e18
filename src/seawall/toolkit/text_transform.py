"""`text_transform`: the small changes to text that a model gets wrong when it counts by itself."""

import base64
import binascii
import html
import textwrap
import unicodedata
from collections.abc import Callable
from typing import Annotated, Any, Literal
from urllib.parse import quote, unquote_to_bytes

from pydantic import Field

from seawall.toolkit.refusal import invalid

MAX_TEXT = 200_000

Operation = Literal[
    "upper",
    "lower",
    "title",
    "sentence",
    "swap_case",
    "snake",
    "kebab",
    "camel",
    "pascal",
    "constant",
    "slug",
    "trim",
    "collapse_spaces",
    "dedent",
    "wrap",
    "sort_lines",
    "unique_lines",
    "reverse_lines",
    "number_lines",
    "reverse",
    "base64_encode",
    "base64_decode",
    "url_encode",
    "url_decode",
    "html_encode",
    "html_decode",
    "hex_encode",
    "hex_decode",
    "count",
]


def text_transform(
    text: Annotated[str, Field(max_length=MAX_TEXT)],
    operation: Annotated[
        Operation, Field(description="count gives characters, words, lines and UTF-8 bytes.")
    ],
    width: Annotated[int, Field(ge=10, le=500, description="For wrap.")] = 80,
) -> dict[str, Any]:
    """Transform a text: letter case, names of code, slug, white space, lines, encodings, counts."""
    if len(text) > MAX_TEXT:
        raise invalid("text", f"text is longer than {MAX_TEXT} characters")
    try:
        if operation == "count":
            return _counts(text)
        if operation == "wrap":
            return {"text": wrapped(text, width)}
        return {"text": _OPERATIONS[operation](text)}
    except UnicodeEncodeError:
        raise invalid("text", "text holds half of a character (a lone surrogate)") from None


def _counts(text: str) -> dict[str, Any]:
    return {
        "characters": len(text),
        "characters_without_spaces": sum(not character.isspace() for character in text),
        "words": len(text.split()),
        "lines": len(text.splitlines()),
        "utf8_bytes": len(text.encode()),
    }


def wrapped(text: str, width: int) -> str:
    """Break paragraphs at spaces; a longer word keeps a line for itself."""
    return "\n".join(_paragraph(line, width) for line in text.split("\n"))


def _paragraph(line: str, width: int) -> str:
    lines: list[list[str]] = [[]]
    length = 0
    for word in line.split():
        if lines[-1] and length + 1 + len(word) > width:
            lines.append([])
            length = 0
        length += len(word) + bool(lines[-1])
        lines[-1].append(word)
    return "\n".join(" ".join(words) for words in lines)


def words_of(text: str) -> list[str]:
    """Split as names in code are: at all that is no letter or digit, and where case rises.

    `parseHTTPResponse2` is parse, HTTP, Response2.
    """
    words: list[str] = []
    for chunk in "".join(c if c.isalnum() else " " for c in text).split():
        begin = 0
        for place in range(1, len(chunk)):
            if _rises(chunk, place):
                words.append(chunk[begin:place])
                begin = place
        words.append(chunk[begin:])
    return words


def _rises(chunk: str, place: int) -> bool:
    if not chunk[place].isupper():
        return False
    # In a run of capitals the last one begins the next word, if that goes on in small letters.
    return not chunk[place - 1].isupper() or chunk[place + 1 : place + 2].islower()


def _joined(separator: str, change: Callable[[str], str]) -> Callable[[str], str]:
    return lambda text: separator.join(change(word) for word in words_of(text))


def _camel(text: str) -> str:
    pascal = [word.capitalize() for word in words_of(text)]
    return "".join([pascal[0].lower(), *pascal[1:]]) if pascal else ""


def _slug(text: str) -> str:
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode("ascii")
    kept = "".join(c if c.isalnum() else " " for c in plain.replace("'", "").lower())
    return "-".join(kept.split())


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:].lower()


def _title(text: str) -> str:
    # `str.title` would make don't into Don'T.
    return "".join(
        c.upper() if place == 0 or text[place - 1].isspace() else c.lower()
        for place, c in enumerate(text)
    )


def _on_lines(change: Callable[[list[str]], list[str]]) -> Callable[[str], str]:
    def apply(text: str) -> str:
        ended = text.endswith("\n")
        lines = text.removesuffix("\n").split("\n")
        return "\n".join(change(lines)) + "\n" * ended

    return apply


def _numbered(lines: list[str]) -> list[str]:
    width = len(str(len(lines)))
    return [f"{number:>{width}}  {line}" for number, line in enumerate(lines, 1)]


def _base64_decoded(text: str) -> str:
    # Both alphabets, with or without padding and line breaks, as they are met in the wild.
    bare = "".join(text.split()).replace("-", "+").replace("_", "/").rstrip("=")
    try:
        return _as_text(base64.b64decode(bare + "=" * (-len(bare) % 4), validate=True))
    except (binascii.Error, ValueError):
        raise invalid("text", "text is no base64") from None


def _hex_decoded(text: str) -> str:
    try:
        return _as_text(bytes.fromhex(text))
    except ValueError:
        raise invalid("text", "text is no pairs of hexadecimal digits") from None


def _as_text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise invalid("text", f"text decodes to {len(data)} bytes that are no UTF-8 text") from None


_OPERATIONS: dict[str, Callable[[str], str]] = {
    "upper": str.upper,
    "lower": str.lower,
    "title": _title,
    "sentence": _sentence,
    "swap_case": str.swapcase,
    "snake": _joined("_", str.lower),
    "kebab": _joined("-", str.lower),
    "constant": _joined("_", str.upper),
    "camel": _camel,
    "pascal": _joined("", str.capitalize),
    "slug": _slug,
    "trim": str.strip,
    "collapse_spaces": lambda text: " ".join(text.split()),
    "dedent": textwrap.dedent,
    "sort_lines": _on_lines(sorted),
    "unique_lines": _on_lines(lambda lines: list(dict.fromkeys(lines))),
    "reverse_lines": _on_lines(lambda lines: lines[::-1]),
    "number_lines": _on_lines(_numbered),
    "reverse": lambda text: text[::-1],
    "base64_encode": lambda text: base64.b64encode(text.encode()).decode("ascii"),
    "base64_decode": _base64_decoded,
    "url_encode": lambda text: quote(text, safe=""),
    "url_decode": lambda text: _as_text(unquote_to_bytes(text)),
    "html_encode": html.escape,
    "html_decode": html.unescape,
    "hex_encode": lambda text: text.encode().hex(),
    "hex_decode": _hex_decoded,
}
