"""Where shortcuts are kept: behind a protocol; in memory unless another store is given."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seawall.contract.shortcut import Shortcut


class ShortcutStore(Protocol):
    """Keeps definitions by id; what it raises ends the definition, and nothing is changed."""

    async def save(self, shortcut: Shortcut) -> None:
        """Keep a definition, in place of one with the same id."""
        ...

    async def remove(self, shortcut_id: str) -> None:
        """Forget a definition; nothing happens if there is none."""
        ...

    async def all(self) -> Sequence[Shortcut]:
        """Give all definitions, in the order they came."""
        ...


class MemoryShortcuts:
    """Keeps definitions for as long as the process lives."""

    def __init__(self) -> None:
        self._kept: dict[str, Shortcut] = {}

    async def save(self, shortcut: Shortcut) -> None:
        """Keep a definition."""
        self._kept[shortcut.id] = shortcut

    async def remove(self, shortcut_id: str) -> None:
        """Forget a definition."""
        self._kept.pop(shortcut_id, None)

    async def all(self) -> Sequence[Shortcut]:
        """Give all definitions."""
        return tuple(self._kept.values())
