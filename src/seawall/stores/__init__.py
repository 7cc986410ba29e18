"""Where state lives: memory, SQLite, PostgreSQL, Redis; behind protocols of those who need it."""

from __future__ import annotations

from seawall.stores.opening import open_state
from seawall.stores.state import State

__all__ = ["State", "open_state"]
