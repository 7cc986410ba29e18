"""Plain data of any value: bounded whatever its shape, with no part that holds itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

T = TypeVar("T")

MAX_DEPTH = 64
MAX_PARTS = 100_000
"""Values looked at; what comes later stands as `<more>`."""


def base_of(value: Any) -> Any:
    """Give a text, number or bytes of a class of its own as its plain base.

    The class has no say in it: what it makes of `str()` or `int()` is foreign code.
    """
    kind = type(value)
    if kind in _BASES:
        return value
    if issubclass(kind, str):
        return str.__str__(value)
    if issubclass(kind, int):
        return int.__int__(value)
    if issubclass(kind, float):
        return float.__float__(value)
    return bytes(memoryview(value)) if issubclass(kind, (bytes, bytearray)) else value


_BASES = frozenset((str, int, float, bool, bytes, type(None)))


class Plain:
    """Makes plain data of one value; a subclass says what becomes of its parts."""

    def __init__(self) -> None:
        self._open: set[int] = set()
        self._left = MAX_PARTS

    def of(self, value: Any, depth: int = MAX_DEPTH) -> Any:
        """Make plain data of a value and what it holds."""
        self._left -= 1
        if self._left < 0:
            return "<more>"
        if value is None or isinstance(value, (str, bool, int, float)):
            return self.scalar(value)
        if depth == 0:
            return f"<deeper than {MAX_DEPTH} levels>"
        if id(value) in self._open:
            return "<itself>"
        self._open.add(id(value))
        try:
            return self._container(value, depth - 1)
        finally:
            self._open.discard(id(value))

    def _container(self, value: Any, depth: int) -> Any:
        if isinstance(value, dict):
            return {
                self.scalar(_key(key)): self.of(item, depth)
                for key, item in self._first(dict.items(value))
            }
        if isinstance(value, (list, tuple)):
            return [self.of(item, depth) for item in self._first(value)]
        if isinstance(value, (set, frozenset)):
            return self.members([self.of(item, depth) for item in self._first(value)])
        return self.other(value, depth)

    def _first(self, items: Iterable[T]) -> Iterator[T]:
        """Give items until nothing is left to be looked at; the one after that says so."""
        for item in items:
            is_last = self._left <= 0
            yield item
            if is_last:
                return

    def scalar(self, value: Any) -> Any:
        """Make a plain scalar, or a key, of one that JSON knows."""
        return base_of(value)

    def members(self, items: list[Any]) -> list[Any]:
        """Bring the members of a set, plain already, into an order."""
        return items

    def other(self, value: Any, depth: int) -> Any:  # noqa: ARG002  # a subclass may look into it
        """Make plain data of a value that JSON does not know: its type's name."""
        return f"<{type(value).__name__}>"


def _key(key: Any) -> str:
    return base_of(key) if isinstance(key, str) else str(key)
