"""Keeping what was made for those who needed it last."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING

from seawall.pipeline.arguments.careful import careful
from seawall.pipeline.arguments.compiled import compile_schema
from seawall.pipeline.arguments.latest import Latest

if TYPE_CHECKING:
    import pytest


class Keeper:
    """Says whether it still keeps something."""

    def __init__(self) -> None:
        self.kept = True

    def forget(self) -> None:
        self.kept = False


def test_who_made_it_longest_ago_forgets_it_first() -> None:
    latest, keepers = Latest(2), [Keeper() for _ in range(4)]

    for keeper in keepers:
        latest.made(keeper)

    assert [keeper.kept for keeper in keepers] == [False, False, True, True]


def test_who_is_gone_stands_in_nobodys_way_and_is_not_kept_alive() -> None:
    latest, first = Latest(1), Keeper()
    latest.made(Keeper())
    gc.collect()

    latest.made(first)

    assert first.kept


def test_what_mending_compiles_is_kept_for_the_tools_that_needed_it_last(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(careful, "_MENDED", Latest(3))
    schemas = [
        compile_schema({"type": "object", "properties": {f"n{at}": {"type": "integer"}}})
        for at in range(8)
    ]
    mending = [careful.Careful(one.schema, one.is_valid) for one in schemas]

    for again in range(2):
        for at, one in enumerate(mending):
            assert one.mend({f"n{at}": str(again)})[0] == {f"n{at}": again}

    assert [one._root is not None for one in mending] == [False] * 5 + [True] * 3
