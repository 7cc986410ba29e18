"""Take back requests that nobody waits for, as whoever made the call was not told of them.

A call may be cancelled, or run out of time, while its request is stored or announced. The request
is withdrawn then, however long the store takes, also one of which it is not known whether it was
stored. Until that has come to an end nobody can approve it here.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from seawall.contract.approval import ApprovalNotFound
from seawall.contract.errors import StoreUnavailable
from seawall.orchestration.approvals.entries import noting
from seawall.orchestration.approvals.transitions import Withdraw

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from seawall.orchestration.approvals.arrears import Arrears
    from seawall.orchestration.approvals.store import ApprovalStore
    from seawall.pipeline.clock import Clock

MAX_TOLD = 1_000
"""Keys of which it is remembered that their request was taken back."""

LATE_S = 10.0
"""How long what was given up may still be stored."""

WHY = "whoever made the call was gone before it could wait"


class Withdrawing:
    """Takes requests back, one by one; bounded by what was being stored when its caller went."""

    def __init__(
        self,
        store: ApprovalStore,
        clock: Clock,
        arrears: Arrears,
        changed: Callable[[], Awaitable[None]],
    ) -> None:
        self._store = store
        self._clock = clock
        self._arrears = arrears
        self._changed = changed
        self._ids: set[str] = set()
        self._of_keys: dict[tuple[str, str], asyncio.Future[str | None]] = {}

    def __contains__(self, batch_id: str) -> bool:
        return batch_id in self._ids

    def of_key(self, caller: str, key: str) -> asyncio.Future[str | None] | None:
        """Give what becomes of a request of a call under this key that was taken back.

        Done when that is known: with None if it is withdrawn or was never there, else with its id,
        as it was answered before or the store was not reached. None if nothing was taken back.
        """
        return self._of_keys.get((caller, key))

    def forget_key(self, caller: str, key: str) -> None:
        """Begin anew: another call comes under this key."""
        self._of_keys.pop((caller, key), None)

    def begin(
        self,
        batch_id: str,
        key: tuple[str, str] | None = None,
        storing: asyncio.Future[Any] | None = None,
    ) -> asyncio.Future[None]:
        """Begin to withdraw one, also one that is still being stored; done after the first try.

        `key` is the caller and the idempotency key of its call, if it has one.
        """
        one = _One(self._store, self._clock, batch_id, storing)

        async def withdraw() -> None:
            if await one.withdraw():
                await self._changed()

        def is_over() -> None:
            self._ids.discard(batch_id)
            one.close()

        self._ids.add(batch_id)
        if key is not None:
            self._know(key, one.end)
        said = f"approval {batch_id} is to be withdrawn"
        return self._arrears.write(said, withdraw, is_over)

    def leave(self, key: tuple[str, str], batch_id: str) -> None:
        """Say that a request stands although a call under its key was given up."""
        if has_loop():
            end: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
            end.set_result(batch_id)
            self._know(key, end)

    def _know(self, key: tuple[str, str], end: asyncio.Future[str | None]) -> None:
        self._of_keys[key] = end
        if len(self._of_keys) > MAX_TOLD:
            del self._of_keys[next(iter(self._of_keys))]


class _One:
    """One request that is taken back."""

    def __init__(
        self,
        store: ApprovalStore,
        clock: Clock,
        batch_id: str,
        storing: asyncio.Future[Any] | None,
    ) -> None:
        self._store = store
        self._clock = clock
        self._id = batch_id
        self._storing = storing
        self._late_until = 0.0
        self._stands: str | None = batch_id
        self.end: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()

    async def withdraw(self) -> bool:
        """Try once; whether it was withdrawn. Raises `StoreUnavailable` if it is to be tried again.

        Raises `ApprovalConflict` if it was answered and run, or is at its end otherwise.
        """
        if await self._may_be_stored():
            now = self._clock.wall()
            step, noted = Withdraw(now=now, by=""), noting("withdrawn", at=now, why=WHY)
            try:
                await self._store.change(self._id, step, noting=noted)
            except ApprovalNotFound:
                self._look_again()
            else:
                self._stands = None
                return True
        self._stands = None
        return False

    async def _may_be_stored(self) -> bool:
        """Wait for a store that has not answered; False if it did not store it for sure."""
        if self._storing is None:
            return True
        await asyncio.wait([self._storing])
        error = None if self._storing.cancelled() else self._storing.exception()
        if not isinstance(error, StoreUnavailable):
            return True
        self._late_until = self._late_until or self._clock.now() + LATE_S
        return error.may_have_written

    def _look_again(self) -> None:
        """A commit that nobody answered may become visible after it was looked for."""
        if self._clock.now() < self._late_until:
            raise StoreUnavailable(self._id, "it may still come", may_have_written=True)

    def close(self) -> None:
        """Say what came of it: withdrawn or never there, or else it still stands."""
        if not self.end.done():
            self.end.set_result(self._stands)


def has_loop() -> bool:
    """Whether anything can be awaited: not where a call is broken off as its loop has ended."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
