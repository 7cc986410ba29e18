"""Media as text: base64, and addresses that hold what they name (`data:image/png;base64,…`)."""

from __future__ import annotations

import base64
import binascii
from typing import Any, NamedTuple
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


def bytes_of(data: Any) -> bytes | None:
    """Read base64, however it is broken into lines; None if it is none."""
    try:
        return base64.b64decode("".join(data.split()), validate=True)
    except (binascii.Error, ValueError, TypeError, AttributeError):
        return None


def unreadable(mime: str) -> str:
    """What a model reads instead of a medium that a framework or its provider would not take."""
    return f"[{mime or 'a medium'} that cannot be read: its data is no base64]"
