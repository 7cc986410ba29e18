"""`json_transform`: reshape a JSON document by a list of small operations."""

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

from pydantic import Field

from seawall.contract.failure import ToolFailed
from seawall.toolkit.documents import MAX_SIZE, Json, fits, parsed, read_json, shape
from seawall.toolkit.refusal import invalid, shown

MAX_OPERATIONS = 64
MAX_KEYS = 1000


def json_transform(
    document: Annotated[Any, Field(description="Any JSON value; text that holds JSON is read.")],
    operations: Annotated[
        list[Any] | str,
        Field(
            description=(
                'In order, such as {"op": "pick", "keys": ["id", "name"]}. pick: keep keys of an'
                " object or indices of an array. omit: drop keys. rename: from, to. values: an"
                " object's values. flatten: an array, one level. map_pick: pick from each object"
                " of an array. wrap: put the document under key."
            )
        ),
    ],
) -> Any:
    """Reshape JSON with pick, omit, rename, values, flatten, map_pick and wrap, in order.

    A wrong shape is refused with the operation and the shape that was found; nothing is guessed.
    """
    current = parsed(document)
    for position, operation in enumerate(_listed(operations)):
        current = _applied(current, operation, f"operations/{position}")
    if not fits(current):
        raise invalid("operations", f"the result is larger than {MAX_SIZE} characters of JSON")
    return current


def _listed(operations: list[Any] | str) -> Sequence[Any]:
    found: Any = operations
    if isinstance(operations, str):
        try:
            found = read_json(operations)
        except ValueError as error:
            raise invalid("operations", f"operations is no JSON: {error}") from None
    if not isinstance(found, list):
        raise invalid("operations", f"operations must be an array, not {shape(found)}")
    if len(found) > MAX_OPERATIONS:
        raise invalid("operations", f"more than {MAX_OPERATIONS} operations")
    return found


def _applied(document: Json, operation: Json, place: str) -> Json:
    if not isinstance(operation, dict):
        raise invalid(place, f"an operation must be an object, not {shape(operation)}")
    name = operation.get("op")
    if name is None:
        raise _missing(place, "op", "an operation")
    transform = _OPERATIONS.get(name) if isinstance(name, str) else None
    if transform is None:
        known = ", ".join(_OPERATIONS)
        raise invalid(f"{place}/op", f"unknown operation {shown(str(name))}; known: {known}")
    return transform(document, operation, place)


def _pick(document: Json, operation: Mapping[str, Json], place: str) -> Json:
    keys = _keys(operation, place)
    if isinstance(document, dict):
        return _picked(document, _order(keys))
    if not isinstance(document, list):
        raise _misshapen(place, "pick", "an object or an array", document)
    indices = (index for key in keys if (index := _index(key)) is not None)
    chosen = [document[index] for index in indices if index < len(document)]
    if len(chosen) > len(document) and not fits(chosen):
        # Only repeats can make a document grow; caught here before they multiply.
        raise invalid(f"{place}/keys", f"the result is larger than {MAX_SIZE} characters of JSON")
    return chosen


def _picked(document: Mapping[str, Json], order: Mapping[str, int]) -> dict[str, Json]:
    # Costs no more than the smaller of both, so that many keys on many objects stay cheap.
    present = sorted(order.keys() & document.keys(), key=order.__getitem__)
    return {key: document[key] for key in present}


def _order(keys: Sequence[str]) -> dict[str, int]:
    return {key: place for place, key in enumerate(dict.fromkeys(keys))}


def _omit(document: Json, operation: Mapping[str, Json], place: str) -> Json:
    dropped = frozenset(_keys(operation, place))
    if not isinstance(document, dict):
        raise _misshapen(place, "omit", "an object", document)
    return {key: value for key, value in document.items() if key not in dropped}


def _rename(document: Json, operation: Mapping[str, Json], place: str) -> Json:
    source, target = (_text(operation, place, "rename", name) for name in ("from", "to"))
    if not isinstance(document, dict):
        raise _misshapen(place, "rename", "an object", document)
    if source not in document or source == target:
        return document
    if target in document:
        raise invalid(
            f"{place}/to",
            f"rename would overwrite the key {shown(target)}; omit it first, or choose another",
        )
    return {target if key == source else key: value for key, value in document.items()}


def _values(document: Json, operation: Mapping[str, Json], place: str) -> Json:
    if not isinstance(document, dict):
        raise _misshapen(place, operation["op"], "an object", document)
    return list(document.values())


def _flatten(document: Json, operation: Mapping[str, Json], place: str) -> Json:
    if not isinstance(document, list):
        raise _misshapen(place, operation["op"], "an array", document)
    flat: list[Json] = []
    for item in document:
        flat.extend(item) if isinstance(item, list) else flat.append(item)
    return flat


def _map_pick(document: Json, operation: Mapping[str, Json], place: str) -> Json:
    order = _order(_keys(operation, place))
    if not isinstance(document, list):
        raise _misshapen(place, "map_pick", "an array", document)
    return [_picked(item, order) if isinstance(item, dict) else item for item in document]


def _wrap(document: Json, operation: Mapping[str, Json], place: str) -> Json:
    return {_text(operation, place, "wrap", "key"): document}


_OPERATIONS: dict[str, Callable[[Json, Mapping[str, Json], str], Json]] = {
    "pick": _pick,
    "omit": _omit,
    "rename": _rename,
    "values": _values,
    "flatten": _flatten,
    "map_pick": _map_pick,
    "wrap": _wrap,
}


def _keys(operation: Mapping[str, Json], place: str) -> list[str]:
    keys = operation.get("keys", [])
    if not isinstance(keys, list) or not all(_is_key(key) for key in keys):
        raise invalid(f"{place}/keys", "keys must be an array of texts or whole numbers")
    if len(keys) > MAX_KEYS:
        raise invalid(f"{place}/keys", f"more than {MAX_KEYS} keys")
    return [key if isinstance(key, str) else str(key) for key in keys]


def _is_key(key: Json) -> bool:
    if isinstance(key, int):
        return not isinstance(key, bool) and key.bit_length() < 64
    return isinstance(key, str)


def _index(key: str) -> int | None:
    """Read a position in an array; what is none is skipped, as an absent key is."""
    return int(key) if key.isascii() and key.isdecimal() and len(key) < 12 else None


def _text(operation: Mapping[str, Json], place: str, name: str, key: str) -> str:
    if key not in operation:
        raise _missing(place, key, name)
    if not isinstance(operation[key], str):
        raise invalid(f"{place}/{key}", f"{name} needs text as {key}, not {shape(operation[key])}")
    return str(operation[key])


def _missing(place: str, key: str, name: str) -> ToolFailed:
    return invalid(f"{place}/{key}", f"{name} needs {key}", reason="argument_missing")


def _misshapen(place: str, name: str, wanted: str, found: Json) -> ToolFailed:
    return invalid(place, f"{name} needs {wanted}, but the document is {_article(found)}")


def _article(found: Json) -> str:
    name = shape(found)
    return name if name == "null" else f"{'an' if name[0] in 'ao' else 'a'} {name}"
