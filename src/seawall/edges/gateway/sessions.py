"""The sessions of clients, kept while they are used."""

from __future__ import annotations

from collections import OrderedDict

from seawall.pipeline.session import OneCall, Session

FRONT = "gateway"
"""Marks what waits for an approval as the gateway's to run."""


class Sessions:
    """Sessions by client and by the id that the client gave, at most `limit`.

    A client cannot reach a session of another one: the client is part of the key.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._sessions: OrderedDict[tuple[str, str], Session] = OrderedDict()

    def session_of(self, client: str, session_id: str) -> Session:
        """Give the session of that id, or one for this call alone if there is no id."""
        if not session_id:
            return _of_gateway(OneCall(caller=client))
        key = (client, session_id)
        found = self._sessions.get(key)
        if found is None:
            found = self._sessions[key] = _of_gateway(Session(session_id, caller=client))
            if len(self._sessions) > self._limit:
                self._sessions.popitem(last=False)
        else:
            self._sessions.move_to_end(key)
        return found

    def __len__(self) -> int:
        return len(self._sessions)


def _of_gateway(session: Session) -> Session:
    session.front = FRONT
    return session
