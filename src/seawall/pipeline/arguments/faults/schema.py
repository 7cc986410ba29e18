"""Say what is wrong with a schema, all of it at once and with the place.

Only asked when a schema could not be compiled; what at least one draft accepts is no fault.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import jsonschema_rs

from seawall.contract.errors import Fault
from seawall.contract.pointer import escaped
from seawall.pipeline.arguments.likeness import nearest
from seawall.pipeline.arguments.schema.dialects import (
    ANNOTATIONS,
    DIALECTS,
    ENFORCED,
    LISTS,
    MAPS,
    dialect_named,
    is_tolerated,
    subschemas,
)
from seawall.pipeline.arguments.schema.documents import mapping
from seawall.pipeline.arguments.schema.normal_form import owner_of, steps_elsewhere
from seawall.pipeline.arguments.schema.validators import readable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jsonschema_rs import FancyRegexOptions

_FAULTS_AT_MOST = 100
_BAD_PATTERNS_AT_MOST = 10
_TYPES = ("array", "boolean", "integer", "null", "number", "object", "string")


def schema_faults(
    schema: Any,
    *,
    where: str,
    refuse_unknown: bool,
    limits: FancyRegexOptions,
    addresses: frozenset[str] = frozenset(),
) -> list[Fault]:
    """Find what no draft accepts; `addresses` may be named by `$schema` beside the drafts."""
    found: list[Fault] = []
    bad_patterns = 0
    seen: set[int] = set()
    waiting: list[tuple[str, Any]] = [("", schema)]
    while waiting and len(found) < _FAULTS_AT_MOST:
        place, node = waiting.pop()
        if id(node) in seen:
            continue
        said = list(_node_faults(node, refuse_unknown=refuse_unknown))
        if bad_patterns < _BAD_PATTERNS_AT_MOST:  # each takes long to find out
            unreadable = list(_pattern_faults(node, limits))
            bad_patterns += len(unreadable)
            said += unreadable
        found += [Fault(message, key=f"{where}{place}{step}") for step, message in said]
        if isinstance(node, dict):
            seen.add(id(node))
            below = [(place + _pointer(steps), child) for steps, child in subschemas(node)]
            waiting += reversed(below + _elsewhere(schema, node))
    if isinstance(schema, dict) and "$schema" in schema:
        found += _draft_faults(schema["$schema"], where, addresses)
    return found[:_FAULTS_AT_MOST]


def _elsewhere(root: Any, node: dict[str, Any]) -> list[tuple[str, Any]]:
    """Give what a reference leads to, if no schema belongs there."""
    reference = node.get("$ref")
    steps = steps_elsewhere(reference) if isinstance(reference, str) else None
    owner, step = owner_of(root, steps) if steps else (None, None)
    return [(_pointer(steps or ()), owner[step])] if owner is not None else []


def _pointer(steps: Iterable[str]) -> str:
    return "".join(f"/{escaped(step)}" for step in steps)


def _draft_faults(uri: Any, where: str, addresses: frozenset[str]) -> list[Fault]:
    if dialect_named(uri) is not None or (isinstance(uri, str) and uri in addresses):
        return []
    known = ", ".join(dialect.uri for dialect in DIALECTS.values())
    message = f"names no draft that is known ({shown(uri)}); leave it out or use one of {known}"
    return [Fault(message, key=f"{where}/$schema")]


def _node_faults(node: Any, *, refuse_unknown: bool) -> Iterator[tuple[str, str]]:
    """Give the faults of one node: the way to each below it, and what is wrong."""
    if not isinstance(node, dict):
        if not isinstance(node, bool):
            yield "", f"must be a schema (an object or a boolean), not {shown(node)}"
        return
    for keyword, value in node.items():
        step = f"/{escaped(keyword)}"
        if keyword in _RULES:
            complaint = _RULES[keyword](value)
            if complaint:
                yield step, complaint
        elif refuse_unknown and keyword not in ENFORCED and not is_tolerated(keyword):
            yield step, _unknown(keyword)
    yield from _pair_faults(node)


def _pattern_faults(node: Any, limits: FancyRegexOptions) -> Iterator[tuple[str, str]]:
    """Give the patterns of one node that cannot be used."""
    if not isinstance(node, dict):
        return
    if "pattern" in node and (complaint := _pattern(node["pattern"], limits)):
        yield "/pattern", complaint
    for pattern in mapping(node, "patternProperties"):
        if complaint := _pattern(pattern, limits):
            yield f"/patternProperties/{escaped(pattern)}", complaint


def _unknown(keyword: str) -> str:
    near = nearest(keyword, ENFORCED | ANNOTATIONS)
    hint = f"; did you mean {near!r}?" if near else ""
    return (
        f"{shown(keyword)} is no keyword, so nothing would enforce it{hint}"
        " (annotations of your own begin with x-)"
    )


def _pair_faults(node: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Give what is wrong with keywords only together."""
    for bound in ("minimum", "maximum"):
        exclusive = f"exclusive{bound.capitalize()}"
        if node.get(exclusive) is True and bound not in node:
            yield f"/{exclusive}", f"is true, but there is no {bound} to exclude; give the number"
    if "prefixItems" in node and isinstance(node.get("items"), list):
        yield "/items", "is a list beside prefixItems; give the schema of the items after those"
    recursive = sorted(node.keys() & {"$recursiveRef", "$recursiveAnchor"})
    if recursive and node.keys() & {"prefixItems", "$dynamicRef", "$dynamicAnchor"}:
        yield f"/{recursive[0]}", "belongs to draft 2019-09, what stands beside it to 2020-12"


