"""From an address to a state."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seawall.contract.errors import ConfigurationError, MissingExtra
from seawall.pipeline.chance import Chance, SystemChance
from seawall.pipeline.clock import Clock, SystemClock
from seawall.stores.address import address_of
from seawall.stores.keys import keys_for
from seawall.stores.memory_spills import MemorySpills
from seawall.stores.seal import Seal
from seawall.stores.state import State

if TYPE_CHECKING:
    from seawall.stores.address import Address
    from seawall.stores.keys import Keys

TIMEOUT_S = 5.0
"""How long a store may take to answer."""


def open_state(
    url: str | None = None,
    *,
    key: bytes | None = None,
    clock: Clock | None = None,
    chance: Chance | None = None,
    timeout_s: float = TIMEOUT_S,
) -> State:
    """Open the state at `sqlite:///state.db`, `postgresql://user@host/name`, or in memory.

    Nothing is connected yet. What is kept is sealed with `key` (32 bytes), else with the key of
    the environment variable `SEAWALL_STATE_KEY`, else with the one in the file beside an SQLite
    file, which is made when there is none. Raises `ConfigurationError` for an address or a key
    that cannot work, and `MissingExtra` if the database needs what is not installed.
    """
    clock = clock or SystemClock()
    address = address_of(url)
    if address.kind == "memory":
        return State(address, clock, spills=MemorySpills(clock))
    return _durable(address, key, clock, chance or SystemChance(), timeout_s)


def _durable(
    address: Address, key: bytes | None, clock: Clock, chance: Chance, timeout_s: float
) -> State:
    try:
        # Slow to import, and extras: only a durable state needs them.
        import aiosqlite  # noqa: F401, PLC0415
        import sqlalchemy.ext.asyncio  # noqa: F401, PLC0415
    except ImportError as error:
        raise MissingExtra("a state that outlives the process", "state") from error
    from seawall.stores.database import Database  # noqa: PLC0415  # as above
    from seawall.stores.owners import Owners  # noqa: PLC0415  # as above
    from seawall.stores.sql_audit import SqlAudit  # noqa: PLC0415  # as above
    from seawall.stores.sql_ledger import NoAudit, SqlLedger  # noqa: PLC0415  # as above
    from seawall.stores.sql_notes import SqlNotes  # noqa: PLC0415  # as above
    from seawall.stores.sql_shortcuts import SqlShortcuts  # noqa: PLC0415  # as above
    from seawall.stores.sql_spills import SqlSpills  # noqa: PLC0415  # as above

    keys = _keys(address, key)
    seal = None if keys is None else Seal(keys)
    database = Database(address, clock, timeout_s=timeout_s)
    owners = Owners(database, clock, chance)
    audit = SqlAudit(database, keys, seal)
    return State(
        address,
        clock,
        database=database,
        owners=owners,
        keys=keys,
        seal=seal,
        audit=audit,
        ledger=SqlLedger(database, owners, audit, seal, clock),
        answers=SqlLedger(database, owners, NoAudit(), seal, clock),
        notes=None if seal is None else SqlNotes(database, seal),
        shortcuts=None if seal is None else SqlShortcuts(database, seal),
        spills=None if seal is None else SqlSpills(database, seal),
    )


def _keys(address: Address, key: bytes | None) -> Keys | None:
    try:
        if address.path is not None:
            address.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        return keys_for(address.path, key)
    except OSError as error:
        said = f"the state at {address.shown} cannot be used: {error.strerror}: {error.filename}"
        raise ConfigurationError(said) from error
