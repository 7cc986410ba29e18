"""Random schemas: those of real tools, their habits and errors, and some that mean harm."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from random import Random

NAMES = ("a", "b", "name", "limit", "items", "x y", "a/b", "~", "é", "next", "$ref", "type", "")
PATTERNS = (
    "^[a-z]+$",
    "^[a-z0-9_-]{1,64}$",
    r"^\d{4}-\d{2}-\d{2}$",
    r"^(?!.*\.\.)[\w/.-]+$",
    "(?=.*[A-Z])(?=.*[0-9]).{8,}",
    "^(a|aa)+$",
    r"^(?:(a|aa)+)\1b$",
    r"(?=(a+))\1b",
    "a[ab]{100}[yz]",
    "(a[ab]{0,50}b){3}y",
    r"(\w+\s?)+!",
    r"^[^\s]{1,255}$",
    r"\p{L}+",
    "^x-",
    "",
    "(",
)
FORMATS = (
    *("date", "date-time", "time", "duration", "email", "hostname", "ipv4", "ipv6", "uri", "uuid"),
    *("regex", "json-pointer", "uri-template", "idn-hostname", "password", "byte", "made-up"),
)
TYPES = ("string", "integer", "number", "boolean", "null", "array", "object")
DRAFTS = (
    "http://json-schema.org/draft-04/schema#",
    "http://json-schema.org/draft-07/schema#",
    "https://json-schema.org/draft/2019-09/schema",
    "https://json-schema.org/draft/2020-12/schema",
    "https://example.com/unknown",
)


class Schemas:
    """Draws schemas."""

    def __init__(self, chance: Random) -> None:
        self._chance = chance
        self._definitions = chance.sample(("a", "b", "c", "node"), chance.randint(0, 3))

    def tool(self) -> dict[str, Any]:
        """Draw a tool's whole input schema."""
        chance = self._chance
        schema = {"type": "object", **self._object(3)}
        if chance.random() < 0.1:
            del schema["type"]
        if self._definitions:
            word = "definitions" if chance.random() < 0.2 else "$defs"
            schema[word] = {name: self.any(2) for name in self._definitions}
        if chance.random() < 0.15:
            schema["$schema"] = chance.choice(DRAFTS)
        if chance.random() < 0.2:
            schema.update(self._combined(2))
        return schema

    def any(self, depth: int) -> Any:
        """Draw a schema of anything."""
        chance = self._chance
        roll = chance.random()
        if roll < 0.03:
            return chance.choice((True, False, {}, {"type": "objct"}, {"x-note": 1}))
        if roll < 0.18 and self._definitions:
            return {"$ref": self._reference(), **(self._note() if chance.random() < 0.3 else {})}
        if roll < 0.3 and depth > 0:
            return {**self._combined(depth - 1), **self._note()}
        return {**self._typed(depth), **self._note()}

    def _reference(self) -> str:
        name = self._chance.choice((*self._definitions, "nowhere"))
        return self._chance.choice((f"#/$defs/{name}", f"#/definitions/{name}", "#", "file:///etc"))

    def _note(self) -> dict[str, Any]:
        chance = self._chance
        notes: list[dict[str, Any]] = [
            {"description": "About it."},
            {"default": None},
            {"nullable": True},
            {"writeOnly": True},
            {"format": "password"},
            {"examples": [1]},
            {"deprecated": True},
        ]
        return chance.choice(notes) if chance.random() < 0.2 else {}

    def _typed(self, depth: int) -> dict[str, Any]:
        chance = self._chance
        kind = chance.choice(TYPES if depth > 0 else TYPES[:5])
        if chance.random() < 0.12:
            return {"type": chance.sample(TYPES, 2), **self._string()}
        made: dict[str, Any] = {"type": kind}
        if kind == "string":
            made |= self._string()
        elif kind in ("integer", "number"):
            made |= self._number()
        elif kind == "array":
            made |= self._array(depth - 1)
        elif kind == "object":
            made |= self._object(depth - 1)
        return made

    def _string(self) -> dict[str, Any]:
        chance = self._chance
        return chance.choice(
            [
                {},
                {},
                {"minLength": chance.randint(0, 5)},
                {"maxLength": chance.randint(0, 50)},
                {"pattern": chance.choice(PATTERNS)},
                {"format": chance.choice(FORMATS)},
                {"enum": chance.choice((["Red", "green", "BLUE"], ["1", 1, None], ["a"] * 2, []))},
                {"const": chance.choice(("x", 1, None, {"a": [1]}))},
                {"contentMediaType": "application/json", "contentEncoding": "base64"},
            ]
        )

    def _number(self) -> dict[str, Any]:
        chance = self._chance
        return chance.choice(
            [
                {},
                {},
                {"minimum": chance.choice((0, 1, -1.5, 1e300))},
                {"maximum": chance.choice((10, 2**53, 1e-300))},
                {"exclusiveMinimum": chance.choice((0, True))},
                {"multipleOf": chance.choice((2, 0.01, 1e-9))},
                {"enum": [1, 2, 3.5]},
            ]
        )

    def _array(self, depth: int) -> dict[str, Any]:
        chance = self._chance
        made: dict[str, Any] = {}
        if chance.random() < 0.8:
            made["items"] = self.any(depth)
        if chance.random() < 0.1:
            word = chance.choice(("prefixItems", "items"))
            made[word] = [self.any(depth) for _ in range(chance.randint(1, 3))]
        return made | self._some(
            minItems=chance.randint(0, 3),
            maxItems=chance.randint(0, 30_000),
            uniqueItems=True,
            contains=self.any(0),
            unevaluatedItems=False,
            additionalItems=False,
        )

    def _object(self, depth: int) -> dict[str, Any]:
        chance = self._chance
        names = chance.sample(NAMES, chance.randint(0, 5))
        made: dict[str, Any] = {"properties": {name: self.any(depth) for name in names}}
        if names and chance.random() < 0.6:
            made["required"] = chance.sample(names, chance.randint(0, len(names)))
        return made | self._some(
            additionalProperties=chance.choice((False, self.any(0))),
            patternProperties={chance.choice(PATTERNS): self.any(0)},
            propertyNames=self._string(),
            unevaluatedProperties=chance.choice((False, self.any(0))),
            minProperties=1,
            dependentRequired={"a": ["b"]},
            dependentSchemas={"a": self.any(0)},
            dependencies={"a": ["b"]},
        )

    def _some(self, **words: Any) -> dict[str, Any]:
        return {word: value for word, value in words.items() if self._chance.random() < 0.08}

    def _combined(self, depth: int) -> dict[str, Any]:
        chance = self._chance
        word = chance.choice(("anyOf", "oneOf", "allOf", "not", "if"))
        if word == "not":
            return {"not": self.any(0)}
        if word == "if":
            return {"if": self.any(0), "then": self.any(depth), "else": self.any(0)}
        count = chance.choice((1, 2, 2, 3, 3, 12))
        return {word: [self.any(depth) for _ in range(count)]}
