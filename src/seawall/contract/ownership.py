"""Who something belongs to: a caller's session, and not whoever else chose the same id.

Ids of sessions are given by callers, so two callers may have the same one, or none.
"""

from __future__ import annotations

from hashlib import blake2b

_MARK = "@caller:"
_HASH = 32
_WHOLE = len(_MARK) + _HASH


def owner_key(caller: str, session: str) -> str:
    """Name a session: the same name only for the same id of the same caller.

    Where nobody says who calls it is the id alone.
    """
    if not caller:
        # One that looks like ours gets what no hash begins with.
        return f"{_MARK}:{session}" if session.startswith(_MARK) else session
    hashed = blake2b(caller.encode("utf-8", "surrogatepass"), digest_size=_HASH // 2)
    return f"{_MARK}{hashed.hexdigest()}{session}"


def holder_of(owner: str) -> str:
    """Give what the names of all sessions of one caller begin with; empty without a caller."""
    if owner.startswith(_MARK) and not owner.startswith(f"{_MARK}:"):
        return owner[:_WHOLE]
    return ""
