"""Know arguments at a glance that are plainly in order, as nearly all are.

Only by schemas that say all there is: named scalars, and lists and objects of such. They are said
once more with the bounds of arguments in them. What meets that is valid, of a size to work with,
and needs no mending; and where containers stand in it is known before a call comes.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import jsonschema_rs

from seawall.pipeline.arguments.patterns.bounds import FREE, PATTERNS
from seawall.pipeline.arguments.reading.reader import MAX_BYTES
from seawall.pipeline.arguments.schema.dialects import (
    DIALECTS,
    DRAFT_7,
    DRAFT_2019,
    DRAFT_2020,
    dialect_named,
)
from seawall.pipeline.arguments.schema.validators import CompileErrors
from seawall.pipeline.copying import SCALARS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from seawall.pipeline.arguments.compiled import CompiledSchema

_DRAFTS = (DRAFT_7.name, DRAFT_2019.name, DRAFT_2020.name)
"""Where the words that are understood here mean the same."""

_PROPERTIES_AT_MOST = 32
_ITEMS_AT_MOST = 32
_PARTS_AT_MOST = 256
_LEVELS = 6
_LONGEST = (65536, 16384, 4096, 1024, 256, 64)
"""Characters of one text, as many as leave the largest of all values far inside the bounds."""
_VALUE = 64
"""Bytes that a value costs besides its text; so there cannot be too many either."""
_WIDEST = 4
"""Bytes of a character."""

_WITHIN = {"minimum": -(1 << 63), "maximum": 1 << 63}
# To draft 4, unlike those after it, 3.0 is no integer: here it is one that may have to be mended.
_EXACT = {"$schema": "http://json-schema.org/draft-04/schema#", **_WITHIN}
_INTEGER = {"$ref": "seawall:integer"}
_NO_FLOAT = {"$ref": "seawall:no-float"}
_RESOURCES = jsonschema_rs.Registry(
    [
        (_INTEGER["$ref"], _EXACT | {"type": "integer"}),
        (_NO_FLOAT["$ref"], _EXACT | {"type": ["integer", "string", "boolean", "null"]}),
    ]
)
_READ = {"not": {"const": "\0"}}
"""Has a text looked at, and so refused with ValueError if halves of characters are in it."""
_REMARKS = frozenset(("title", "description", "default", "examples", "deprecated", "$comment"))
_BESIDE = frozenset(("$schema", "$defs", "definitions"))
"""What may stand at the root alone."""
_OF_OBJECTS = _REMARKS | {"type", "properties", "required", "additionalProperties"}
_OF_MAPS = _REMARKS | {"type", "additionalProperties", "minProperties", "maxProperties"}
_OF_LISTS = _REMARKS | {"type", "items", "minItems", "maxItems", "uniqueItems"}
_OF_SCALARS = _REMARKS | {
    *("type", "enum", "const", "minLength", "maxLength", "format", "pattern"),
    *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
}
_OF_OPTIONAL = _REMARKS | {"anyOf"}
_OF_REFERENCES = _REMARKS | {"$ref"}
_NULL = {"type": "null"}
_NAMES = frozenset((str,))
_DEFINED = re.compile(r"#/(\$defs|definitions)/([\w.-]+)")
_SIMPLE = frozenset(("string", "integer", "number", "boolean", "null"))
_OF_ONE_SPELLING = frozenset((str, bool, type(None)))
"""Types of choices that nothing else is equal to: 1 is 1.0, too."""


class Quick:
    """What knows the arguments of one tool at a glance, if its schema is of the kind."""

    __slots__ = ("_bind", "_compiled", "is_valid", "own_of", "take")

    is_valid: Callable[[dict[str, Any]], bool] | None
    """None if nothing is known. For exact types; raises ValueError for texts that are no JSON."""
    take: Callable[[Any], dict[str, Any] | None] | None
    """Copies arguments of exact types, no larger than valid ones are; else gives None.

    None if valid arguments hold scalars only.
    """
    own_of: Callable[[dict[str, Any]], Any]
    """Makes what an attempt gets of valid arguments: bound, and with containers of its own."""

    def __init__(
        self, compiled: CompiledSchema, bind: Callable[[dict[str, Any]], Any] | None = None
    ) -> None:
        self._compiled: CompiledSchema | None = compiled
        self._bind = bind
        self.is_valid = self.take = None

    def make(self) -> None:
        """Look at the schema, once. Most tools are never called: this is for the first call."""
        if self._compiled is None:
            return
        compiled, self._compiled = self._compiled, None
        shape = _shape(compiled) if compiled.draft in _DRAFTS else None
        if shape is not None and shape.copy is not None:
            self.take = None if shape.copy is dict.copy else shape.take
            self.own_of = shape.copy if self._bind is None else _binding(self._bind, shape.copy)
            self.is_valid = _validator(shape.schema, compiled)


def _binding(
    bind: Callable[[dict[str, Any]], Any], copy: Callable[[Any], dict[str, Any]]
) -> Callable[[dict[str, Any]], Any]:
    return bind if copy is dict.copy else lambda arguments: bind(copy(arguments))


def _shape(compiled: CompiledSchema) -> _Shape | None:
    for longest in _LONGEST:
        try:
            shape = _Reading(compiled.schema, longest).root()
        except _NotPlain:
            return None
        if shape.largest <= MAX_BYTES:
            return shape
    return None


def _validator(
    schema: dict[str, Any], compiled: CompiledSchema
) -> Callable[[dict[str, Any]], bool] | None:
    if not _texts_are_read():
        return None
    make = DIALECTS[compiled.draft].validator
    try:
        return make(
            schema,
            registry=_RESOURCES,
            validate_formats=compiled.assert_formats,
            pattern_options=PATTERNS,
        ).is_valid
    except CompileErrors:
        return None


@cache
def _texts_are_read() -> bool:
    """Whether halves of characters are noticed; the type and the length of a text do not say it."""
    probe = {"properties": {"a": {"type": "string", "maxLength": 9, **_READ}}}
    try:
        jsonschema_rs.Draft202012Validator(probe).is_valid({"a": "a\ud800"})
    except ValueError:
        return True
    return False


class _NotPlain(Exception):  # noqa: N818  # says what a part is, and never leaves this module
    """A part of a schema says more than is understood here."""


class _Shape(NamedTuple):
    """What is known of the values at one place."""

    schema: dict[str, Any]
    largest: int
    """Bytes of the largest that are valid."""
    take: Callable[[Any], Any] | None = None
    """Copies a container of exact types, no larger than valid ones are; else gives None."""
    copy: Callable[[Any], Any] | None = None
    """Copies a valid container."""
    is_optional: bool = False


class _Reading:
    """Reads one schema, part by part."""

    def __init__(self, schema: Any, longest: int) -> None:
        self._schema = schema
        self._longest = longest
        self._parts_left = _PARTS_AT_MOST
        self._patterns = self._references = False

    def root(self) -> _Shape:
        schema = self._schema
        if not isinstance(schema, dict) or schema.get("type") != "object":
            raise _NotPlain
        if "$schema" in schema and dialect_named(schema["$schema"]) is None:
            raise _NotPlain  # one of somebody's own, in which words may mean nothing
        root = {key: part for key, part in schema.items() if key not in _BESIDE}
        shape = self._object(root, _LEVELS)
        if self._patterns and self._references:
            raise _NotPlain  # which patterns an argument meets is no longer told by its own part
        return shape

    def _part(self, part: Any, levels: int) -> _Shape:
        self._parts_left -= 1
        if not isinstance(part, dict) or not levels or self._parts_left < 0:
            raise _NotPlain
        if "$ref" in part:
            return self._part(self._referred(part), levels - 1)
        if "anyOf" in part:
            return self._optional(part, levels - 1)
        kind = part.get("type")
        if kind == "object":
            return (self._object if "properties" in part else self._map)(part, levels - 1)
        return self._list(part, levels - 1) if kind == "array" else self._scalar(part, levels)

    def _referred(self, part: dict[str, Any]) -> Any:
        found = _DEFINED.fullmatch(part["$ref"])
        if found is None or not _OF_REFERENCES.issuperset(part):
            raise _NotPlain
        self._references = True
        return self._schema.get(found[1], {}).get(found[2])

    def _optional(self, part: dict[str, Any], levels: int) -> _Shape:
        """Read what is one thing or null."""
        others = [branch for branch in part["anyOf"] if branch != _NULL]
        if len(others) != 1 or not _OF_OPTIONAL.issuperset(part):
            raise _NotPlain
        shape = self._part(others[0], levels)
        return shape._replace(schema={"anyOf": [shape.schema, _NULL]}, is_optional=True)

    def _object(self, part: dict[str, Any], levels: int) -> _Shape:
        properties = part.get("properties")
        if not isinstance(properties, dict) or not _OF_OBJECTS.issuperset(part):
            raise _NotPlain
        if len(properties) > _PROPERTIES_AT_MOST:
            raise _NotPlain
        shapes = {name: self._part(inside, levels) for name, inside in properties.items()}
        inner = {name: shape.take for name, shape in shapes.items() if shape.take}
        copies = [(name, shape.copy) for name, shape in shapes.items() if shape.copy]
        return _Shape(
            {
                **part,
                "properties": {name: shape.schema for name, shape in shapes.items()},
                "additionalProperties": False,
            },
            sum(_WIDEST * len(name) + shape.largest for name, shape in shapes.items()) + _VALUE,
            _taking_object(inner),
            _copying_object(copies) if copies else dict.copy,
        )

    def _map(self, part: dict[str, Any], levels: int) -> _Shape:
        """Read what holds scalars by names of a caller's own."""
        if not _OF_MAPS.issuperset(part):
            raise _NotPlain
        shape = self._part(part.get("additionalProperties"), levels)
        if shape.take is not None:
            raise _NotPlain
        most = min(part.get("maxProperties", _PROPERTIES_AT_MOST), _PROPERTIES_AT_MOST)
        return _Shape(
            {
                **part,
                "additionalProperties": shape.schema,
                "propertyNames": {"maxLength": self._longest},
                "maxProperties": most,
            },
            _PROPERTIES_AT_MOST * (_WIDEST * self._longest + shape.largest) + _VALUE,
            _take_map,
            dict.copy,
        )

    def _list(self, part: dict[str, Any], levels: int) -> _Shape:
        if not _OF_LISTS.issuperset(part):
            raise _NotPlain
        shape = self._part(part.get("items"), levels)
        if shape.take is not None and shape.is_optional:
            raise _NotPlain
        most = min(part.get("maxItems", _ITEMS_AT_MOST), _ITEMS_AT_MOST)
        return _Shape(
            {**part, "items": shape.schema, "maxItems": most},
            _ITEMS_AT_MOST * shape.largest + _VALUE,
            _taking_list(shape.take),
            _copying_list(shape.copy),
        )

    def _scalar(self, part: dict[str, Any], levels: int) -> _Shape:
        if not _OF_SCALARS.issuperset(part):
            raise _NotPlain
        named = part.get("type", [])
        if named == "integer" and part.keys() - _REMARKS == {"type"}:
            return _Shape(_INTEGER, _VALUE)  # as most are, and quicker to check
        kinds = {named} if isinstance(named, str) else {*named}
        choices = part.get("enum", [part["const"]] if "const" in part else None)
        if choices is not None and kinds != {"integer"}:
            return self._choice(part, choices)
        bounds = self._bounds_of(kinds, self._longest_of(part, levels))
        schema = {**part, **bounds} if bounds.keys().isdisjoint(part) else {"allOf": [part, bounds]}
        return _Shape(schema, _VALUE + _WIDEST * bounds.get("maxLength", 0))

    def _longest_of(self, part: dict[str, Any], levels: int) -> int:
        if "pattern" not in part:
            return self._longest
        if levels != _LEVELS:
            raise _NotPlain  # how much text there may be is bounded for all of an argument
        self._patterns = True
        return min(self._longest, FREE)

    @staticmethod
    def _choice(part: dict[str, Any], choices: list[Any]) -> _Shape:
        if "pattern" in part or not _OF_ONE_SPELLING.issuperset(map(type, choices)):
            raise _NotPlain
        longest = max((len(choice) for choice in choices if type(choice) is str), default=0)
        return _Shape(part, _VALUE + _WIDEST * longest)

    @staticmethod
    def _bounds_of(kinds: set[str], longest: int) -> dict[str, Any]:
        if not kinds or not kinds <= _SIMPLE:
            raise _NotPlain
        bounds: dict[str, Any] = {}
        if "string" in kinds:
            bounds |= {"maxLength": longest, **_READ}
        if "number" in kinds:
            bounds |= _WITHIN
        elif "integer" in kinds:
            bounds["allOf"] = [_NO_FLOAT]  # not beside others: draft 7 has it alone
        return bounds


