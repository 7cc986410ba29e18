"""Random arguments: nearly right ones for a schema, wrong ones, and what models make of them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

from tests.fuzz.schemas import NAMES

WORDS = (
    *("", " ", "a", "aa", "aaaaaaaaaaaaaaaaaaaaaaaa!", "Red", "true", "null", "1", "-0", "1e999"),
    *("3.0", "007", "1,000", "[1]", '{"a": 1}', "[1", "'a'", "None", "NaN", "é", "😀", "\ud800"),
    *("2024-01-31", "a@b.c", "http://a/", "x" * 300, "\x00", "../..", "9" * 50, "A1bbbbbbbbbb"),
)
NUMBERS = (0, 1, -1, 3.0, 0.1, 1e300, -0.0, 2**53, 2**64, 10**30, 10**400, True)


class _Odd:
    def __repr__(self) -> str:
        return "odd"


ODD: tuple[Any, ...] = (float("nan"), float("inf"), b"x", {1, 2}, (1, "a"), _Odd(), 1j)
UNITS = (
    *("1,", '"a",', "{},", "[],", "null,", '{"a":1},', '"1",', "1.0,", '[[["x"]]],', "'a',"),
    *("True,", '"\\u0041",', '{"a":{"a":"x"}},', '"[1,2]",', "1e5,"),
)
PIECES = (
    *("{", "}", "[", "]", '"', "'", ":", ",", "\\", "\\u", "\\ud800", "\n", "```", "/*", "//", " "),
    *("NaN", "Infinity", "undefined", "True", "None", "1e", "-", "+", "\ufeff", "\x00", "é", ";"),
)


class Values:
    """Draws arguments for one schema."""

    def __init__(self, chance: Random, schema: Any) -> None:
        self._chance = chance
        self._root = schema

    def arguments(self) -> Any:
        """Draw what a caller gives: a mapping mostly, or text."""
        chance = self._chance
        roll = chance.random()
        if roll < 0.02:
            return chance.choice((None, "", [], "null", '""', 5, {1: 2}, (("a", 1),)))
        if roll < 0.07:
            return self._large()
        value = self.of(self._root, 6)
        if not isinstance(value, dict):
            value = {"a": value}
        return value if roll < 0.45 else self._text(value)

    def of(self, schema: Any, depth: int) -> Any:
        """Draw a value that a schema may like."""
        chance = self._chance
        if not isinstance(schema, dict) or depth == 0 or chance.random() < 0.12:
            return self._anything(2)
        if "$ref" in schema:
            return self.of(self._target(schema["$ref"]), depth - 1)
        for word in ("anyOf", "oneOf", "allOf"):
            if isinstance(schema.get(word), list) and schema[word]:
                return self.of(chance.choice(schema[word]), depth)
        if isinstance(schema.get("enum"), list) and schema["enum"]:
            return self._nearly(chance.choice(schema["enum"]))
        if "const" in schema:
            return self._nearly(schema["const"])
        kind = schema.get("type", "object" if "properties" in schema else None)
        if isinstance(kind, list):
            kind = chance.choice(kind)
        return self._nearly(self._typed(kind, schema, depth))

    def _typed(self, kind: Any, schema: dict[str, Any], depth: int) -> Any:
        chance = self._chance
        if kind == "object":
            properties = schema.get("properties")
            names = list(properties) if isinstance(properties, dict) else []
            taken = [name for name in names if chance.random() < 0.8]
            made = {name: self.of(schema["properties"][name], depth - 1) for name in taken}
            if chance.random() < 0.15:
                made[chance.choice(NAMES)] = self._anything(1)
            return made
        if kind == "array":
            items = schema.get("items")
            return [self.of(items, depth - 1) for _ in range(chance.choice((0, 1, 2, 5)))]
        plain: dict[Any, Callable[[], Any]] = {
            "string": lambda: chance.choice(WORDS),
            "integer": lambda: chance.choice(NUMBERS),
            "number": lambda: chance.choice(NUMBERS),
            "boolean": lambda: chance.random() < 0.5,
            "null": lambda: None,
        }
        return plain.get(kind, lambda: self._anything(2))()

    def _nearly(self, value: Any) -> Any:
        """Say a value as a model might: in text, in a list, as nothing."""
        chance = self._chance
        if chance.random() < 0.75:
            return value
        ways: list[Callable[[Any], Any]] = [
            _as_text,
            lambda value: [value],
            lambda _: None,
            lambda _: "",
            lambda value: f" {value} ",
            repr,
            lambda value: float(value) if isinstance(value, int) and value < 1e300 else value,
            lambda _: chance.choice(ODD),
        ]
        return chance.choice(ways)(value)

    def _anything(self, depth: int) -> Any:
        chance = self._chance
        roll = chance.random()
        if depth == 0 or roll < 0.4:
            return chance.choice(WORDS)
        if roll < 0.6:
            return chance.choice(NUMBERS)
        if roll < 0.65:
            return chance.choice((None, True, False, *ODD))
        if roll < 0.8:
            return [self._anything(depth - 1) for _ in range(chance.randint(0, 3))]
        return {
            chance.choice(NAMES): self._anything(depth - 1) for _ in range(chance.randint(0, 3))
        }

    def _target(self, reference: Any) -> Any:
        if not isinstance(reference, str):
            return None
        for word in ("$defs", "definitions"):
            found = self._root.get(word)
            name = reference.rpartition("/")[2]
            if isinstance(found, dict) and name in found:
                return found[name]
        return self._root if reference == "#" else None

    def _text(self, value: Any) -> str:
        chance = self._chance
        text = _as_text(value) if chance.random() < 0.8 else repr(value)
        for _ in range(chance.choice((0, 0, 1, 1, 2, 4))):
            text = self._mutated(text)
        return text

    def _mutated(self, text: str) -> str:
        chance = self._chance
        at = chance.randint(0, len(text))
        ways: list[Callable[[], str]] = [
            lambda: f"```json\n{text}\n```",
            lambda: text[:at],
            lambda: text[:at] + chance.choice(PIECES) + text[at:],
            lambda: text[:at] + text[at + chance.randint(1, 4) :],
            lambda: text.replace("}", ",}"),
            lambda: text.replace('"', "'"),
            lambda: text + text,
            lambda: json.dumps(text),
            lambda: f"Here you are: {text}",
            lambda: "".join(chance.sample(text, len(text))) if len(text) < 200 else text,
            lambda: text[:at] + text[max(at - 20, 0) :],
        ]
        return chance.choice(ways)()

    def _large(self) -> Any:
        """Draw what is large in one way or another."""
        chance = self._chance
        size = chance.choice((1_000, 20_000, 100_000, 1_000_000, 1_100_000))
        properties = self._root.get("properties")
        name = chance.choice([*properties, "a"] if isinstance(properties, dict) else ["a"])
        if chance.random() < 0.4:
            return {name: self._many(size)}
        key = json.dumps(name)
        unit = chance.choice((*UNITS, *PIECES, *WORDS[2:], self._member()))
        times = size // max(len(unit), 1)
        opening = chance.choice(('{%s:["%s', "{%s:[%s", "{%s:%s", "[%.0s%s", "%.0s%s"))
        body = opening % (key, unit * times)
        return body + chance.choice(("", "]}", "1]}", '"]}', '"}', "}"))

    def _member(self) -> str:
        item = self.of(self._root, 5)
        return f"{_as_text(item)[:300]},"

    def _many(self, size: int) -> Any:
        chance = self._chance
        item = self.of(self._root, 5)
        word = chance.choice(WORDS)
        count = min(size, 25_000)
        deep: Any = item
        for _ in range(chance.choice((10, 100, 127, 5_000))):
            deep = {"next": deep} if chance.random() < 0.5 else [deep]
        return chance.choice(
            [
                word * (size // max(len(word), 1)),
                [item] * count,
                [word] * count,
                [chance.choice(NUMBERS) for _ in range(count)],
                {f"k{number}": item for number in range(count)},
                {f"{word[:20]}{number}": number for number in range(count)},
                [word * (size // 100)] * 100,
                _as_text([item] * min(count, 2_000)),
                [_as_text(item)[:2_000]] * min(count, 500),
                deep,
            ]
        )


def _as_text(value: Any) -> str:
    try:
        return json.dumps(value)
    except (TypeError, ValueError, RecursionError):
        return repr(value)
