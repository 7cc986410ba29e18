"""Which server a tool belongs to, as people are told it and as approvals are bound to it.

What it says of itself is its own to choose, so it is named by how it is reached. Secrets are not
shown; what tells two servers apart that look alike is a fingerprint of all of it.
"""

from __future__ import annotations

import json
import shlex
from hashlib import blake2b, scrypt
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from seawall.pipeline.foreign import masked

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

LONGEST = 300
"""Shown of a command or an address."""

_BYTES = 6
_SALT = b"seawall-origin"
_WORK = 2**13
"""Work for each guess where there is no key: about 20 ms, 8 MiB."""


def origin_of_command(
    command: Sequence[str],
    folder: str = "",
    key: bytes | None = None,
    *,
    more: Mapping[str, str] | None = None,
) -> str:
    """Name a server that is started: its command, where it is started, and a fingerprint of both.

    The same command in the same folder has the same name, whenever it is started; `more` is what
    else it is given. With a `key` nobody can try secrets against the fingerprint; without one each
    try takes its time.
    """
    where = f" in {folder}" if folder else ""
    whole = json.dumps([*command, folder, *([more] if more else [])], sort_keys=True)
    return f"{_short(masked(shlex.join(command)))}{where} ({_fingerprint(whole, key)})"


def origin_of_address(
    url: str, key: bytes | None = None, *, more: Mapping[str, str] | None = None
) -> str:
    """Name a server that is reached: its address without secrets, and a fingerprint of it all."""
    parts = urlsplit(url)
    whole = json.dumps([url, *([more] if more else [])], sort_keys=True)
    place = parts.netloc.rpartition("@")[2]
    return f"{_short(f'{parts.scheme}://{place}{parts.path}')} ({_fingerprint(whole, key)})"


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def _fingerprint(whole: str, key: bytes | None) -> str:
    plain = whole.encode("utf-8", "surrogatepass")
    if key is None:
        return scrypt(plain, salt=_SALT, n=_WORK, r=8, p=1, dklen=_BYTES).hex()
    return blake2b(plain, key=key[:64], person=_SALT, digest_size=_BYTES).hexdigest()
