"""Where the keys of a TOML text stand: `tomllib` reads values and forgets their lines.

The text has been read by `tomllib` before, so it is known to be valid; this scanner only tells
keys, strings and brackets apart. It does not recurse and goes over the text once.
"""

from __future__ import annotations

import re
import tomllib
from bisect import bisect_right
from typing import TYPE_CHECKING, NamedTuple

from seawall.policy.origins import KeyPath, Place

if TYPE_CHECKING:
    from collections.abc import Iterator


def find_places(text: str, file: str) -> dict[KeyPath, Place]:
    """Give the place of every key in a valid TOML text: dotted, quoted, inline, headers too.

    The tables of `[[a]]` are `a.0`, `a.1` and so on.
    Where a key is written several times, as `a` in `a.b = 1` and `a.c = 2`, the first counts.
    """
    return _Scanner(text, file).scan()


class _Token(NamedTuple):
    kind: str
    raw: str
    at: int


_TOKEN = re.compile(
    r"""(?P<space>[ \t\r]+|\#[^\n]*)
    |(?P<newline>\n)
    |(?P<text>\"{3}(?:[^\\]|\\.)*?\"{3,5}|'{3}.*?'{3,5}|"(?:[^"\\\n]|\\.)*"|'[^'\n]*')
    |(?P<mark>[\[\]{}=,.])
    |(?P<word>[^\s\[\]{}=,."'\#]+)""",
    re.VERBOSE | re.DOTALL,
)


class _Scanner:
    def __init__(self, text: str, file: str) -> None:
        self._tokens = _tokens(text)
        self._lines = [0, *(found.end() for found in re.finditer("\n", text))]
        self._file = file
        self._places: dict[KeyPath, Place] = {}
        self._items: dict[KeyPath, int] = {}

    def scan(self) -> dict[KeyPath, Place]:
        table: KeyPath = ()
        for token in self._tokens:
            if token.raw == "[":
                table = self._header()
            elif token.kind != "newline":
                self._value(self._key(table, token))
        return self._places

    def _header(self) -> KeyPath:
        token = next(self._tokens)
        if token.raw != "[":
            return self._key((), token)
        path = self._key((), first := next(self._tokens))
        next(self._tokens)  # the second bracket of an array of tables
        number = self._items[path] = self._items.get(path, -1) + 1
        item = (*path, str(number))
        self._places[item] = self._place(first.at)
        return item

    def _key(self, path: KeyPath, token: _Token) -> KeyPath:
        """Read `a."b".c` up to the mark behind it, and note where each part stands."""
        while True:
            path = (*path, _plain(token))
            self._places.setdefault(path, self._place(token.at))
            if next(self._tokens).raw != ".":
                return path
            token = next(self._tokens)

    def _value(self, path: KeyPath) -> None:
        """Skip a value, but note the keys of the inline tables in it."""
        within: list[tuple[str, KeyPath]] = []
        before_key = False
        for token in self._tokens:
            if token.kind == "newline":
                if not within:
                    return
            elif before_key and token.kind != "mark":
                path, before_key = self._key(within[-1][1], token), False
            elif token.raw in ("[", "{"):
                within.append((token.raw, path))
                before_key = token.raw == "{"
            elif token.raw in ("]", "}"):
                path, before_key = within.pop()[1], False
            elif token.raw == ",":
                bracket, path = within[-1]
                before_key = bracket == "{"

    def _place(self, at: int) -> Place:
        line = bisect_right(self._lines, at)
        return Place(self._file, line, at - self._lines[line - 1] + 1)


def _tokens(text: str) -> Iterator[_Token]:
    for found in _TOKEN.finditer(text):
        if found.lastgroup is not None and found.lastgroup != "space":
            yield _Token(found.lastgroup, found[0], found.start())


def _plain(token: _Token) -> str:
    """Take the quotes off a key."""
    if token.kind != "text":
        return token.raw
    key: str = tomllib.loads(f"key = {token.raw}")["key"]
    return key
