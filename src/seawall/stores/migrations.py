"""How a state comes to the tables of today: steps in order, each run once, never changed.

A step that was released is history: what is wrong with it is put right by another one after it.
"""

from __future__ import annotations

from collections.abc import Sequence

Migration = Sequence[str]
"""Statements of one step; `{blob}` and `{double}` stand for what the database calls them."""

TYPES = {
    "sqlite": {"blob": "BLOB", "double": "DOUBLE PRECISION"},
    "postgresql": {"blob": "BYTEA", "double": "DOUBLE PRECISION"},
}

_FIRST: Migration = (
    """CREATE TABLE owners (
        id TEXT NOT NULL PRIMARY KEY,
        place TEXT NOT NULL,
        pid BIGINT NOT NULL,
        started BIGINT NOT NULL,
        seen {double} NOT NULL
    )""",
    """CREATE TABLE effects (
        token TEXT NOT NULL PRIMARY KEY,
        scope TEXT NOT NULL,
        tool TEXT NOT NULL,
        key TEXT,
        digest TEXT NOT NULL,
        call_id TEXT NOT NULL,
        owner TEXT NOT NULL,
        state TEXT NOT NULL,
        reason TEXT NOT NULL,
        created {double} NOT NULL,
        settled {double},
        expires {double} NOT NULL,
        outcome {blob}
    )""",
    "CREATE UNIQUE INDEX effects_by_key ON effects (scope, tool, key)",
    "CREATE INDEX effects_by_expiry ON effects (expires)",
    "CREATE INDEX effects_by_state ON effects (state, created)",
    """CREATE TABLE audit (
        seq BIGINT NOT NULL PRIMARY KEY,
        at {double} NOT NULL,
        entry TEXT NOT NULL,
        key TEXT NOT NULL,
        hash TEXT NOT NULL
    )""",
    """CREATE TABLE audit_head (
        one INTEGER NOT NULL PRIMARY KEY,
        seq BIGINT NOT NULL,
        hash TEXT NOT NULL
    )""",
    "INSERT INTO audit_head (one, seq, hash) VALUES (1, 0, '')",
    """CREATE TABLE notes (
        owner TEXT NOT NULL,
        number INTEGER NOT NULL,
        created {double} NOT NULL,
        sealed {blob} NOT NULL,
        PRIMARY KEY (owner, number)
    )""",
    "CREATE INDEX notes_by_age ON notes (created)",
    """CREATE TABLE shortcuts (
        id TEXT NOT NULL PRIMARY KEY,
        position BIGINT NOT NULL,
        sealed {blob} NOT NULL
    )""",
)

_APPROVALS: Migration = (
    """CREATE TABLE approvals (
        id TEXT NOT NULL PRIMARY KEY,
        created {double} NOT NULL,
        closed INTEGER NOT NULL,
        read {double},
        record {blob} NOT NULL
    )""",
    "CREATE INDEX approvals_by_age ON approvals (closed, created, id)",
    """CREATE TABLE approval_payloads (
        approval TEXT NOT NULL,
        name TEXT NOT NULL,
        sealed {blob} NOT NULL,
        PRIMARY KEY (approval, name)
    )""",
)

_SPILLS: Migration = (
    """CREATE TABLE spills (
        id TEXT NOT NULL PRIMARY KEY,
        owner TEXT NOT NULL,
        created {double} NOT NULL,
        expires {double} NOT NULL,
        size BIGINT NOT NULL,
        page_bytes BIGINT NOT NULL
    )""",
    "CREATE INDEX spills_by_owner ON spills (owner, created)",
    "CREATE INDEX spills_by_age ON spills (created)",
    """CREATE TABLE spill_parts (
        spill TEXT NOT NULL,
        number INTEGER NOT NULL,
        sealed {blob} NOT NULL,
        PRIMARY KEY (spill, number)
    )""",
)

_CALLS: Migration = (
    "ALTER TABLE approvals ADD COLUMN alike TEXT",
    "CREATE INDEX approvals_by_call ON approvals (alike, created, id)",
)

_KEYS: Migration = ("CREATE INDEX effects_by_key_alone ON effects (key)",)

_CALLERS: Migration = (
    "ALTER TABLE approvals ADD COLUMN caller TEXT",
    "ALTER TABLE approvals ADD COLUMN size BIGINT",
    "ALTER TABLE approvals ADD COLUMN expires {double}",
    "CREATE INDEX approvals_by_caller ON approvals (caller, closed)",
)

MIGRATIONS: tuple[Migration, ...] = (_FIRST, _APPROVALS, _SPILLS, _CALLS, _KEYS, _CALLERS)
"""All steps; the version of a state is how many of them it has seen."""
