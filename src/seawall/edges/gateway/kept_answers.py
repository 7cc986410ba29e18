"""Answers kept for an `Idempotency-Key`, so that a client that asks again gets the same answer.

Kept in memory, per client, for a time and within bounds. It spares an effect to whoever lost the
answer while the gateway runs; that nothing happens twice across a crash, or through another worker,
is for the ledger and for what the state keeps.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

from seawall.contract.failure import FailureCode
from seawall.edges.gateway.answers import Answer, refusal

if TYPE_CHECKING:
    from collections.abc import Callable

    from seawall.contract.span import Digest

MAX_ENTRIES = 20_000
MAX_BYTES = 64 * 1024 * 1024

Key = tuple[str, str]
"""The client, and the key that it gave."""

REPLAYED = (b"idempotency-replayed", b"true")


class _Entry:
    __slots__ = ("answer", "payload", "request_id", "until")

    def __init__(self, payload: Digest, request_id: str) -> None:
        self.payload = payload
        self.request_id = request_id
        self.answer: Answer | None = None
        self.until = 0.0


class KeptAnswers:
    """What was answered under which key."""

    def __init__(self, now: Callable[[], float], keep_s: float) -> None:
        self._now = now
        self._keep_s = keep_s
        self._entries: OrderedDict[Key, _Entry] = OrderedDict()
        self._bytes = 0

    def begin(self, key: Key, payload: Digest, **about: str) -> Answer | None:
        """Begin a call under a key: None if it may run, else what is to be answered instead.

        `about` is what a refusal says of the call: its `request_id` and `tool`.
        """
        self._forget_old()
        entry = self._entries.get(key)
        if entry is None:
            self._entries[key] = _Entry(payload, about["request_id"])
            return None
        if entry.payload != payload:
            return conflict(about)
        if entry.answer is None:
            return still_running({**about, "request_id": entry.request_id})
        kept = entry.answer
        return Answer(kept.status, kept.body, (*kept.headers, REPLAYED))

    def keep(self, key: Key, answer: Answer) -> None:
        """Keep the answer of a call that had an effect, or may have."""
        entry = self._entries[key]
        entry.answer = answer
        entry.until = self._now() + self._keep_s
        self._entries.move_to_end(key)
        self._bytes += len(answer.body)

    def forget(self, key: Key) -> None:
        """Let the key be used again: nothing ran under it."""
        self._entries.pop(key, None)

    def _forget_old(self) -> None:
        """Drop what is over; what still runs is never dropped, or it could run twice."""
        now = self._now()
        crowded = len(self._entries) >= MAX_ENTRIES or self._bytes > MAX_BYTES
        for key, entry in list(self._entries.items()) if crowded else self._first():
            if entry.answer is None:
                continue
            if entry.until > now and len(self._entries) < MAX_ENTRIES and self._bytes <= MAX_BYTES:
                return
            del self._entries[key]
            self._bytes -= len(entry.answer.body)

    def _first(self) -> list[tuple[Key, _Entry]]:
        return [next(iter(self._entries.items()))] if self._entries else []


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
