"""Tell whether a function asks of its arguments only what its schema says.

Then pydantic need not be asked about what has met the schema: it would give the same values.
Read from what pydantic validates by; what is not known here is taken to ask for more.
"""

from __future__ import annotations

from inspect import Parameter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping


class Bound(dict[str, Any]):
    """Typed values for a function: already validated."""


_WORDS = {
    "int": {"ge", "gt", "le", "lt", "multiple_of"},
    "str": {"min_length", "max_length"},
    "bool": set[str](),
    "float": set[str](),
    "literal": {"expected"},
    "nullable": {"schema"},
    "list": {"items_schema", "min_length", "max_length"},
}
"""What a kind may say, because JSON Schema says the same of it."""
_FIELD = {"type", "schema", "metadata", "validation_alias", "serialization_alias"}
_REMARKS = {"title", "description", "examples", "deprecated"}
_SAME = (int, str, bool, float, type(None))
"""Types of defaults that nobody can change."""


def binding(
    core: Mapping[str, Any], parameters: Iterable[Parameter]
) -> Callable[[dict[str, Any]], Bound] | None:
    """Give what binds arguments that met the schema in exact types; None if pydantic must.

    `core` is the core schema of the model of the parameters.
    """
    fields = _fields(core)
    defaults: dict[str, Any] = {}
    floats: list[str] = []
    for parameter in parameters:
        defaults[parameter.name] = parameter.default
        kind = _kind(fields.get(parameter.name), parameter.default)
        if kind is None:
            return None
        if kind == "float":
            floats.append(parameter.name)
    if not floats and all(default is Parameter.empty for default in defaults.values()):
        return Bound
    return _binding(defaults, floats)


def _binding(defaults: dict[str, Any], floats: list[str]) -> Callable[[dict[str, Any]], Bound]:
    def bind(arguments: dict[str, Any]) -> Bound:
        bound = Bound(defaults)  # what has none is among the arguments
        bound.update(arguments)
        for name in floats:
            if type(bound[name]) is int:
                bound[name] = float(bound[name])
        return bound

    return bind


def _fields(core: Mapping[str, Any]) -> dict[str, Any]:
    """Give the fields by the names of their parameters; none if the model is of another form."""
    model = core.get("schema") if core.get("type") == "model" else None
    if not isinstance(model, dict) or model.get("type") != "model-fields":
        return {}
    return {field.get("validation_alias"): field for field in model["fields"].values()}


def _kind(field: Any, default: Any) -> str | None:
    if field is None or not _FIELD.issuperset(field) or not _is_remark(field.get("metadata")):
        return None
    schema = field["schema"]
    if schema["type"] == "default":
        if type(default) not in _SAME or schema.keys() != {"type", "schema", "default"}:
            return None
        schema = schema["schema"]
    return _kind_of(schema)


def _is_remark(metadata: Any) -> bool:
    """Whether nothing of the schema was said otherwise."""
    if not metadata:
        return True
    return metadata.keys() == {"pydantic_js_updates"} and _REMARKS.issuperset(
        metadata["pydantic_js_updates"]
    )


def _kind_of(schema: Mapping[str, Any]) -> str | None:
    kind: str = schema["type"]
    words = _WORDS.get(kind)
    if words is None or not words.union({"type"}).issuperset(schema):
        return None
    if kind == "nullable":
        return _kind_of(schema["schema"])
    if kind == "literal":
        return kind if all(type(one) is str for one in schema["expected"]) else None
    if kind == "list":
        inside = schema.get("items_schema")
        is_same = inside is not None and _kind_of(inside) not in (None, "float")
        return kind if is_same else None
    return kind
