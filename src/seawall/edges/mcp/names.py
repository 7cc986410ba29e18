"""Names of tools of many servers: `server__tool`, never the same for two, never mistaken.

The part before the first `__` says which server it is. A server's own part therefore never holds
`__` and never ends in `_`, so that server `a` with a tool `b__c` and server `a__b` with a tool `c`
stay apart, and a rule for `a__*` covers what server `a` has and nothing else.
"""

from __future__ import annotations

import re
from hashlib import blake2b

from seawall.registry.registry import MAX_NAME

SEPARATOR = "__"

MAX_PREFIX = 48

_ODD = re.compile(r"[^A-Za-z0-9_.-]")


def prefix_of(server: str) -> str:
    """The part of a server in its tools' names; its own name where that is safe.

    Else what stands in the way becomes `_`, and a hash of the whole name keeps it apart.
    """
    plain = re.sub(r"__+", "_", _ODD.sub("_", server))[:MAX_PREFIX].strip("_")
    if plain and plain == server:
        return plain
    return f"{plain or 'server'}-{_hash(server)}"


def tool_name(server: str, remote: str) -> str:
    """The name of a server's tool in a registry; one that would be too long ends in a hash."""
    name = f"{prefix_of(server)}{SEPARATOR}{remote}"
    if len(name) <= MAX_NAME:
        return name
    return f"{name[: MAX_NAME - 9]}-{_hash(remote)}"


def _hash(text: str) -> str:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()
