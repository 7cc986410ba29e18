from types import SimpleNamespace
from typing import Any

import pytest

from seawall.contract.failure import FailureCode, ToolFailed
from seawall.contract.note import Note, StoreFullError
from seawall.contract.ownership import owner_key
from seawall.toolkit.notes import Notebook, Notes, ranked

ALICE = SimpleNamespace(session_id="alice", caller="")
BOB = SimpleNamespace(session_id="bob", caller="")


def _notebook(store: Notes | None = None) -> Notebook:
    return Notebook(store or Notes(), lambda: 1_767_225_600.0)


async def _texts(book: Notebook, context: Any, query: str = "") -> list[str]:
    found = await book.note_search(context, query)
    return [note["text"] for note in found["notes"]]


async def test_a_note_is_numbered_and_dated() -> None:
    note = await _notebook().note_add("Buy milk", ALICE, ("home",))

    assert note == {
        "number": 1,
        "text": "Buy milk",
        "tags": ["home"],
        "created": "2026-01-01T00:00:00Z",
    }


async def test_notes_of_other_sessions_are_not_seen() -> None:
    book = _notebook()
    await book.note_add("secret of alice", ALICE)

    assert await _texts(book, BOB, "secret") == []
    assert await _texts(book, BOB) == []


@pytest.mark.parametrize("session_id", ["chat", ""])
async def test_notes_of_other_callers_are_not_seen_whatever_their_session_is_called(
    session_id: str,
) -> None:
    shop = SimpleNamespace(session_id=session_id, caller="shop")
    other = SimpleNamespace(session_id=session_id, caller="other")
    nobody = SimpleNamespace(session_id=session_id, caller="")
    book = _notebook()
    await book.note_add("the PIN is 4711", shop)

    assert await _texts(book, shop) == ["the PIN is 4711"]
    assert await _texts(book, other) == await _texts(book, nobody) == []


async def test_one_caller_cannot_push_out_the_notes_of_another() -> None:
    store = Notes(per_owner=5, total=6)
    await store.add(owner_key("shop", "first"), "kept", (), 0.0)
    for session in range(20):
        await store.add(owner_key("other", str(session)), "flood", (), 1.0)

    assert len(await store.notes(owner_key("shop", "first"))) == 1
    kept = [await store.notes(owner_key("other", str(session))) for session in range(20)]
    assert [len(notes) for notes in kept] == [0] * 15 + [1] * 5


async def test_a_note_that_was_refused_leaves_nothing_behind() -> None:
    store = Notes(total=0)

    with pytest.raises(StoreFullError):
        await store.add("a", "one", (), 0.0)

    assert store._kept == {}


async def test_a_blank_query_gives_the_newest_first() -> None:
    book = _notebook()
    for text in ("one", "two", "three"):
        await book.note_add(text, ALICE)

    found = await book.note_search(ALICE, " ", limit=2)

    assert [note["text"] for note in found["notes"]] == ["three", "two"]
    assert (found["found"], found["kept"]) == (3, 3)


@pytest.mark.parametrize(
    ("query", "best"),
    [
        ("deploy", "The deployment failed on Friday"),
        ("DATABASE password", "Rotate the database password"),
        ("databse", "Rotate the database password"),
        ("groceries", "Buy milk"),
        ("friday failed", "The deployment failed on Friday"),
        ("colour milk", "Buy milk"),
    ],
)
async def test_words_find_notes_by_beginning_tag_or_near_spelling(query: str, best: str) -> None:
    book = _notebook()
    await book.note_add("Rotate the database password", ALICE)
    await book.note_add("The deployment failed on Friday", ALICE)
    await book.note_add("Buy milk", ALICE, ("groceries",))

    assert await _texts(book, ALICE, query) == [best]


def test_equal_matches_come_newest_first_and_exact_ones_before_near_ones() -> None:
    notes = [Note(at, text, (), 0.0) for at, text in enumerate(["plan a", "plant", "plan b"], 1)]

    assert [note.text for note in ranked(notes, "plan")] == ["plan b", "plan a", "plant"]
    assert ranked(notes, "zebra") == []
    assert ranked([Note(1, "!!!", (), 0.0)], "plan") == []


async def test_a_full_notebook_says_so_and_drops_nothing() -> None:
    book = _notebook(Notes(per_owner=1))
    await book.note_add("kept", ALICE)

    with pytest.raises(ToolFailed) as refused:
        await book.note_add("too much", ALICE)

    assert refused.value.failure.code is FailureCode.EXECUTION_FAILED
    assert refused.value.failure.retryable is False
    assert await _texts(book, ALICE) == ["kept"]


async def test_room_is_made_of_the_notes_of_whoever_wrote_longest_ago() -> None:
    store = Notes(total=3)
    for owner in ("a", "b", "a", "c"):
        await store.add(owner, "text", (), 0.0)

    assert [len(await store.notes(owner)) for owner in "abc"] == [2, 0, 1]


async def test_one_owner_cannot_push_out_own_notes() -> None:
    store = Notes(per_owner=10, total=2)
    await store.add("a", "one", (), 0.0)
    await store.add("a", "two", (), 0.0)

    with pytest.raises(StoreFullError):
        await store.add("a", "three", (), 0.0)

    assert len(await store.notes("a")) == 2


async def test_a_blank_note_is_refused() -> None:
    with pytest.raises(ToolFailed) as refused:
        await _notebook().note_add(" \n", ALICE)

    assert refused.value.failure.fields == ("text",)
