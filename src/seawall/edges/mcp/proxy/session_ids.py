"""Session ids as clients hear them: the server's own, and after it whose session it is.

A server may give several clients one id. What a client was allowed goes by what was added here,
which the server never sees and so cannot give to another.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from seawall.edges.mcp.proxy.http_client import Headers

SESSION = b"mcp-session-id"
OWNER_BYTES = 16

_OWNED = re.compile(rb"(?P<id>.*)\.seawall-(?P<owner>[0-9a-f]{%d})" % (2 * OWNER_BYTES), re.DOTALL)


def owner_in(sent: bytes) -> str | None:
    """Say whose session an id names; None if it is no id that clients are given here."""
    found = _OWNED.fullmatch(sent)
    return None if found is None else found["owner"].decode()


def for_client(headers: Headers, owner: str) -> Headers:
    """Give a server's headers with its session's id as the client is to know it."""
    mark = b".seawall-" + owner.encode()
    return [(name, value + mark if name == SESSION else value) for name, value in headers]


def for_server(headers: Headers) -> Headers:
    """Give a client's headers with the session's id as the server knows it."""
    return [(name, _bare(value) if name == SESSION else value) for name, value in headers]


def _bare(sent: bytes) -> bytes:
    found = _OWNED.fullmatch(sent)
    return sent if found is None else found["id"]
