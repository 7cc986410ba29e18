"""One line of a server as a message of the protocol, mended where it is nearly one.

Servers cut texts in the middle of a character, and write bytes that are no UTF-8. Strict readers
refuse the whole message for that, and the call that it answers would wait for ever.
"""

from __future__ import annotations

import json
import re
from typing import Any

from mcp_types import ErrorData, JSONRPCError, JSONRPCMessage, jsonrpc_message_adapter

from seawall.edges.mcp.codes import MALFORMED
from seawall.edges.mcp.lines import answered

_HALF = re.compile("[\ud800-\udfff]")
"""Half of a character, of which UTF-16 makes two."""


def message_of(line: bytes) -> JSONRPCMessage | None:
    """Read a line; None if it is no message.

    One that says whose answer it is, and cannot be read, is an error for that request.
    """
    try:
        return _read(line)
    except ValueError:
        pass
    try:
        return _read(mended(line))
    except (ValueError, RecursionError):
        return _broken(line)


def mended(raw: bytes) -> bytes:
    """JSON in which what is no character is U+FFFD; raises ValueError for what is no JSON."""
    data = json.loads(raw.decode("utf-8-sig", "replace"))
    return _HALF.sub("\ufffd", json.dumps(data, ensure_ascii=False)).encode()


def _read(raw: bytes) -> JSONRPCMessage:
    found: JSONRPCMessage = jsonrpc_message_adapter.validate_json(raw, by_name=False)
    return found


def _broken(line: bytes) -> JSONRPCError | None:
    whose: Any = answered(line)
    if whose is None:
        return None
    error = ErrorData(code=MALFORMED, message="its answer is no message of the protocol")
    return JSONRPCError(jsonrpc="2.0", id=whose, error=error)
