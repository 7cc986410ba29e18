"""What stands in the files of a state, and in a server's tables, says nothing without the key."""

from pathlib import Path
from typing import Any

import pytest
from tests.servers import PostgresServer
from tests.stores.test_database import database_of

from seawall import Pipeline, Policies, RunPolicy, Session, Shortcuts, State, open_state
from seawall.policy.settings import AuditSettings
from seawall.testing import scripted
from seawall.toolkit.bundle import bundled

KEY = bytes(range(32))
GIVEN, GAVE, ENTRY, WRITTEN, FAILED, SPILT = (
    f"planted-{name}-8d1f" for name in ("argument", "result", "key", "note", "failure", "spill")
)
SECRETS = (GIVEN, GAVE, ENTRY, WRITTEN, FAILED, SPILT)


async def used(state: State) -> None:
    """Use everything that a state keeps, with secrets in all arguments and results."""
    tools = [
        scripted({"text": GAVE, "more": GAVE * 500}, name="act"),
        scripted(ValueError(FAILED), name="fail"),
        scripted("." * 600 + SPILT + "." * 1_000, name="long"),
        *bundled(notes=state.notes),
    ]
    policies = Policies(
        default=RunPolicy(max_result_bytes=1024, spill=True), audit=AuditSettings(wait=True)
    )
    session = Session("s")
    async with Pipeline(tools, state=state, policies=policies) as pipeline:
        for name in ("act", "fail"):
            await pipeline.call(name, {"x": GIVEN, GIVEN: 1}, idempotency_key=ENTRY)
            await pipeline.call(name, f'{{"x": "{GIVEN}"}}', session=session)
        await pipeline.turn([("act", {"x": GIVEN})], session=session)
        added = await pipeline.call("note_add", {"text": WRITTEN, "tags": [WRITTEN]})
        assert not added.is_error, added.text
        await Shortcuts(pipeline).define(
            {
                "id": "shortcut.planted",
                "name": WRITTEN,
                "steps": [{"tool": "act", "arguments": {"x": WRITTEN}}],
            }
        )
        cut = await pipeline.call("long")
        spill_id = cut.text.rpartition('"id": "')[2].partition('"')[0]
        page = await pipeline.call("result_read", {"id": spill_id})
        found = await pipeline.call("note_search", {"query": WRITTEN})
        again = await pipeline.call("act", {"x": GIVEN, GIVEN: 1}, idempotency_key=ENTRY)
    assert SPILT in page.text
    assert SPILT not in cut.text
    assert WRITTEN in found.text
    assert GAVE in again.text


def planted(text: bytes) -> list[str]:
    """Secrets that stand in a text as they are, in hexadecimal, or in two bytes a letter."""
    forms = {
        name: (name.encode(), name.encode().hex().encode(), name.encode("utf-16-le"))
        for name in SECRETS
    }
    return [name for name, written in forms.items() if any(form in text for form in written)]


async def test_no_file_of_an_sqlite_state_says_anything(tmp_path: Path) -> None:
    async with open_state(f"sqlite:///{tmp_path}/state.db") as state:
        await used(state)
        during = read(tmp_path)
    after = read(tmp_path)

    assert {"state.db", "state.db-wal", "state.db.key"} <= set(during)
    assert {name: found for name, text in during.items() if (found := planted(text))} == {}
    assert {name: found for name, text in after.items() if (found := planted(text))} == {}
    assert sum(map(len, after.values())) > 20_000


def read(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_secret_that_stands_there_is_found() -> None:
    assert planted(b"..." + GIVEN.encode() + b"...") == [GIVEN]
    assert planted(GAVE.encode().hex().encode()) == [GAVE]


async def test_no_table_of_a_server_says_anything(
    postgres_server: PostgresServer, postgres_url: str
) -> None:
    async with open_state(postgres_url, key=KEY) as state:
        await used(state)
        assert database_of(state).dialect == "postgresql"

    dump = postgres_server.tool("pg_dump", "--inserts", postgres_url.rpartition("/")[2])

    assert "INSERT INTO public.effects" in dump
    assert planted(dump.encode()) == []


@pytest.mark.parametrize("key", [bytes(32)])
async def test_with_another_key_nothing_is_read(tmp_path: Any, key: bytes) -> None:
    url = f"sqlite:///{tmp_path}/state.db"
    async with open_state(url) as state:
        await used(state)
    (tmp_path / "state.db.key").unlink()

    async with open_state(url, key=key) as state:
        assert state.notes is not None
        assert state.shortcuts is not None
        assert await state.notes.notes("") == []
        assert await state.shortcuts.all() == []
