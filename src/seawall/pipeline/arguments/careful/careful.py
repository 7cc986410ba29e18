"""Mend arguments where a person would read them without doubt, and leave all else alone.

A value that its own subschema accepts stays as it is, apart from 3.0 for an integer, which
becomes 3. What is not accepted is said in the type that is wanted if that loses nothing:
digits as a number, JSON text as the object it is, an optional null as left out. Whether the
outcome is valid is for the check that follows. The arguments given are never changed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from seawall.contract.pointer import escaped
from seawall.pipeline.arguments.careful.places import Place, Places, Union
from seawall.pipeline.arguments.careful.scalars import NOTHING, listed, scalar
from seawall.pipeline.arguments.careful.subschemas import Schema, Subschemas
from seawall.pipeline.arguments.latest import Latest
from seawall.pipeline.arguments.reading.reader import MAX_DEPTH, MAX_DIGITS, ArgumentTextFault
from seawall.pipeline.arguments.reading.text import read

_WORK = 400_000
"""What mending one call may cost, in steps of about 0.1 µs."""
_LOOK = 15
_CHOOSE = 25
"""What trying an alternative costs, besides going through the value."""
_NOTES_AT_MOST = 64
_LONGEST_POINTER = 200
_EMPTY = ("", "null")
_CONTAINERS = (dict, list, tuple)
_START = re.compile("\\s*+\ufeff?+\\s*+([\\[{\"'`~])")
_BROKEN = object()
"""A text that begins like a container and is none: cut off, or no JSON."""

AnySchema = Mapping[str, Any] | bool
Path = tuple["Path", str | int, int] | None
"""Where we are: the way to what encloses it, the last step, and how many steps there are."""


class Careful:
    """Mends the arguments of one tool.

    `schema` is what `is_valid` was compiled from; it must not change. Subschemas are compiled
    when the first call needs them, so a tool that is always called rightly pays for none; they are
    kept for the tools that needed theirs last. May be used by several threads.
    """

    __slots__ = ("__weakref__", "_formats", "_is_valid", "_root", "_schema", "_wants_integers")

    def __init__(
        self,
        schema: AnySchema,
        is_valid: Callable[[Any], bool],
        *,
        validate_formats: bool = True,
    ) -> None:
        self._schema = schema
        self._is_valid = is_valid
        self._formats = validate_formats
        self._root: Place | None = None
        self._wants_integers = _names_integers(schema)

    def mend(self, value: dict[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
        """Give the arguments to check, and what was mended and how; never a value.

        The same object comes back when nothing was to be mended.
        """
        if self._is_valid(value):
            if not self._wants_integers:
                return value, ()
            others = [item for item in value.values() if type(item) not in _NO_FLOATS]
            if not (others and _has_whole_float(others)):
                return value, ()
        return self._mended(value)

    def _mended(self, value: dict[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
        place = self._root or self._made()
        mending = _Mending(value, wants_integers=self._wants_integers)
        try:
            mended = mending.value(place, value, None, wraps=False)
        except RecursionError:
            # The caller's own stack is nearly used up; an unmended value is refused, not wrong.
            return value, ()
        return mended, mending.said()

    def _made(self) -> Place:
        root = dict(self._schema) if isinstance(self._schema, Mapping) else {}
        subschemas = Subschemas(root, self._is_valid, validate_formats=self._formats)
        place = self._root = Places(subschemas).place((root,))
        _MENDED.made(self)
        return place

    def forget(self) -> None:
        """Let go of what was compiled; it is made again when it is needed."""
        self._root = None


_MENDED = Latest(500)
"""Who has compiled subschemas: of 10,000 tools all may be called with what has to be mended."""


class _Mending:
    """The work on one set of arguments."""

    def __init__(self, value: dict[str, Any], *, wants_integers: bool) -> None:
        self._wants_integers = wants_integers
        self._narrows = wants_integers and _has_whole_float(value)
        self._work = _WORK
        self._notes: list[tuple[Path, str]] = []
        self._texts: dict[int, tuple[str, Any]] = {}
        self._memory: dict[tuple[int, int, bool], _Outcome] = {}

    def said(self) -> tuple[str, ...]:
        """Tell what was mended, in the order of the arguments."""
        said = [f"{_pointer(path)} {how}" for path, how in self._notes[:_NOTES_AT_MOST]]
        if len(self._notes) > _NOTES_AT_MOST:
            said.append("and more")
        return tuple(said)

    def value(self, place: Place, value: Any, path: Path, *, wraps: bool = True) -> Any:
        """Mend one value by what is said of its place; leave it alone when the work is used up."""
        self._work -= _LOOK
        if self._work < 0:
            return value
        if not _goes_in_at_once(place, value, path) and place.accepts(value):
            return self._narrowed(place, value, path)
        if place.is_simple:
            return self._by_type(place, value, path, wraps=wraps)
        key = (id(place), id(value), wraps)
        known = self._memory.get(key)
        if known is not None:
            self._notes += known.notes
            return known.mended
        mark = len(self._notes)
        mended = self._by_alternatives(place, value, path, wraps=wraps)
        notes = tuple(self._notes[mark : mark + _NOTES_AT_MOST + 1])
        self._memory[key] = _Outcome(place, value, mended, notes)
        return mended

    def _by_type(self, place: Place, value: Any, path: Path, *, wraps: bool) -> Any:
        if isinstance(value, dict) and place.allows("object"):
            return self._members(place, value, path)
        if isinstance(value, (list, tuple)) and place.allows("array"):
            return self._items(place, value, path)
        if place.choices is not None:
            return self._listed(place.choices, value, path)
        return self._converted(place, value, path, wraps=wraps)

    def _members(self, place: Place, value: dict[str, Any], path: Path) -> dict[str, Any]:
        mended = value
        self._work -= len(value) * place.patterns * 4
        for key, item in value.items():
            member = place.member(key) if self._work >= 0 else None
            if member is None:
                continue
            if type(item) in _NO_FLOATS and member.accepts(item):
                self._work -= _LOOK
                continue
            here = _step(path, key)
            dropped = _is_to_drop(place, member, key, item)
            fixed = item if dropped else self.value(member, item, here)
            if fixed is item and not dropped:
                continue
            if mended is value:
                mended = dict(value)
            if dropped:
                self._note(here, "dropped")
                del mended[key]
            else:
                mended[key] = fixed
        return mended

    def _items(self, place: Place, value: Any, path: Path) -> Any:
        mended = value
        for index, item in enumerate(value):
            member = place.item(index)
            if member is None:
                continue
            # An item that should be a list is not wrapped: [1, 2] may be one row or two.
            fixed = self.value(member, item, _step(path, index), wraps=False)
            if fixed is not item:
                if mended is value:
                    mended = list(value)
                mended[index] = fixed
        return mended

    def _by_alternatives(self, place: Place, value: Any, path: Path, *, wraps: bool) -> Any:
        self._work -= (_CHOOSE + _weight(value, self._work)) * place.effort
        if self._work < 0:
            return value
        if place.unions:
            return self._by_branches(place, place.unions[0], value, path, wraps=wraps)
        mended = self._by_type(place, value, path, wraps=wraps)
        further = place.under_conditions(mended)
        if further is place or place.accepts(mended):
            return mended
        mark = len(self._notes)
        conditioned = self.value(further, mended, path, wraps=wraps)
        if place.accepts(conditioned):
            return conditioned
        del self._notes[mark:]
        return mended

    def _by_branches(
        self, place: Place, union: Union, value: Any, path: Path, *, wraps: bool
    ) -> Any:
        """Take the first branch that works, among those that accept the value if any does."""
        accepting = [b for b in union.branches if place.branch_accepts(b, value)]
        branches = accepting or self._promising(place, union, value, path)
        chosen = [place.choose(union, branch) for branch in branches]
        real = [further for further in chosen if further.wants != ("null",)]
        nearest, mark = value, len(self._notes)
        said: list[tuple[Path, str]] = []
        for further in chosen:
            mended = self.value(further, value, path, wraps=wraps)
            if mended is not value and further.accepts(mended):
                return mended
            if real == [further]:
                # Still not valid, but then the fault is told in the terms of what was meant.
                nearest, said = mended, self._notes[mark:]
            del self._notes[mark:]
        self._notes += said
        return nearest

    def _promising(self, place: Place, union: Union, value: Any, path: Path) -> list[Schema]:
        """Leave out branches that cannot be met, lest they be tried with each of another union."""
        if len(place.unions) == 1:
            return union.branches
        found = []
        mark = len(self._notes)
        for branch in union.branches:
            trial = self.value(place.choose_only(union, branch), value, path)
            if place.branch_accepts(branch, trial):
                found.append(branch)
            del self._notes[mark:]
        return found

    def _listed(self, choices: list[Any], value: Any, path: Path) -> Any:
        self._work -= _LOOK + len(choices) * 10
        choice = listed(value, choices)
        if choice is NOTHING:
            return value
        self._note(path, "matched to a listed value")
        return choice

    def _converted(self, place: Place, value: Any, path: Path, *, wraps: bool) -> Any:
        kinds = place.wants
        if isinstance(value, str):
            self._work -= min(len(value), MAX_DIGITS)  # exact numbers take quadratic time
        is_settled = len(kinds) - ("null" in kinds) == 1
        nearest, mark = value, len(self._notes)
        said: list[tuple[Path, str]] = []
        for wanted in kinds:
            mended = self._said_as(place, wanted, value, path, wraps=wraps)
            if mended is not NOTHING and place.accepts(mended):
                return mended
            if mended is not NOTHING and is_settled:
                nearest, said = mended, self._notes[mark:]
            del self._notes[mark:]
        self._notes += said
        return nearest

    def _said_as(self, place: Place, wanted: str, value: Any, path: Path, *, wraps: bool) -> Any:
        if wanted == "object":
            return self._decoded(place, dict, value, path)
        if wanted == "array":
            decoded = self._decoded(place, list, value, path)
            if decoded is NOTHING and wraps:
                return self._wrapped(place, value, path)
            return decoded
        mended = scalar(value, wanted)
        if mended is not NOTHING:
            kind = "text" if isinstance(value, str) else "integer"
            self._note(path, f"{kind} to {'text' if wanted == 'string' else wanted}")
        return mended

    def _decoded(self, place: Place, kind: type, value: Any, path: Path) -> Any:
        decoded = self._inside(value, path)
        if not isinstance(decoded, kind):
            return NOTHING
        self._note(path, "text to object" if kind is dict else "text to list")
        return self.value(place, decoded, path, wraps=False)

    def _inside(self, value: Any, path: Path) -> Any:
        """Read a text as the container it is the JSON text of."""
        if not isinstance(value, str):
            return NOTHING
        known = self._texts.get(id(value))
        if known is None:
            container, is_strict = _container(value, path[2] if path else 0)
            self._work -= _LOOK + (len(value) >> 4 if is_strict else len(value) * 5)
            known = self._texts[id(value)] = (value, container)
            if self._wants_integers and _has_whole_float(container):
                self._narrows = True
        return known[1]

    def _wrapped(self, place: Place, value: Any, path: Path) -> Any:
        """Make one item a list of one, if it is certain that it is one."""
        if place.is_tuple or value is None or isinstance(value, (list, tuple)):
            return NOTHING
        if isinstance(value, str) and value.strip() in _EMPTY:
            return NOTHING
        if self._inside(value, path) is _BROKEN:
            return NOTHING
        mark = len(self._notes)
        self._note(path, "wrapped in a list")
        member = place.item(0)
        if member is None:
            return [value]
        item = self.value(member, value, _step(path, 0), wraps=False)
        if member.accepts(item):
            return [item]
        del self._notes[mark:]
        return NOTHING

    def _narrowed(self, place: Place, value: Any, path: Path) -> Any:
        """Hand over whole numbers as integers inside a value that is valid as it is."""
        if not self._narrows or not isinstance(value, (float, *_CONTAINERS)):
            return value
        self._work -= _LOOK
        if self._work < 0:
            return value
        if not place.is_simple:
            self._work -= (_CHOOSE + _weight(value, self._work)) * place.effort
            further = self._settled(place, value)
            return value if further is None else self._narrowed(further, value, path)
        if isinstance(value, dict):
            return self._narrowed_members(place, value, path)
        if isinstance(value, float):
            return self._whole(place, value, path)
        return self._narrowed_items(place, value, path)

    def _narrowed_members(self, place: Place, value: dict[str, Any], path: Path) -> dict[str, Any]:
        mended = value
        self._work -= len(value) * place.patterns * 4
        for key, item in value.items():
            member = place.member(key) if self._work >= 0 else None
            fixed = item if member is None else self._narrowed(member, item, _step(path, key))
            if fixed is not item:
                mended = dict(value) if mended is value else mended
                mended[key] = fixed
        return mended

    def _narrowed_items(self, place: Place, value: Any, path: Path) -> Any:
        mended = value
        for index, item in enumerate(value):
            member = place.item(index)
            fixed = item if member is None else self._narrowed(member, item, _step(path, index))
            if fixed is not item:
                mended = list(value) if mended is value else mended
                mended[index] = fixed
        return mended

    def _settled(self, place: Place, value: Any) -> Place | None:
        """Give the place with the alternative taken that accepts the value."""
        if self._work < 0:
            return None
        if not place.unions:
            further = place.under_conditions(value)
            return further if further is not place else place.without_conditions()
        union = place.unions[0]
        for branch in union.branches:
            if place.branch_accepts(branch, value):
                return place.choose(union, branch)
        return None

    def _whole(self, place: Place, value: float, path: Path) -> Any:
        if not value.is_integer() or abs(value) > _EXACT:
            return value
        listed_whole = any(type(c) is int and c == value for c in place.choices or ())
        if not listed_whole and ("integer" not in place.wants or "number" in place.wants):
            return value
        self._note(path, "number to integer")
        return int(value)

    def _note(self, path: Path, how: str) -> None:
        if len(self._notes) <= _NOTES_AT_MOST:
            self._notes.append((path, how))


class _Outcome(NamedTuple):
    """What became of a value at a place; holds on to both so that their ids stay theirs."""

    place: Place
    value: Any
    mended: Any
    notes: tuple[tuple[Path, str], ...]


def _goes_in_at_once(place: Place, value: Any, path: Path) -> bool:
    """Whether to go into a container without asking first whether all of it is valid.

    Asking at every level would cost depth times size; asking at some still lets large valid
    parts through at once.
    """
    level = path[2] if path else 0
    return bool(level & (level - 1)) and isinstance(value, _CONTAINERS) and place.is_plain


def _is_to_drop(place: Place, member: Place, key: str, item: Any) -> bool:
    """Whether an optional field is invalid only because it was to say: nothing."""
    if item is not None and not (isinstance(item, str) and item in _EMPTY):
        return False
    if not member.is_meetable or not place.is_optional(key) or member.accepts(item):
        return False
    return not (item and member.choices and isinstance(listed(item, member.choices), str))


def _container(text: str, level: int) -> tuple[Any, bool]:
    """Read the container that a text is; also say whether that was quick."""
    start = _START.match(text)
    if start is None:
        return NOTHING, True
    try:
        decoded, repaired = read(text, repair=True, depth=MAX_DEPTH - level)
    except ArgumentTextFault as fault:
        is_cut = start.group(1) == '"' and fault.reason == "arguments_truncated"
        return (_BROKEN if is_cut or start.group(1) in "[{" else NOTHING), False
    return (decoded if isinstance(decoded, (dict, list)) else NOTHING), not repaired


def _step(path: Path, key: str | int) -> Path:
    return (path, key, path[2] + 1 if path else 1)


def _pointer(path: Path) -> str:
    steps = []
    while path is not None:
        steps.append(escaped(path[1]))
        path = path[0]
    pointer = "".join(f"/{step}" for step in reversed(steps))
    return pointer if len(pointer) <= _LONGEST_POINTER else f"{pointer[:_LONGEST_POINTER]}…"


def _weight(value: Any, limit: int) -> int:
    """Count roughly what checking a value costs, at most a little more than `limit`."""
    weight = 1
    waiting = [value]
    while waiting and weight <= limit:
        item = waiting.pop()
        if isinstance(item, str):
            weight += len(item) >> 6
        elif isinstance(item, _CONTAINERS):
            weight += len(item)
            waiting += item.values() if isinstance(item, dict) else item
    return weight


_EXACT = (1 << 53) - 1
"""Beyond it one float stands for several whole numbers, so it cannot be told which was meant."""


_NO_FLOATS = frozenset((str, int, bool, type(None)))
"""What neither is a float nor holds one, as nearly all is."""


def _has_whole_float(value: Any) -> bool:
    waiting: list[Any] = [(value,)]
    while waiting:
        held = waiting.pop()
        for item in held.values() if isinstance(held, dict) else held:
            if type(item) in _NO_FLOATS:
                continue
            if isinstance(item, float):
                if item.is_integer():
                    return True
            elif isinstance(item, (dict, list, tuple)):
                waiting.append(item)
    return False


def _names_integers(schema: Any) -> bool:
    """Whether a schema may want an integer anywhere; says yes when in doubt."""
    waiting = [schema]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Mapping):
            waiting += node.values()
        elif isinstance(node, list):
            waiting += node
        elif node == "integer" or type(node) is int:
            return True
    return False