def shown(value: Any) -> str:
    """Show a part of a schema, briefly."""
    text = json.dumps(value, ensure_ascii=True, default=str)
    return text if len(text) <= 60 else f"{text[:59]}…"


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _are_names(value: Any) -> bool:
    return (
        isinstance(value, list)
        and all(isinstance(name, str) for name in value)
        and len(set(value)) == len(value)
    )


def _text(value: Any) -> str | None:
    return None if isinstance(value, str) else f"must be a text, not {shown(value)}"


def _flag(value: Any) -> str | None:
    return None if isinstance(value, bool) else f"must be true or false, not {shown(value)}"


def _number(value: Any) -> str | None:
    return None if _is_number(value) else f"must be a number, not {shown(value)}"


def _bound(value: Any) -> str | None:
    return None if isinstance(value, bool) else _number(value)


def _factor(value: Any) -> str | None:
    if _is_number(value) and value > 0:
        return None
    return f"must be a number above 0, not {shown(value)}"


def _count(value: Any) -> str | None:
    if _is_number(value) and value >= 0 and value == int(value):
        return None
    return f"must be a whole number of at least 0, not {shown(value)}"


def _names(value: Any) -> str | None:
    if isinstance(value, bool) or _are_names(value):
        return None
    return f"must be a list of different names, not {shown(value)}"


def _kinds(value: Any) -> str | None:
    names = [value] if isinstance(value, str) else value
    if _are_names(names) and names and set(names) <= set(_TYPES):
        return None
    near = nearest(value.lower(), _TYPES) if isinstance(value, str) else None
    hint = f"; did you mean {near!r}?" if near else ""
    return f"must be one of {', '.join(_TYPES)} or a list of them, not {shown(value)}{hint}"


def _values(value: Any) -> str | None:
    return None if isinstance(value, list) else f"must be a list of values, not {shown(value)}"


def _schemas(value: Any) -> str | None:
    if isinstance(value, list) and value:
        return None
    return f"must be a list of at least one schema, not {shown(value)}"


def _members(value: Any) -> str | None:
    if isinstance(value, Mapping):
        return None
    return f"must be an object of names and schemas, not {shown(value)}"


def _name_lists(value: Any) -> str | None:
    if isinstance(value, Mapping) and all(_are_names(names) for names in value.values()):
        return None
    return f"must be an object of names and lists of different names, not {shown(value)}"


def _dependencies(value: Any) -> str | None:
    if isinstance(value, Mapping) and all(
        _are_names(part) or isinstance(part, (Mapping, bool)) for part in value.values()
    ):
        return None
    return f"must be an object of names and schemas or lists of names, not {shown(value)}"


def _pattern(value: Any, limits: FancyRegexOptions) -> str | None:
    if not isinstance(value, str):
        return _text(value)
    if readable(value, limits) is not None:
        return None
    return f"is no regular expression, or one that is too large: {shown(value)}"


def _address(value: Any) -> str | None:
    if not isinstance(value, str):
        return _text(value)
    try:
        jsonschema_rs.Draft202012Validator({"$id": value}, offline=True)
    except (jsonschema_rs.ValidationError, ValueError):
        return f"must be an address without a fragment, not {shown(value)}"
    return None


_RULES: dict[str, Callable[[Any], str | None]] = {
    **dict.fromkeys(("$schema", "$ref", "$dynamicRef", "$recursiveRef", "$anchor"), _text),
    **dict.fromkeys(("$dynamicAnchor", "format", "title", "description"), _text),
    **dict.fromkeys(("minimum", "maximum"), _number),
    **dict.fromkeys(("exclusiveMinimum", "exclusiveMaximum"), _bound),
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems"), _count),
    **dict.fromkeys(("minProperties", "maxProperties", "minContains", "maxContains"), _count),
    **dict.fromkeys((*MAPS,), _members),
    **dict.fromkeys((*LISTS,), _schemas),
    **dict.fromkeys(("uniqueItems", "$recursiveAnchor"), _flag),
    "nullable": lambda value: None if value is None else _flag(value),
    "$id": _address,
    "multipleOf": _factor,
    "required": _names,
    "type": _kinds,
    "enum": _values,
    "dependencies": _dependencies,
    "dependentRequired": _name_lists,
    "pattern": lambda _: None,
}
"""What is wrong with a keyword's value, or None. Schemas inside are looked at by themselves."""
