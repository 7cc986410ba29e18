"""Answers kept for an `Idempotency-Key`, so that a client that asks again gets the same answer.

Kept in memory, for a time and within bounds that each client has for itself. It spares an effect
to whoever lost the answer while the gateway runs; that nothing happens twice across a crash, or
through another worker, is for the ledger and for what the state keeps.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

from seawall.contract.failure import FailureCode
from seawall.edges.gateway.answers import Answer, refusal

if TYPE_CHECKING:
    from collections.abc import Callable

    from seawall.contract.span import Digest

KEYS_OF_A_CLIENT = 10_000
BYTES_OF_A_CLIENT = 16 * 1024 * 1024
"""Of answers."""
LONGEST_ANSWER = 4 * 1024 * 1024
"""Of a longer one only is kept that there was one."""

Key = tuple[str, str]
"""The client, and the key that it gave."""

REPLAYED = (b"idempotency-replayed", b"true")


class _Entry:
    __slots__ = ("answer", "payload", "request_id", "spare", "until")

    def __init__(self, payload: Digest, request_id: str, *, spare: bool) -> None:
        self.payload = payload
        self.request_id = request_id
        self.spare = spare
        self.answer: Answer | None = None
        self.until = 0.0


class _OfClient:
    """What one client was answered."""

    __slots__ = ("answered", "entries", "size", "spare")

    def __init__(self) -> None:
        self.entries: dict[str, _Entry] = {}
        self.answered: OrderedDict[str, _Entry] = OrderedDict()
        """The oldest answer first; those without an answer run, and are never dropped."""
        self.spare: OrderedDict[str, None] = OrderedDict()
        """Of these, the ones that may give way before their time."""
        self.size = 0

    def answer(self, name: str, entry: _Entry, answer: Answer) -> None:
        entry.answer = answer
        self.answered[name] = entry
        if entry.spare:
            self.spare[name] = None
        self.size += len(answer.body)

    def drop(self, name: str) -> None:
        entry = self.entries.pop(name, None)
        if entry is not None and entry.answer is not None:
            del self.answered[name]
            self.spare.pop(name, None)
            self.size -= len(entry.answer.body)

    def drop_old(self, now: float) -> None:
        while self.answered:
            name, entry = next(iter(self.answered.items()))
            if entry.until > now:
                return
            self.drop(name)

    def make_room(self) -> bool:
        """Whether there is room for one more, once what may give way has."""
        while len(self.entries) >= KEYS_OF_A_CLIENT or self.size >= BYTES_OF_A_CLIENT:
            if not self.spare:
                return False
            self.drop(next(iter(self.spare)))
        return True


class KeptAnswers:
    """What was answered under which key."""

    def __init__(self, now: Callable[[], float], keep_s: float) -> None:
        self._now = now
        self._keep_s = keep_s
        self._clients: dict[str, _OfClient] = {}

    def begin(self, key: Key, payload: Digest, *, spare: bool, **about: str) -> Answer | None:
        """Begin a call under a key: None if it may run, else what is to be answered instead.

        `spare` says that nothing happens twice if the key is forgotten before its time; a client
        that has as many others as are kept for it can use no new key. `about` is what a refusal
        says of the call: its `request_id` and `tool`.
        """
        client, name = key
        now, own = self._now(), self._of(client)
        own.drop_old(now)
        entry = own.entries.get(name)
        if entry is None:
            if not own.make_room():
                first = next(iter(own.answered.values()), None)
                return full(about, 1.0 if first is None else first.until - now)
            own.entries[name] = _Entry(payload, about["request_id"], spare=spare)
            return None
        if entry.payload != payload:
            return conflict(about)
        if entry.answer is None:
            return still_running({**about, "request_id": entry.request_id})
        kept = entry.answer
        return Answer(kept.status, kept.body, (*kept.headers, REPLAYED))

    def keep(self, key: Key, answer: Answer, **about: str) -> None:
        """Keep the answer of a call that had an effect, or may have."""
        client, name = key
        own = self._clients[client]
        if len(answer.body) > LONGEST_ANSWER:
            answer = _too_long(about)
        entry = own.entries[name]
        entry.until = self._now() + self._keep_s
        own.answer(name, entry, answer)

    def forget(self, key: Key) -> None:
        """Let the key be used again: nothing ran under it."""
        client, name = key
        self._of(client).drop(name)

    def _of(self, client: str) -> _OfClient:
        found = self._clients.get(client)
        if found is None:
            found = self._clients[client] = _OfClient()
        return found


def conflict(about: dict[str, str]) -> Answer:
    """Refuse a key that was used for another call."""
    return refusal(
        FailureCode.INVALID_ARGUMENT,
        "idempotency_conflict",
        "this Idempotency-Key was used for another call",
        guidance="Use a new key for a new call.",
        **about,
    )


def still_running(about: dict[str, str]) -> Answer:
    """Refuse a key whose call has not ended."""
    return refusal(
        FailureCode.RATE_LIMITED,
        "still_running",
        "the call with this Idempotency-Key is not answered yet: it runs, or its answer is looked"
        " up",
        retry_after_s=1.0,
        may_have_run=True,
        **about,
    )


def full(about: dict[str, str], left_s: float) -> Answer:
    """Refuse a new key of a client that has as many as are kept for it."""
    return refusal(
        FailureCode.RATE_LIMITED,
        "rate_limited",
        f"this client has as many Idempotency-Keys as are kept for one: {KEYS_OF_A_CLIENT:,} keys,"
        f" or {BYTES_OF_A_CLIENT >> 20} MiB of answers; none is forgotten before its time",
        retry_after_s=max(left_s, 1.0),
        guidance="Ask again later with the same key. With a state a gateway keeps any number.",
        **about,
    )


def _too_long(about: dict[str, str]) -> Answer:
    return refusal(
        FailureCode.UNKNOWN,
        "outcome_unreadable",
        "the call with this Idempotency-Key was answered, and its answer was too long to be kept",
        guidance="Do not do it again. Look for its effect where that shows, if you need more.",
        may_have_run=True,
        **about,
    )
