"""Text that every database takes."""

from __future__ import annotations

import hashlib

from seawall.contract.ownership import holder_of

LONGEST = 300
LONGEST_NAME = 200


def plain(text: str) -> str:
    """Replace what has no bytes, and the one character that PostgreSQL does not keep; cut."""
    cut = text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
    return cut.encode("utf-8", "replace").decode().replace("\0", "\N{REPLACEMENT CHARACTER}")


def name_key(name: str) -> str:
    """Give a name itself if every database takes it, else its hash: different for others."""
    if len(name) <= LONGEST_NAME and plain(name) == name and not name.startswith("#"):
        return name
    return f"#{hashlib.sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()}"


def owned_key(owner: str) -> str:
    """Give the name of an owner so that it still begins with its holder's."""
    holder = holder_of(owner)
    return holder + name_key(owner[len(holder) :])
