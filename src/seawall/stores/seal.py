"""Authenticated encryption of what a state keeps.

    version (1 byte)  id of the key (4)  nonce (12)  AES-256-GCM text and tag

What is sealed names its place (which table, row and field), so that it cannot be moved to another.
"""

from __future__ import annotations

import os
from hashlib import blake2b
from typing import TYPE_CHECKING

from seawall.contract.errors import MissingExtra, SealBroken
from seawall.stores.keys import ID_BYTES, derived, id_of

if TYPE_CHECKING:
    from seawall.stores.keys import Keys

_VERSION = b"\x01"
_NONCE_BYTES = 12
_NAME_BYTES = 16
_HEAD = 1 + ID_BYTES + _NONCE_BYTES


class Seal:
    """Closes with the current key, opens with any of them."""

    __slots__ = ("_boxes", "_current", "_naming", "_tampered")

    def __init__(self, keys: Keys) -> None:
        try:
            # Only a state with a key needs it.
            from cryptography.exceptions import InvalidTag  # noqa: PLC0415
            from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415
        except ImportError as error:
            raise MissingExtra("sealing what a state keeps", "state") from error
        self._tampered = InvalidTag
        self._boxes = {id_of(key): AESGCM(derived(key, "seal")) for key in keys.all}
        self._current = id_of(keys.all[0])
        self._naming = tuple(derived(key, "name") for key in keys.all)

    @property
    def key_id(self) -> str:
        """Name of the key that seals now."""
        return self._current.hex()

    def has_key_of(self, sealed: bytes) -> bool:
        """Whether the key that sealed this is among ours."""
        return bytes(sealed[1 : 1 + ID_BYTES]) in self._boxes

    def close(self, plain: bytes, place: str) -> bytes:
        """Seal for one place, such as `effects:TOKEN:outcome`."""
        nonce = os.urandom(_NONCE_BYTES)
        text = self._boxes[self._current].encrypt(nonce, plain, place.encode())
        return b"".join((_VERSION, self._current, nonce, text))

    def names(self, plain: bytes) -> tuple[str, ...]:
        """Fingerprint a text under each key, the current one first: to find what was sealed."""
        return tuple(
            blake2b(plain, key=key, digest_size=_NAME_BYTES).hexdigest() for key in self._naming
        )

    def open(self, sealed: bytes, place: str) -> bytes:
        """Give back what was sealed for that place; raises `SealBroken` otherwise."""
        if sealed[:1] != _VERSION or len(sealed) < _HEAD:
            raise SealBroken(
                "what is kept is in the form of another version of Seawall; use that to read it"
            )
        key_id = bytes(sealed[1 : 1 + ID_BYTES])
        box = self._boxes.get(key_id)
        if box is None:
            raise SealBroken(
                f"it was sealed with the key {key_id.hex()}, which is not among ours: add it"
            )
        nonce = bytes(sealed[1 + ID_BYTES : _HEAD])
        try:
            return box.decrypt(nonce, bytes(sealed[_HEAD:]), place.encode())
        except self._tampered as error:
            raise SealBroken(
                "what is kept was changed, or moved from another place; take it from a backup"
            ) from error
