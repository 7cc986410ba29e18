"""A state: all stores behind one address."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self
from weakref import WeakSet

from seawall.stores.memory_audit import MemoryAudit

if TYPE_CHECKING:
    from seawall.pipeline.clock import Clock
    from seawall.stores.address import Address
    from seawall.stores.database import Database
    from seawall.stores.keys import Keys
    from seawall.stores.memory_spills import MemorySpills
    from seawall.stores.owners import Owners
    from seawall.stores.seal import Seal
    from seawall.stores.sql_audit import SqlAudit
    from seawall.stores.sql_ledger import SqlLedger
    from seawall.stores.sql_notes import SqlNotes
    from seawall.stores.sql_shortcuts import SqlShortcuts
    from seawall.stores.sql_spills import SqlSpills


class State:
    """What is remembered beyond a call, and in a database beyond the process.

    Connects when it is first used, in whatever loop that is; `start` does so at once and tells
    early what is wrong. Made by `open_state`.
    """

    def __init__(
        self,
        address: Address,
        clock: Clock,
        *,
        database: Database | None = None,
        owners: Owners | None = None,
        keys: Keys | None = None,
        seal: Seal | None = None,
        audit: MemoryAudit | SqlAudit | None = None,
        ledger: SqlLedger | None = None,
        answers: SqlLedger | None = None,
        notes: SqlNotes | None = None,
        shortcuts: SqlShortcuts | None = None,
        spills: MemorySpills | SqlSpills | None = None,
    ) -> None:
        self.shown = address.shown
        """The address, without what is secret in it."""
        self.durable = database is not None
        """Whether it outlives the process."""
        self.clock = clock
        self.database = database
        """None in memory."""
        self.owners = owners
        self.seal = seal
        """Closes what is kept; None in memory, and in PostgreSQL without a key: then nothing is
        kept that would have to be sealed."""
        self.audit = MemoryAudit() if audit is None else audit
        self.ledger = ledger
        """None in memory: an effect that nobody remembers after a crash needs no ledger."""
        self.answers = answers
        """Answers that are given once, of calls that are no effects; None in memory."""
        self.notes = notes
        """None in memory and without a key, as for shortcuts: both are sealed."""
        self.shortcuts = shortcuts
        self.spills = spills
        """What result limits cut; None in a database without a key."""
        self._keys = keys
        self._users: WeakSet[Any] = WeakSet()

    @property
    def digest_key(self) -> bytes | None:
        """The key that makes digests comparable between processes; None without a key."""
        return None if self._keys is None else self._keys.for_digests()

    def serves(self, user: Any) -> None:
        """Close a user first, by its `aclose`: it may still have something to write."""
        self._users.add(user)

    async def start(self) -> None:
        """Connect and bring the tables up to date.

        Raises `StoreUnavailable`, or `ConfigurationError` for a state that a newer version made.
        """
        if self.database is not None:
            await self.database.start()

    async def aclose(self) -> None:
        """Write what is still to be written, and close; used again, it connects again."""
        for user in tuple(self._users):
            await user.aclose()
        if self.database is not None:
            await self.database.aclose()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *raised: object) -> None:
        await self.aclose()

    def __repr__(self) -> str:
        return f"State({self.shown!r})"
