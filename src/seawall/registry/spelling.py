"""Read the name of a tool as the words it is made of, however it is written.

`getCurrentWeather`, `get-current-weather` and `GET.CURRENT.WEATHER` are the same three words.
What a model puts around a name (`functions.`, `mcp__server__`, `<|channel|>json`, a glued-on
argument list) is read as noise. All of it is for comparing: a name is never changed, and nothing is
called by what was read.
"""

from __future__ import annotations

import re
import unicodedata

import msgspec

LONGEST_NAME = 160
"""Characters of a name that are read; the rest of a longer one changes nothing."""

# Letters that look like a Latin one and stay what they are under compatibility normalisation.
# Only those that people and models mix up in names; both sides of a comparison pass through it,
# so that real Cyrillic and Greek names are still told apart from each other.
_LOOKALIKES = str.maketrans(
    "авекмнорстухіјѕһԁԛԝ" + "АВЕКМНОРСТУХІЈЅ" + "αβεικνορτυχγ" + "ΑΒΕΖΗΙΚΜΝΟΡΤΥΧ" + "ıɩɑɡłøđ",
    "abekmhopctyxijshdqw" + "ABEKMHOPCTYXIJS" + "abeikvoptuxy" + "ABEZHIKMNOPTYX" + "iiaglod",
)

_LEADING = frozenset(
    {"analysis", "api", "assistant", "call", "commentary", "default", "function", "functions"}
    | {"invoke", "mcp", "namespace", "plugin", "plugins", "recipient", "to", "tool", "tools"}
)
_TRAILING = frozenset({"call", "commentary", "function", "functions", "json", "tool", "tools"})

_WORD = re.compile(r"[^\W_]+")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
# Digits, letters, digits in eight or more: made by a machine to keep names apart.
_MACHINE_MADE = re.compile(r"(?<![^\W_])(?=[^\W_]{8})[A-Za-z]*\d+[A-Za-z]+\d[^\W_]*")
_PART = re.compile(r"__|[./:\\=\s]+")
_AROUND = re.compile(r"<\|[^|>]*\|?>?|[(){}\[\]\n,;]")
_PYTHON_CALL = re.compile(r".*default_api\W+", re.DOTALL)


class Spelling(msgspec.Struct, frozen=True):
    """A name as words: lower-case, without separators."""

    words: tuple[str, ...]
    compact: str
    """The words without anything between them, so that `readFile` and `readfile` are one."""
    stems: tuple[str, ...]
    """The words in the singular."""


class Reading(msgspec.Struct, frozen=True):
    """What a model may have meant by a name."""

    full: Spelling
    """The name without marker tokens and glued-on arguments."""
    core: Spelling
    """Without what models and gateways put before and after; no words if there is nothing else."""
    tail: str
    """The last part of a name with parts (`server.tool`), compact."""


def fold(text: str) -> str:
    """Give the Latin letters that somebody would read, at most `LONGEST_NAME`; case is kept."""
    text = text[:LONGEST_NAME]
    if text.isascii():
        return text

    # Marks (accents) and format characters (zero-width blanks) are not seen or not typed.
    letters = (
        letter
        for letter in unicodedata.normalize("NFKD", text)
        if unicodedata.category(letter) not in ("Mn", "Cf")
    )
    return "".join(letters).translate(_LOOKALIKES)[:LONGEST_NAME]


def spell(name: str) -> Spelling:
    """Spell a name as it is registered."""
    return _spelling(_words(fold(name)))


def read(name: str) -> Reading:
    """Read a name as a model sent it."""
    text = _without_surroundings(fold(name))
    full = _spelling(_words(text))
    parts = [_words(_MACHINE_MADE.sub(" ", part)) for part in _PART.split(text)]
    words = tuple(word for part in parts for word in part) or full.words
    core = _bare(words) or _without_leading(words)
    if core and all(word.isdecimal() for word in core):
        core = full.words
    bare_parts = ("".join(_bare(part)) for part in reversed(parts))
    return Reading(full, _spelling(core), next(filter(None, bare_parts), ""))


def stem(word: str) -> str:
    """Give the singular, roughly: enough that `issues` and `issue` are the same word."""
    if len(word) < 4 or not word.endswith("s") or word.endswith("ss"):
        return word
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("ches", "shes", "sses", "xes")):
        return word[:-2]
    return word[:-1]


def _spelling(words: tuple[str, ...]) -> Spelling:
    return Spelling(words, "".join(words), tuple(map(stem, words)))


def _words(text: str) -> tuple[str, ...]:
    """Split at everything that is no letter or digit, and at the humps of camel case."""
    return tuple(word.casefold() for word in _WORD.findall(_CAMEL.sub(" ", text)))


def _without_surroundings(text: str) -> str:
    """Cut at marker tokens and brackets; the first piece that says something is the name."""
    pieces = _AROUND.split(_PYTHON_CALL.sub("", text))
    return next((piece for piece in pieces if _bare(_words(piece))), text)


def _bare(words: tuple[str, ...]) -> tuple[str, ...]:
    words = _without_leading(words)
    end = len(words)
    while end and (words[end - 1] in _TRAILING or words[end - 1].isdecimal()):
        end -= 1
    return words[:end]


def _without_leading(words: tuple[str, ...]) -> tuple[str, ...]:
    start = 0
    while start < len(words) and words[start] in _LEADING:
        start += 1
    return words[start:]
