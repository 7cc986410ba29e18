"""What is kept of a waiting call, and who can read it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

from tests.orchestration.approvals.conftest import Place

from seawall import Annotations, Risk, TurnStatus

if TYPE_CHECKING:
    from pathlib import Path

    import pytest
    from tests.servers import PostgresServer

SECRETS = ("hunter2-planted", "open-planted", "deep-planted", "result-planted", "carried-planted")

SCHEMA = {
    "type": "object",
    "properties": {
        "password": {"type": "string", "writeOnly": True},
        "note": {"type": "string"},
        "auth": {"type": "object"},
    },
}
ARGUMENTS = {
    "password": SECRETS[0],
    "note": SECRETS[1],
    "auth": {"Token": SECRETS[2], "user": "ada"},
}


def login(place: Place, **fields: Any) -> Any:
    async def run(_: Any, context: Any) -> str:
        return SECRETS[3]

    return place.tool("login", run, risk=Risk.HIGH, input_schema=SCHEMA, **fields)


def files_in(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.iterdir() if path.is_file())


async def went_through(place: Place, **options: Any) -> Any:
    """Ask, approve, resume and read; what was shown of it."""
    pipeline = place.pipeline([login(place)], settings={"hidden": ("token",)}, **options)
    waiting = await pipeline.turn([("login", ARGUMENTS, "a")], carry={"thread": SECRETS[4]})
    assert waiting.approval is not None
    await pipeline.approvals.approve(waiting.approval.id)
    outcome = await pipeline.resume(waiting.approval.id)
    assert outcome.results[0].text == SECRETS[3]
    return waiting.approval


async def test_nothing_of_arguments_and_results_can_be_read_in_the_files(tmp_path: Path) -> None:
    place = Place(None, f"sqlite:///{tmp_path}/state.db")

    await went_through(place)

    await place.close()
    kept = files_in(tmp_path)
    assert b"login" in kept
    assert not [secret for secret in SECRETS if secret.encode() in kept]


async def test_nothing_of_arguments_and_results_can_be_read_in_postgresql(
    postgres_server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEAWALL_STATE_KEY", "22" * 32)
    place = Place(None, postgres_server.new_database())

    await went_through(place)

    kept = postgres_server.tool("pg_dump", "--inserts", "-d", place.url or "")
    await place.close()
    assert "apr_" in kept
    for secret in SECRETS:
        assert secret not in kept
        assert secret.encode().hex() not in kept


async def test_a_person_sees_all_but_what_is_secret_by_schema_or_by_name(memory: Place) -> None:
    shown = (await went_through(memory)).approvals[0].arguments

    assert SECRETS[1] in shown
    assert '"user": "ada"' in shown
    assert SECRETS[0] not in shown
    assert SECRETS[2] not in shown
    assert shown.count("(not shown)") == 2


async def test_of_a_sensitive_tool_a_person_sees_the_names_alone(memory: Place) -> None:
    tool = login(memory, annotations=Annotations(sensitive=True))
    waiting = await memory.pipeline([tool]).turn([("login", ARGUMENTS)])

    assert waiting.approval is not None
    shown = waiting.approval.approvals[0].arguments
    assert all(name in shown for name in ARGUMENTS)
    assert not any(secret in shown for secret in (*SECRETS, "ada"))


async def test_without_a_key_arguments_are_given_again_and_held_to_the_digest(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SEAWALL_STATE_KEY", raising=False)
    place = Place(None, postgres_url)
    pipeline = place.pipeline([login(place)])
    waiting = await pipeline.turn([("login", ARGUMENTS, "a"), ("none", {}, "b")])
    assert waiting.approval is not None
    batch_id = waiting.approval.id
    assert SECRETS[0] not in waiting.approval.approvals[0].arguments
    await pipeline.approvals.approve(batch_id)

    other = place.pipeline([login(place)])
    without = await other.resume(batch_id)
    wrong = await other.resume(batch_id, arguments={**ARGUMENTS, "note": "other"})
    right = await other.resume(batch_id, arguments=ARGUMENTS)
    kept = await other.outcome(batch_id)
    await place.close()

    said = [one.results[0].render() for one in (without, wrong)]
    assert "there is no key; give them again" in said[0]
    assert "not those that were approved" in said[1]
    assert right.results[0].text == SECRETS[3]
    assert "was run and succeeded" in kept.results[0].text
    assert SECRETS[3] not in kept.results[0].text


async def test_of_several_calls_arguments_are_given_by_the_calls_ids(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SEAWALL_STATE_KEY", raising=False)
    place = Place(None, postgres_url)
    pipeline = place.pipeline()
    waiting = await pipeline.turn([("delete", {"t": 1}, "a"), ("read", {"t": 2}, "b")])
    assert waiting.approval is not None
    await pipeline.approvals.approve(waiting.approval.id)

    part = await pipeline.resume(waiting.approval.id, arguments={"a": {"t": 1}})
    whole = await pipeline.resume(waiting.approval.id, arguments={"a": {"t": 1}, "b": {"t": 2}})
    await place.close()

    assert [one.is_error for one in part.results] == [True, True]
    assert ([one.is_error for one in whole.results], whole.status) == (
        [False, False],
        TurnStatus.DONE,
    )


async def test_sealed_arguments_that_were_moved_or_changed_are_not_run(tmp_path: Path) -> None:
    place = Place(None, f"sqlite:///{tmp_path}/state.db")
    pipeline = place.pipeline()
    ids = []
    for table in ("mine", "yours"):
        waiting = await pipeline.turn([("delete", {"table": table})])
        assert waiting.approval is not None
        ids.append(waiting.approval.id)
    await pipeline.approvals.approve(ids[0])
    with closing(sqlite3.connect(tmp_path / "state.db")) as database:
        query = "SELECT sealed FROM approval_payloads WHERE approval = ? AND name = '0:arguments'"
        (other,) = database.execute(query, (ids[1],)).fetchone()
        update = "UPDATE approval_payloads SET sealed = ? WHERE approval = ? AND name = ?"
        database.execute(update, (other, ids[0], "0:arguments"))
        database.commit()

    outcome = await pipeline.resume(ids[0])
    await place.close()

    assert outcome.reason == "gate_failed"
    assert place.effects == []
