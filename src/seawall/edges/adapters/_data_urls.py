"""Addresses that hold what they name (`data:image/png;base64,…`), as frameworks hand media on."""

from __future__ import annotations

import base64
from typing import NamedTuple
from urllib.parse import unquote_to_bytes


class Held(NamedTuple):
    """What such an address holds: base64, and its type if that is said."""

    data: str
    mime: str | None


def held_by(address: str) -> Held | None:
    """Read an address; None if it is one of something elsewhere."""
    if address[:5].lower() != "data:" or "," not in address:
        return None
    head, _, data = address[5:].partition(",")
    mime, *parameters = (part.strip() for part in head.split(";"))
    if "base64" not in map(str.lower, parameters):
        data = base64.b64encode(unquote_to_bytes(data)).decode()
    return Held(data, mime.lower() if "/" in mime else None)
