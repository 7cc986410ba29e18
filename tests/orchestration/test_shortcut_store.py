"""Definitions kept in memory."""

from __future__ import annotations

import msgspec

from seawall.contract.shortcut import Shortcut, ShortcutStep
from seawall.orchestration.shortcut_store import MemoryShortcuts, ShortcutStore


def shortcut(name: str) -> Shortcut:
    return Shortcut(id=f"shortcut.{name}", name=name, steps=(ShortcutStep(tool="a"),))


async def test_a_definition_takes_the_place_of_one_with_its_id() -> None:
    store: ShortcutStore = MemoryShortcuts()
    await store.save(shortcut("one"))
    await store.save(shortcut("two"))

    await store.save(msgspec.structs.replace(shortcut("one"), name="changed"))

    assert [one.name for one in await store.all()] == ["changed", "two"]


async def test_what_is_removed_is_gone_and_what_is_not_there_may_be_removed() -> None:
    store = MemoryShortcuts()
    await store.save(shortcut("one"))

    await store.remove("shortcut.one")
    await store.remove("shortcut.one")

    assert await store.all() == ()


def test_a_definition_survives_json() -> None:
    before = shortcut("one")

    assert msgspec.json.decode(msgspec.json.encode(before), type=Shortcut) == before
