"""The tables as they are now. How they came to be is said in `migrations`."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Column,
    Double,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
)

metadata = MetaData()

owners = Table(
    "owners",
    metadata,
    Column("id", Text, primary_key=True),
    Column("place", Text, nullable=False),
    Column("pid", BigInteger, nullable=False),
    Column("started", BigInteger, nullable=False),
    Column("seen", Double, nullable=False),
)
"""Processes that hold something, or did; `seen` by the database's clock."""

effects = Table(
    "effects",
    metadata,
    Column("token", Text, primary_key=True),
    Column("scope", Text, nullable=False),
    Column("tool", Text, nullable=False),
    Column("key", Text),
    Column("digest", Text, nullable=False),
    Column("call_id", Text, nullable=False),
    Column("owner", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("created", Double, nullable=False),
    Column("settled", Double),
    Column("expires", Double, nullable=False),
    Column("outcome", LargeBinary),
    Index("effects_by_key", "scope", "tool", "key", unique=True),
    Index("effects_by_key_alone", "key"),
    Index("effects_by_expiry", "expires"),
    Index("effects_by_state", "state", "created"),
)

audit = Table(
    "audit",
    metadata,
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    Column("at", Double, nullable=False),
    Column("entry", Text, nullable=False),
    Column("key", Text, nullable=False),
    Column("hash", Text, nullable=False),
)

audit_head = Table(
    "audit_head",
    metadata,
    Column("one", Integer, primary_key=True, autoincrement=False),
    Column("seq", BigInteger, nullable=False),
    Column("hash", Text, nullable=False),
)
"""The last entry; who appends locks this row first."""

notes = Table(
    "notes",
    metadata,
    Column("owner", Text, primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("created", Double, nullable=False),
    Column("sealed", LargeBinary, nullable=False),
    Index("notes_by_age", "created"),
)

shortcuts = Table(
    "shortcuts",
    metadata,
    Column("id", Text, primary_key=True),
    Column("position", BigInteger, nullable=False),
    Column("sealed", LargeBinary, nullable=False),
)

approvals = Table(
    "approvals",
    metadata,
    Column("id", Text, primary_key=True),
    Column("created", Double, nullable=False),
    Column("closed", Integer, nullable=False),
    Column("read", Double),
    Column("record", LargeBinary, nullable=False),
    Column("alike", Text),
    Column("caller", Text),
    Column("size", BigInteger),
    Column("expires", Double),
    Index("approvals_by_age", "closed", "created", "id"),
    Index("approvals_by_caller", "caller", "closed"),
    Index("approvals_by_call", "alike", "created", "id"),
)
"""Turns that wait for a person; `record` has names, times and verdicts, never values.

`caller` is a fingerprint, so that any name has one; None in records from before there was one."""

approval_payloads = Table(
    "approval_payloads",
    metadata,
    Column("approval", Text, primary_key=True),
    Column("name", Text, primary_key=True),
    Column("sealed", LargeBinary, nullable=False),
)
"""Their arguments and results."""

spills = Table(
    "spills",
    metadata,
    Column("id", Text, primary_key=True),
    Column("owner", Text, nullable=False),
    Column("created", Double, nullable=False),
    Column("expires", Double, nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("page_bytes", BigInteger, nullable=False),
    Index("spills_by_owner", "owner", "created"),
    Index("spills_by_age", "created"),
)

spill_parts = Table(
    "spill_parts",
    metadata,
    Column("spill", Text, primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("sealed", LargeBinary, nullable=False),
)
"""The text of a spill, in parts of the same length, so that a page does not open all of it."""