def _taking_object(inner: Mapping[str, Callable[[Any], Any]]) -> Callable[[Any], Any]:
    def take(value: Any) -> Any:
        if type(value) is not dict or len(value) > _PROPERTIES_AT_MOST:
            return None
        taken = value.copy()
        for name, item in taken.items():
            # A name of another type may say of itself what it likes.
            if type(name) is not str:
                return None
            if type(item) not in SCALARS:
                taken[name] = found = inner[name](item) if name in inner else None
                if found is None:
                    return None
        return taken

    return take


def _take_map(value: Any) -> Any:
    if type(value) is not dict or len(value) > _PROPERTIES_AT_MOST:
        return None
    is_plain = SCALARS.issuperset(map(type, value.values())) and _NAMES.issuperset(map(type, value))
    return value.copy() if is_plain else None


def _taking_list(take: Callable[[Any], Any] | None) -> Callable[[Any], Any]:
    def take_scalars(items: Any) -> Any:
        if type(items) is not list or len(items) > _ITEMS_AT_MOST:
            return None
        return items.copy() if SCALARS.issuperset(map(type, items)) else None

    def take_containers(items: Any) -> Any:
        if type(items) is not list or len(items) > _ITEMS_AT_MOST:
            return None
        taken = list(map(take, items))  # type: ignore[arg-type]  # asked below
        return None if None in taken else taken

    return take_scalars if take is None else take_containers


def _copying_object(inner: list[tuple[str, Callable[[Any], Any]]]) -> Callable[[Any], Any]:
    def copy(value: dict[str, Any]) -> dict[str, Any]:
        made = value.copy()
        for name, copied in inner:
            item = value.get(name)
            if item is not None:
                made[name] = copied(item)
        return made

    return copy


def _copying_list(copied: Callable[[Any], Any] | None) -> Callable[[Any], Any]:
    return list.copy if copied is None else lambda items: list(map(copied, items))
