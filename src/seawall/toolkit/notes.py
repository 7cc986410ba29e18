"""`note_add` and `note_search`: a notebook for the length of a session, or longer with a store."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Protocol

from pydantic import Field
from rapidfuzz import fuzz, process, utils

from seawall.contract.failure import FailureCode
from seawall.contract.note import Note, StoreFullError
from seawall.contract.ownership import holder_of, owner_key
from seawall.stores.shares import Share, to_drop
from seawall.toolkit.refusal import failed, invalid

MAX_TEXT = 4000
MAX_TAGS = 10
_NEAR = 50.0
"""Score from 0 to 100 below which a note does not answer a query: half of its words."""


class NoteStore(Protocol):
    """Where notes are kept. Each owner sees only what that owner added."""

    async def add(self, owner: str, text: str, tags: tuple[str, ...], created: float) -> Note:
        """Keep a note; raises `StoreFullError` when there is no room for it."""

    async def notes(self, owner: str) -> Sequence[Note]:
        """Give the notes of an owner, oldest first, as many as a search may look at."""


class Notes:
    """Keeps notes in memory, bounded for each owner and in all.

    A note is never dropped to make room for another of the same owner. When all room is taken, the
    caller with the most notes makes some: of its owners, whoever has written nothing for longest.
    """

    def __init__(self, *, per_owner: int = 500, total: int = 10_000) -> None:
        self._per_owner = per_owner
        self._total = total
        self._count = 0
        self._kept: dict[str, list[Note]] = {}

    async def add(self, owner: str, text: str, tags: tuple[str, ...], created: float) -> Note:
        """Keep a note."""
        # Taken out and put in again, so that whoever wrote last stands last.
        kept = self._kept[owner] = self._kept.pop(owner, [])
        if len(kept) >= self._per_owner:
            raise StoreFullError
        self._make_room(owner)
        note = Note(len(kept) + 1, text, tags, created)
        kept.append(note)
        self._count += 1
        return note

    async def notes(self, owner: str) -> Sequence[Note]:
        """Give the notes of an owner, oldest first."""
        return tuple(self._kept.get(owner, ()))

    def _make_room(self, writer: str) -> None:
        if self._count < self._total:
            return
        kept = [
            Share(owner, holder_of(owner), len(notes) + (owner == writer))
            for owner, notes in self._kept.items()
        ]
        dropped = to_drop(kept, self._total)
        if writer in dropped:
            if not self._kept[writer]:
                del self._kept[writer]
            raise StoreFullError
        for owner in dropped:
            self._count -= len(self._kept.pop(owner))


class _Context(Protocol):
    @property
    def session_id(self) -> str: ...
    @property
    def caller(self) -> str: ...


class Notebook:
    """The two tools over one store; notes belong to the caller and session that made them."""

    def __init__(self, store: NoteStore, wall: Callable[[], float]) -> None:
        self._store = store
        self._wall = wall

    async def note_add(
        self,
        text: Annotated[str, Field(min_length=1, max_length=MAX_TEXT)],
        context: _Context,
        tags: Annotated[
            tuple[Annotated[str, Field(min_length=1, max_length=40)], ...],
            Field(max_length=MAX_TAGS, description="Words to find it by."),
        ] = (),
    ) -> dict[str, Any]:
        """Write a note down, to be found again with note_search in this session."""
        if not text.strip():
            raise invalid("text", "a note needs some text")
        try:
            note = await self._store.add(_owner(context), text, tags, self._wall())
        except StoreFullError:
            raise failed(
                FailureCode.EXECUTION_FAILED,
                "the notebook is full, so the note was not kept",
                retryable=False,
                guidance="Go on without it, or put what matters into your answer.",
            ) from None
        return _shown(note)

    async def note_search(
        self,
        context: _Context,
        query: Annotated[
            str, Field(max_length=200, description="Words to look for; blank gives the newest.")
        ] = "",
        limit: Annotated[int, Field(ge=1, le=50)] = 5,
    ) -> dict[str, Any]:
        """Find notes of this session by words of their text and tags, best match first."""
        notes = await self._store.notes(_owner(context))
        found = ranked(notes, query)
        return {
            "notes": [_shown(note) for note in found[:limit]],
            "found": len(found),
            "kept": len(notes),
        }


def _owner(context: _Context) -> str:
    return owner_key(context.caller, context.session_id)


_MAX_WORDS = 8


def ranked(notes: Sequence[Note], query: str) -> list[Note]:
    """Order notes by how well they answer a query, newest first among equals."""
    wanted = list(dict.fromkeys(utils.default_process(query).split()))[:_MAX_WORDS]
    if not wanted:
        return list(reversed(notes))
    scored = [(_score(note, wanted), note.number, note) for note in notes]
    near = sorted((entry for entry in scored if entry[0] >= _NEAR), key=lambda e: e[:2])
    return [note for _, _, note in reversed(near)]


def _score(note: Note, wanted: Sequence[str]) -> float:
    """Average over the query's words how near each is to the nearest word of the note."""
    text = f" {' '.join(utils.default_process(part) for part in (note.text, *note.tags))} "
    words = set(text.split())
    return sum(_nearest(part, text, words) for part in wanted) / len(wanted)


def _nearest(part: str, text: str, words: set[str]) -> float:
    if part in words:
        return 100.0
    # A word that begins so is what was meant: `deploy` finds `deployment`.
    if len(part) >= 3 and f" {part}" in text:
        return 95.0
    near = process.extractOne(part, words, scorer=fuzz.ratio, score_cutoff=75)
    return near[1] if near else 0.0


def _shown(note: Note) -> dict[str, Any]:
    created = datetime.fromtimestamp(note.created, UTC).isoformat(timespec="seconds")
    return {
        "number": note.number,
        "text": note.text,
        "tags": list(note.tags),
        "created": created.replace("+00:00", "Z"),
    }
