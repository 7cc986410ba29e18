"""The sessions of clients, kept while they are used."""

from __future__ import annotations

from collections import OrderedDict

from seawall.pipeline.session import OneCall, Session

FRONT = "gateway"
"""Marks what waits for an approval as the gateway's to run."""


class Sessions:
    """Sessions by client and by the id that the client gave, at most `limit`.

    A client cannot reach a session of another one, nor push it out: when there are too many, the
    client with the most loses the one that it used longest ago.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._count = 0
        self._sessions: dict[str, OrderedDict[str, Session]] = {}

    def session_of(self, client: str, session_id: str) -> Session:
        """Give the session of that id, or one for this call alone if there is no id."""
        if not session_id:
            return _of_gateway(OneCall(caller=client))
        own = self._sessions.setdefault(client, OrderedDict())
        found = own.get(session_id)
        if found is not None:
            own.move_to_end(session_id)
            return found
        found = own[session_id] = _of_gateway(Session(session_id, caller=client))
        self._count += 1
        if self._count > self._limit:
            self._forget_one()
        return found

    def _forget_one(self) -> None:
        most = max(self._sessions.values(), key=len)
        most.popitem(last=False)
        self._count -= 1

    def __len__(self) -> int:
        return self._count


def _of_gateway(session: Session) -> Session:
    session.front = FRONT
    return session
