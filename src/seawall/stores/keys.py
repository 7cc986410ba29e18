"""The keys of a state: which there are, and what is derived from them.

A key is 32 bytes. The first of several seals; all of them open, so a key is replaced by putting
the new one before it. Digests come from the last, so that what was digested before still compares.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import os
import secrets
import stat
from contextlib import suppress
from typing import TYPE_CHECKING

from seawall.contract.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

VARIABLE = "SEAWALL_STATE_KEY"
KEY_BYTES = 32
ID_BYTES = 4


class Keys:
    """One key or several, the current one first."""

    __slots__ = ("_keys",)

    def __init__(self, keys: Sequence[bytes]) -> None:
        if not keys or any(len(key) != KEY_BYTES for key in keys):
            raise ConfigurationError(
                f"a key of a state must have {KEY_BYTES} bytes; secrets.token_bytes makes one"
            )
        self._keys = tuple(dict.fromkeys(keys))

    def __repr__(self) -> str:
        return f"Keys({', '.join(id_of(key).hex() for key in self._keys)})"

    @property
    def all(self) -> tuple[bytes, ...]:
        """The keys themselves, the current one first."""
        return self._keys

    def for_digests(self) -> bytes:
        """The key of digests; stays the same while the oldest key is kept."""
        return derived(self._keys[-1], "digest")


def id_of(key: bytes) -> bytes:
    """Give the name of a key; says nothing about it."""
    return derived(key, "id")[:ID_BYTES]


def derived(key: bytes, purpose: str) -> bytes:
    """Derive a key for one purpose."""
    return hmac.digest(key, b"seawall state " + purpose.encode(), hashlib.sha256)


def read_keys(text: str, where: str) -> list[bytes]:
    """Read keys in hexadecimal or base64, between commas, blanks or ends of lines."""
    found = [_key(part, where) for part in text.replace(",", " ").split()]
    if not found:
        raise ConfigurationError(f"{where} holds no key; {_HOW}")
    return found


_HOW = f"a key is {KEY_BYTES} bytes in hexadecimal or base64, as `openssl rand -hex 32` gives"


def _key(text: str, where: str) -> bytes:
    decoders = (bytes.fromhex, lambda part: base64.b64decode(part, validate=True))
    for decode in decoders:
        with suppress(ValueError, binascii.Error):
            key = decode(text)
            if len(key) == KEY_BYTES:
                return key
    # What it is instead is not said: it may be nearly the key.
    raise ConfigurationError(f"{where} holds something that is no key; {_HOW}")


def keys_for(path: Path | None, given: bytes | None) -> Keys | None:
    """Find the keys: given, from the environment, and from the file beside an SQLite file.

    That file is made with a new key if there are no others. None means that nothing is sealed.
    """
    found = [] if given is None else [given]
    text = os.environ.get(VARIABLE, "")
    if not found and text.strip():
        found = read_keys(text, VARIABLE)
    if path is not None:
        beside = path.with_name(f"{path.name}.key")
        if not found and not beside.exists():
            _make(beside)
        if beside.exists():
            found += _from_file(beside)
    return Keys(found) if found else None


def _from_file(path: Path) -> list[bytes]:
    mode = path.stat().st_mode
    if os.name == "posix" and stat.S_IMODE(mode) & 0o077:
        raise ConfigurationError(
            f"others may read the key of the state: {path} must be for its owner alone"
            f" (chmod 600 {path})"
        )
    return read_keys(path.read_text("utf-8", "replace"), str(path))


def _make(path: Path) -> None:
    """Write a new key; when two do so at once, one of them wins and both use that."""
    draft = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(handle, "w") as file:
            file.write(f"{secrets.token_hex(KEY_BYTES)}\n")
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileExistsError):
            path.hardlink_to(draft)
    finally:
        draft.unlink()
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    """See to it that a power cut does not take the name of a new file away."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
