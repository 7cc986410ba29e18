import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.stores.test_database import database_of

from seawall import Pipeline, Session, State, open_state
from seawall.contract.note import Note, StoreFullError
from seawall.contract.ownership import owner_key
from seawall.stores.sql_notes import SqlNotes
from seawall.stores.sql_shortcuts import SqlShortcuts
from seawall.toolkit.bundle import bundled

KEY = bytes(range(32))


def notes_of(state: State, **bounds: int) -> SqlNotes:
    assert state.seal is not None
    return SqlNotes(database_of(state), state.seal, **bounds)


async def test_notes_come_back_in_their_order_to_their_owner_alone(state_url: str) -> None:
    async with open_state(state_url, key=KEY) as state:
        kept = notes_of(state)
        first = await kept.add("a", "one", ("x", "y"), 5.0)
        second = await kept.add("a", "two", (), 6.0)
        await kept.add("b", "else", (), 7.0)

        assert (
            list(await kept.notes("a"))
            == [first, second]
            == [
                Note(1, "one", ("x", "y"), 5.0),
                Note(2, "two", (), 6.0),
            ]
        )
        assert await kept.notes("c") == []


async def test_an_owner_may_have_any_name(state_url: str) -> None:
    async with open_state(state_url, key=KEY) as state:
        kept = notes_of(state)
        owners = ["", "a\0", "a", "\ud800", "x" * 300, "x" * 299 + "y", "#a"]
        for owner in owners:
            await kept.add(owner, owner[-1:].replace("\ud800", "s"), (), 1.0)

        assert [len(await kept.notes(owner)) for owner in owners] == [1] * len(owners)


async def test_each_owner_and_all_together_have_a_bound(state_url: str) -> None:
    async with open_state(state_url, key=KEY) as state:
        kept = notes_of(state, per_owner=2, total=3)
        for number in range(2):
            await kept.add("a", "", (), float(number))
        with pytest.raises(StoreFullError):
            await kept.add("a", "", (), 3.0)
        await kept.add("b", "", (), 4.0)
        await kept.add("c", "", (), 5.0)

        assert [len(await kept.notes(owner)) for owner in "abc"] == [0, 1, 1]


async def test_a_writer_does_not_push_out_its_own_notes(state_url: str) -> None:
    async with open_state(state_url, key=KEY) as state:
        kept = notes_of(state, per_owner=5, total=2)
        for number in range(2):
            await kept.add("a", "", (), float(number))

        with pytest.raises(StoreFullError):
            await kept.add("a", "", (), 3.0)
        assert len(await kept.notes("a")) == 2


async def test_one_caller_cannot_push_out_the_notes_of_another(state_url: str) -> None:
    async with open_state(state_url, key=KEY) as state:
        kept = notes_of(state, per_owner=5, total=6)
        await kept.add(owner_key("shop", "s" * 300), "kept", (), 0.0)
        for session in range(8):
            await kept.add(owner_key("other", str(session)), "flood", (), 1.0 + session)

        assert len(await kept.notes(owner_key("shop", "s" * 300))) == 1
        left = [len(await kept.notes(owner_key("other", str(one)))) for one in range(8)]
        assert left == [0] * 3 + [1] * 5


async def test_notes_added_at_once_have_numbers_of_their_own(state_url: str) -> None:
    async with open_state(state_url, key=KEY) as one, open_state(state_url, key=KEY) as other:
        await asyncio.gather(
            *(
                notes_of(state).add("a", str(number), (), 1.0)
                for number in range(10)
                for state in (one, other)
            )
        )

        assert [note.number for note in await notes_of(one).notes("a")] == list(range(1, 21))


async def test_a_note_that_cannot_be_opened_is_left_out(state_url: str) -> None:
    async with open_state(state_url, key=KEY) as state:
        await notes_of(state).add("a", "one", (), 1.0)
    async with open_state(state_url, key=bytes(32)) as other:
        await notes_of(other).add("a", "two", (), 2.0)

        assert [note.text for note in await notes_of(other).notes("a")] == ["two"]


async def test_the_bundled_notebook_uses_the_state(tmp_path: Path) -> None:
    url, session = f"sqlite:///{tmp_path}/state.db", Session("s")
    for text in ("the deployment is on Friday", "buy milk"):
        async with open_state(url) as state:
            pipeline = Pipeline(bundled(notes=state.notes), state=state)
            await pipeline.call("note_add", {"text": text}, session=session)

    async with open_state(url) as state:
        pipeline = Pipeline(bundled(notes=state.notes), state=state)
        found: Any = (
            await pipeline.call("note_search", {"query": "deploy"}, session=session)
        ).structured_content
        other: Any = (
            await pipeline.call("note_search", session=Session("other"))
        ).structured_content

    assert [note["text"] for note in found["notes"]] == ["the deployment is on Friday"]
    assert found["kept"] == 2
    assert other["kept"] == 0


def test_without_a_key_there_are_no_sealed_stores(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SEAWALL_STATE_KEY", raising=False)
    state = open_state(postgres_url)

    assert (state.notes, state.shortcuts) == (None, None)
    assert isinstance(open_state(postgres_url, key=KEY).shortcuts, SqlShortcuts)
