"""A fingerprint of arguments that says nothing about them without the key."""

from __future__ import annotations

import json
import secrets
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import jsonschema_rs

from seawall.contract.span import Digest
from seawall.pipeline.arguments.reading.bounds import out_of_bounds
from seawall.pipeline.arguments.reading.reader import MAX_BYTES, MAX_VALUES
from seawall.pipeline.plain import Plain

if TYPE_CHECKING:
    from collections.abc import Callable

MAC_BYTES = 16
_KEPT = 256
"""Characters of a text, and bits of a number, where not all of it is digested."""

_NOT_CANONICAL = (ValueError, TypeError, OverflowError, RecursionError)
_canonical = jsonschema_rs.canonical.json.to_string


class Digester:
    """Keyed fingerprints. Without a key from outside they compare within this process only."""

    __slots__ = ("_keyed",)

    def __init__(self, key: bytes | None = None) -> None:
        key = secrets.token_bytes(32) if key is None else key
        if len(key) > 64:
            key = blake2b(key).digest()
        self._keyed = blake2b(key=key, digest_size=MAC_BYTES)

    def of(self, tool: str, arguments: Any) -> Digest:
        """Digest of one tool's arguments; numbers by value, keys in any order."""
        return self.for_tool(tool)(arguments)

    def for_tool(self, tool: str) -> Callable[[Any], Digest]:
        """Give the function that digests one tool's arguments: what they share is hashed once."""
        shared = self._keyed.copy()
        shared.update(f"{tool}\0".encode("utf-8", "surrogatepass"))
        begun = shared.copy

        def digest(arguments: Any) -> Digest:
            try:
                text = _canonical(arguments)
            except _NOT_CANONICAL:
                text = _foreign_text(arguments)
            mac = begun()
            mac.update(text.encode())  # no surrogates: the one refuses, the other escapes them
            # Canonical text escapes control characters and has blanks only inside strings.
            size = len(text)
            return Digest(size, size - text.count(" "), mac.hexdigest())

        return digest

    def of_any(self, tool: str, arguments: Any) -> Digest:
        """Digest of arguments that nobody has looked at, whatever their size.

        The same as `of` up to the bounds that arguments have; beyond, of their beginning alone.
        """
        return self.of(tool, bounded(arguments))

    def text(self, value: str) -> str:
        """Fingerprint of one text, such as a limiter's key."""
        mac = self._keyed.copy()
        mac.update(value.encode("utf-8", "surrogatepass"))
        return mac.hexdigest()


def canonical_text(value: Any) -> str:
    """JSON with sorted keys and no blanks; values that are not JSON stand as their type's name."""
    try:
        return _canonical(value)
    except _NOT_CANONICAL:
        return _foreign_text(value)


def told_apart(*parts: str) -> str:
    """Join texts so that no others give the same, whatever characters are in them."""
    return "".join([f"{len(part)}:{part}" for part in parts])


def bounded(value: Any) -> Any:
    """Give a value itself if it is of a size to work with, else a plain one made of its beginning.

    One value that is held many times takes little memory, and as text more than there is.
    """
    if isinstance(value, str):
        return value if len(value) <= MAX_BYTES else f"{value[:_KEPT]}<{len(value)} characters>"
    return value if out_of_bounds(value) is None else _Beginning().of(value)


def _foreign_text(value: Any) -> str:
    try:
        return json.dumps(_Same().of(value), sort_keys=True, separators=(",", ":"))
    except (ValueError, TypeError, RecursionError):
        return f'"<{type(value).__name__}>"'


class _Beginning(Plain):
    """As much of a value as is quickly told."""

    def __init__(self) -> None:
        super().__init__()
        self._left = MAX_VALUES // 2

    def scalar(self, value: Any) -> Any:
        """Cut texts, and name numbers that take long to write."""
        if isinstance(value, str):
            return value[:_KEPT]
        is_long = isinstance(value, int) and value.bit_length() > _KEPT
        return "<a long number>" if is_long else value


class _Same(Plain):
    """The same for equal values in every run: sets sorted, objects by type, no addresses."""

    def members(self, items: list[Any]) -> list[Any]:
        return sorted(json.dumps(item, sort_keys=True) for item in items)
