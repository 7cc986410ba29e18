"""Calls in the shapes in which model APIs give them, and which of them are one.

    ToolCall                                              ours
    ("search", {"query": "x"})                            a pair; the id may follow as a third
    {"id", "function": {"name", "arguments"}}             OpenAI, chat
    {"call_id", "name", "arguments"}                      OpenAI, responses
    {"type": "tool_use", "id", "name", "input"}           Anthropic
    {"functionCall": {"name", "args", "id"}}              Gemini
    {"id", "name", "args"}                                LangChain

Objects of SDKs are read by their `model_dump()`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from seawall.contract.tool import ToolCall
from seawall.pipeline.arguments.reading.reader import MAX_BYTES
from seawall.pipeline.digest import bounded, canonical_text, told_apart
from seawall.pipeline.foreign import attempted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_INSIDE = ("function", "functionCall", "function_call")
_IDS = ("call_id", "id", "tool_call_id")
_ARGUMENTS = ("arguments", "input", "args")


def call_of(given: Any) -> ToolCall:
    """Read one call; raises `TypeError` for what has none of the shapes."""
    if isinstance(given, ToolCall):
        return _in_its_order(given)
    if isinstance(given, (tuple, list)) and 1 <= len(given) <= 3:
        name, arguments, call_id = (*given, None, None)[:3]
        return ToolCall(name, arguments, _id(call_id))
    dump = getattr(given, "model_dump", None)
    shape = dump() if callable(dump) else given
    if isinstance(shape, Mapping):
        return _of_mapping(shape)
    raise TypeError(
        f"a {type(given).__name__} is no call: give a ToolCall, a pair of name and arguments, or"
        " the mapping that a model API gives"
    )


def _in_its_order(call: ToolCall) -> ToolCall:
    name: Any = call.name  # whatever its type says
    call_id: Any = call.id
    if isinstance(name, str) and (call_id is None or isinstance(call_id, str)):
        return call
    kinds = ", ".join(type(part).__name__ for part in (name, call.arguments, call_id))
    raise TypeError(f"a ToolCall is made of name, arguments and id, in this order; not of {kinds}")


def _of_mapping(shape: Mapping[str, Any]) -> ToolCall:
    inner: Mapping[str, Any] = shape
    for key in _INSIDE:
        if isinstance(shape.get(key), Mapping):
            inner = shape[key]
    name = inner.get("name")
    return ToolCall(
        name if isinstance(name, str) else "",
        _first(inner, _ARGUMENTS),
        _id(_first(shape, _IDS) or _first(inner, _IDS)),
    )


def _first(shape: Mapping[str, Any], keys: tuple[str, ...]) -> Any:
    return next((shape[key] for key in keys if shape.get(key) is not None), None)


def _id(value: Any) -> str | None:
    return None if value is None or value == "" else str(value)


class Member:
    """One call of a turn: the id it goes by, and what comes of it."""

    __slots__ = ("call", "call_id", "position", "result", "twin_of", "twins")

    def __init__(self, position: int, call: ToolCall, call_id: str) -> None:
        self.position = position
        self.call = call
        self.call_id = call_id
        self.result: Any = None
        self.twin_of: Member | None = None
        """The same call, given twice: it is run once."""
        self.twins: list[Member] = []
        """Those of them that wait for its result."""


def members_of(
    given: Iterable[Any],
    new_id: Callable[[], str],
    own_name: Callable[[str], str | None] = lambda name: name,
) -> list[Member]:
    """Read a turn's calls. Equal ids are one call if all else is equal, else get ids of their own.

    All are read before any is run, so what is no call is told at once. `own_name` gives the name of
    the tool that is meant.
    """
    if isinstance(given, (str, Mapping, ToolCall)):
        raise TypeError(f"calls must be a list of calls; a single {type(given).__name__} is none")
    calls = [_meant(call_of(each), own_name) for each in given]
    ids = _Ids(call.id for call in calls)
    members = [Member(position, call, call.id or new_id()) for position, call in enumerate(calls)]
    for member in members:
        if ids.is_repeated(member.call.id):
            ids.settle(member)
    return members


def _meant(call: ToolCall, own_name: Callable[[str], str | None]) -> ToolCall:
    own = own_name(call.name)
    if own in (None, call.name):
        return call
    return msgspec.structs.replace(call, name=own)


class _Ids:
    """The ids of a turn, and who goes by them."""

    def __init__(self, ids: Iterable[str | None]) -> None:
        self._counts = Counter(ids)
        self._own: dict[str, int] = {}
        self._known: dict[tuple[str | None, str], Member] = {}

    def is_repeated(self, call_id: str | None) -> bool:
        return call_id is not None and self._counts[call_id] > 1

    def settle(self, member: Member) -> None:
        """Make it the twin of an equal one, or else the only one of its id."""
        call_id = member.call_id
        twin_of = self._known.setdefault((call_id, _content(member.call)), member)
        if twin_of is not member:
            member.twin_of = twin_of
            member.call_id = twin_of.call_id
        elif call_id in self._own:
            member.call_id = self._next(call_id)
        else:
            self._own[call_id] = 1

    def _next(self, call_id: str) -> str:
        """Make an id for the next of that name, of characters that APIs allow."""
        while True:
            self._own[call_id] += 1
            own = f"{call_id}_{self._own[call_id]}"
            if own not in self._counts:
                self._counts[own] = 1
                return own


def _content(call: ToolCall) -> str:
    """All of a call but its id; arguments by value, whether as text or not.

    Beyond the bounds that arguments have, texts are compared as they are, and others by their
    beginning: such calls are refused anyway.
    """
    text = _text(call.arguments)
    return told_apart(f"{call.name}", f"{call.truncated}", f"{call.arguments_error}", text)


def _text(arguments: Any) -> str:
    if isinstance(arguments, str):
        if len(arguments) > MAX_BYTES:
            return f"text:{arguments}"
        try:
            arguments = msgspec.json.decode(arguments) if arguments.strip() else {}
        except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
            return f"text:{arguments}"
    return canonical_text({} if arguments is None else bounded(arguments))


def text_of_id(given: Any) -> str:
    """Make a text of a call id that is none; empty, so that one is drawn, if that cannot be."""
    return "" if given is None else attempted(lambda: str.__getitem__(str(given), slice(200)), "")
