"""What is said about a call in lenient mode: to the model, and in its span."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from seawall.contract.failure import dotted
from seawall.pipeline.arguments.faults.explain import show
from seawall.pipeline.arguments.lenient.values import NOT_FINITE, child, is_same, json_text, kind_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from seawall.contract.failure import Issue

_MAX_CHANGES = 100
_LONGEST = 2_000
_ROOM = 10_000
"""About how many characters of arguments are echoed in full."""
_WORDS = {"string": "text", "array": "list", **dict.fromkeys(NOT_FINITE, "number")}


def validation_text(tool: str, faults: Iterable[Issue], received: Any) -> str:
    """Tell a model which arguments are wrong; `received` is echoed as it came, not as coerced.

    Only up to a size that a reader takes; beyond that it is cut.
    """
    lines = "\n".join(f"  - {_place(fault.path)}: {fault.message[:_LONGEST]}" for fault in faults)
    echoed = json_text(received, indent=2) if _is_short(received) else show(received, {})
    return f'Validation failed for tool "{tool}":\n{lines}\n\nReceived arguments:\n{echoed}'


def _is_short(value: Any) -> bool:
    room = _ROOM
    waiting = [value]
    while waiting:
        item = waiting.pop()
        room -= 8
        if isinstance(item, dict):
            room -= sum(len(key) if isinstance(key, str) else 8 for key in item)
            waiting += item.values()
        elif isinstance(item, list | tuple):
            waiting += item
        elif isinstance(item, str):
            room -= len(item)
        elif isinstance(item, int):
            room -= item.bit_length() // 3
        if room < 0 or len(waiting) > room:
            return False
    return True


def _place(pointer: str) -> str:
    return dotted(pointer) if pointer else "root"


def changes(before: Any, after: Any) -> tuple[str, ...]:
    """List where two values differ, as pointers and kinds: `/limit text to integer`.

    What was not changed is the same object in both. A long list is cut, and says so.
    """
    found: list[str] = []
    waiting = [("", before, after)]
    while waiting:
        path, old, new = waiting.pop()
        if isinstance(old, dict) and isinstance(new, dict):
            found += [f"{child(path, key)} null dropped" for key in old if key not in new]
            pairs = [(child(path, key), old[key], new[key]) for key in old if key in new]
        elif isinstance(old, list | tuple) and isinstance(new, list):
            pairs = [(f"{path}/{at}", *both) for at, both in enumerate(zip(old, new, strict=True))]
        else:
            pairs = []
            if not is_same(old, new):
                found.append(f"{path} {_word(old)} to {_word(new)}".lstrip())
        waiting += [pair for pair in reversed(pairs) if pair[1] is not pair[2]]
    if len(found) > _MAX_CHANGES:
        found[_MAX_CHANGES:] = [f"and {len(found) - _MAX_CHANGES} more"]
    return tuple(found)


def _word(value: Any) -> str:
    kind = kind_of(value)
    return _WORDS.get(kind, kind)
