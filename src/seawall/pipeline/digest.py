"""A fingerprint of arguments that says nothing about them without the key."""

from __future__ import annotations

import json
import secrets
from hashlib import blake2b
from typing import Any

import jsonschema_rs

from seawall.contract.span import Digest
from seawall.pipeline.plain import Plain

MAC_BYTES = 16

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
        text = canonical_text(arguments)
        mac = self._keyed.copy()
        mac.update(f"{tool}\0{text}".encode("utf-8", "surrogatepass"))
        # Canonical text escapes control characters and has blanks only inside strings.
        return Digest(len(text), len(text) - text.count(" "), mac.hexdigest())

    def text(self, value: str) -> str:
        """Fingerprint of one text, such as a limiter's key."""
        mac = self._keyed.copy()
        mac.update(value.encode("utf-8", "surrogatepass"))
        return mac.hexdigest()


def canonical_text(value: Any) -> str:
    """JSON with sorted keys and no blanks; values that are not JSON stand as their type's name."""
    try:
        return _canonical(value)
    except (ValueError, TypeError, OverflowError, RecursionError):
        return _foreign_text(value)


def _foreign_text(value: Any) -> str:
    try:
        return json.dumps(_Same().of(value), sort_keys=True, separators=(",", ":"))
    except (ValueError, TypeError, RecursionError):
        return f'"<{type(value).__name__}>"'


class _Same(Plain):
    """The same for equal values in every run: sets sorted, objects by type, no addresses."""

    def members(self, items: list[Any]) -> list[Any]:
        return sorted(json.dumps(item, sort_keys=True) for item in items)
