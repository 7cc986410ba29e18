"""JSON as editors write it: with comments and trailing commas, and every key only once."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from seawall.contract.errors import ConfigurationError, Fault

if TYPE_CHECKING:
    from pathlib import Path

MAX_BYTES = 1024 * 1024

_TOKENS = re.compile(
    r"""(?P<text>"(?:[^"\\\n]|\\.)*") | (?P<comment>//[^\n]* | /\*.*?(?:\*/|\Z)) | (?P<comma>,)""",
    re.VERBOSE | re.DOTALL,
)
_CLOSING = re.compile(r"(?:\s|//[^\n]*|/\*.*?(?:\*/|\Z))*[\]}]", re.DOTALL)


def read_json(path: Path) -> Any:
    """Read a file; raises ConfigurationError with the line and column of what is wrong."""
    return parsed(_text(path), str(path))


def parsed(text: str, file: str) -> Any:
    """Read a text; `file` is where it came from."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) != len(pairs):
            keys = [key for key, _ in pairs]
            twice = next(key for key in keys if keys.count(key) > 1)
            raise ConfigurationError([Fault("stands here twice; leave one", twice, file=file)])
        return found

    try:
        return json.loads(_plain(text), object_pairs_hook=unique)
    except json.JSONDecodeError as error:
        said = f"is no JSON: {error.msg}"
        raise ConfigurationError(
            [Fault(said, file=file, line=error.lineno, column=error.colno)]
        ) from None
    except RecursionError:
        raise ConfigurationError(
            [Fault("is nested too deeply; a list of servers needs few levels", file=file)]
        ) from None


def _text(path: Path) -> str:
    try:
        with path.open("rb") as stream:
            raw = stream.read(MAX_BYTES + 1)
    except OSError as error:
        said = f"cannot be read: {error.strerror or type(error).__name__}"
        raise ConfigurationError([Fault(said, file=str(path))]) from None
    if len(raw) > MAX_BYTES:
        said = f"has more than {MAX_BYTES:,} bytes; keep only the servers in it"
        raise ConfigurationError([Fault(said, file=str(path))])
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ConfigurationError(
            [Fault("is no UTF-8 text; save it as that", file=str(path))]
        ) from None


def _plain(text: str) -> str:
    """Blank out comments and trailing commas; lines and columns stay where they are."""

    def blank(found: re.Match[str]) -> str:
        if found["text"] is not None:
            return found[0]
        if found["comma"] is not None:
            return " " if _CLOSING.match(text, found.end()) else ","
        return re.sub(r"[^\n]", " ", found[0])

    return _TOKENS.sub(blank, text)
