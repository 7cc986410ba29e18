import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from sqlalchemy import text
from tests.stores.test_database import database_of

from seawall.contract.audit import AuditEntry, AuditKind, AuditMark, AuditReport, Private
from seawall.contract.errors import SealBroken, StoreUnavailable
from seawall.stores import State, open_state
from seawall.stores.chain import BEGINNING, MAX_FAULTS, MAX_TEXT, Chain
from seawall.stores.keys import VARIABLE
from seawall.stores.sql_audit import SqlAudit

KEY, OTHER = bytes(range(32)), bytes(range(1, 33))


def entry(number: int, **fields: Any) -> AuditEntry:
    return AuditEntry(kind=AuditKind.CALL, at=1_700_000_000.5, call_id=str(number), **fields)


async def filled(state: State, count: int = 10) -> AuditMark:
    mark = AuditMark(0, "")
    for number in range(count):
        mark = await state.audit.append([entry(number)])
    return mark


async def execute(state: State, *statements: str) -> None:
    for statement in statements:
        await database_of(state).write(lambda c, s=statement: c.execute(text(s)))  # type: ignore[misc]  # bound now


async def said(state: State, expected: AuditMark | None = None) -> set[tuple[int, str]]:
    report = await state.audit.verify(expected)
    assert report.sound == (not report.faults)
    return {(fault.seq, fault.said) for fault in report.faults}


async def test_a_log_that_nobody_touched_is_sound(state_url: str) -> None:
    async with open_state(state_url, key=KEY) as state:
        last = await filled(state)

        assert await state.audit.verify(last) == AuditReport(entries=10, last=last)
        assert [r.seq async for r in state.audit.records(after=7)] == [8, 9, 10]


async def test_an_empty_log_is_sound(state_url: str) -> None:
    async with open_state(state_url, key=KEY) as state:
        assert await state.audit.verify() == AuditReport(entries=0)


CHANGED = (
    'UPDATE audit SET entry = replace(entry, \'"call_id":"4"\', \'"call_id":"7"\') WHERE seq = 5'
)
SWAP = (
    "UPDATE audit SET seq = -1 WHERE seq = 5",
    "UPDATE audit SET seq = 5 WHERE seq = 6",
    "UPDATE audit SET seq = 6 WHERE seq = -1",
)


@pytest.mark.parametrize(
    ("statements", "fault"),
    [
        ([CHANGED], (5, "it was changed")),
        (["UPDATE audit SET hash = 'ab' WHERE seq = 5"], (5, "it was changed")),
        (["DELETE FROM audit WHERE seq = 5"], (6, "what should follow 4 is not there")),
        (["DELETE FROM audit WHERE seq = 1"], (2, "what should follow 0 is not there")),
        (SWAP, (5, "it was put here from place 6")),
        (SWAP, (6, "it was put here from place 5")),
        (
            [
                "DELETE FROM audit WHERE seq = 5",
                *(f"UPDATE audit SET seq = {n - 1} WHERE seq = {n}" for n in range(6, 11)),
                "UPDATE audit_head SET seq = 9",
            ],
            (5, "it was put here from place 6"),
        ),
        (["DELETE FROM audit WHERE seq > 8"], (10, "the log ends at 8, but 10 were written")),
        (["DELETE FROM audit"], (10, "the log ends at 0, but 10 were written")),
        (["UPDATE audit SET entry = 'x' WHERE seq = 5"], (5, "it cannot be read")),
        (["UPDATE audit SET key = '' WHERE seq = 5"], (5, "it was changed")),
        (
            ["UPDATE audit SET key = '' WHERE seq = 5"],
            (5, "it was written without a key, where there was one already"),
        ),
        (
            ["UPDATE audit SET key = 'beef' WHERE seq = 5"],
            (5, "it cannot be checked without the key beef"),
        ),
        (
            ["INSERT INTO audit SELECT 11, at, entry, key, hash FROM audit WHERE seq = 10"],
            (11, "it was put here from place 10"),
        ),
    ],
)
async def test_what_was_changed_removed_or_moved_is_found(
    state_url: str, statements: list[str], fault: tuple[int, str]
) -> None:
    async with open_state(state_url, key=KEY) as state:
        await filled(state)
        if "INSERT" in statements[0]:
            statements = [*statements, "UPDATE audit_head SET seq = 11"]

        await execute(state, *statements)

        assert fault in await said(state)


async def test_a_cut_tail_is_found_by_whoever_noted_the_last_entry(state_url: str) -> None:
    async with open_state(state_url, key=KEY) as state:
        last = await filled(state)
        await execute(
            state,
            "DELETE FROM audit WHERE seq > 8",
            "UPDATE audit_head SET seq = 8, hash = (SELECT hash FROM audit WHERE seq = 8)",
        )

        assert await said(state) == set()
        assert await said(state, last) == {
            (10, "the end of the log was cut off: this entry was there")
        }


async def test_a_tail_that_was_written_anew_is_found_too(state_url: str) -> None:
    async with open_state(state_url, key=KEY) as state:
        last = await filled(state)
        await execute(
            state,
            "DELETE FROM audit WHERE seq > 8",
            "UPDATE audit_head SET seq = 8, hash = (SELECT hash FROM audit WHERE seq = 8)",
        )
        await state.audit.append([entry(98), entry(99), entry(100)])

        assert await said(state) == set()
        assert await said(state, last) == {(10, "it is not the entry that was noted before")}


async def test_who_has_no_key_cannot_forge_the_log(postgres_url: str) -> None:
    async with open_state(postgres_url, key=KEY) as state:
        await filled(state, 3)
    async with open_state(postgres_url, key=OTHER) as forger:
        await execute(forger, "DELETE FROM audit", "UPDATE audit_head SET seq = 0, hash = ''")
        await filled(forger, 3)

    async with open_state(postgres_url, key=KEY) as state:
        report = await state.audit.verify()

    assert len(report.faults) == 3
    assert "cannot be checked without the key" in report.faults[0].said


async def test_entries_without_a_key_are_counted(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    async with open_state(postgres_url) as state:
        await filled(state, 3)
    async with open_state(postgres_url, key=KEY) as state:
        await filled(state, 2)
        report = await state.audit.verify()

    assert (report.sound, report.entries, report.unkeyed) == (True, 5, 3)


async def test_an_older_key_still_checks(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_state(postgres_url, key=KEY) as state:
        await filled(state, 3)
    monkeypatch.setenv(VARIABLE, f"{OTHER.hex()},{KEY.hex()}")

    async with open_state(postgres_url) as state:
        await filled(state, 3)
        assert (await state.audit.verify()).sound


async def test_only_the_first_faults_are_told(state_url: str) -> None:
    async with open_state(state_url, key=KEY) as state:
        await state.audit.append([entry(number) for number in range(100)])
        await execute(state, "UPDATE audit SET hash = 'ab'")

        assert len((await state.audit.verify()).faults) == MAX_FAULTS


async def test_a_long_log_is_read_in_pages(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seawall.stores.sql_audit._PAGE", 7)
    async with open_state(f"sqlite:///{tmp_path}/state.db") as state:
        last = await state.audit.append([entry(number) for number in range(21)])

        assert await state.audit.verify() == AuditReport(entries=21, last=last)
        assert [r.seq async for r in state.audit.records()] == list(range(1, 22))


async def test_what_is_written_while_it_is_checked_is_no_fault(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_state(f"sqlite:///{tmp_path}/state.db") as state:
        await filled(state, 3)
        audit = state.audit
        assert isinstance(audit, SqlAudit)
        head = audit._head

        async def then_another(connection: Any) -> AuditMark:
            found = await head(connection)
            await audit.append([entry(9)])
            return found

        monkeypatch.setattr(audit, "_head", then_another)
        assert await said(state) == set()


async def test_texts_are_cut_and_no_text_is_refused(state_url: str) -> None:
    async with open_state(state_url, key=KEY) as state:
        await state.audit.append([entry(1, why="x" * 5_000), entry(2, why="\0\ud800'; --")])
        found = [json.loads(record.text) async for record in state.audit.records()]

        assert len(found[0]["why"]) == MAX_TEXT
        assert found[1]["why"] == "\0\ud800'; --"
        assert (await state.audit.verify()).sound


async def test_a_private_reason_is_opened_with_its_key_and_in_its_place_alone(
    state_url: str,
) -> None:
    async with open_state(state_url, key=KEY) as state:
        await state.audit.append(
            [entry(1, why=Private("x" * 5_000)), entry(2, why=Private("\ud800"))]
        )
        first, second = [record async for record in state.audit.records()]
        assert len(state.audit.why(first)) == MAX_TEXT
        assert state.audit.why(second) == "\ud800"
        assert "why" not in json.loads(first.text)
        with pytest.raises(SealBroken):
            state.audit.why(msgspec.structs.replace(first, seq=2))
        with pytest.raises(SealBroken):
            state.audit.why(msgspec.structs.replace(first, text="[]"))
        assert (await state.audit.verify()).sound
    async with open_state(state_url, key=bytes(32)) as other:
        with pytest.raises(SealBroken):
            other.audit.why(first)


async def test_a_private_reason_that_is_blank_is_none(state_url: str) -> None:
    async with open_state(state_url, key=KEY) as state:
        await state.audit.append([entry(1, why=Private(""))])
        (record,) = [record async for record in state.audit.records()]

        assert state.audit.why(record) == ""
        assert "why_sealed" not in json.loads(record.text)


WRITE = """
import asyncio, sys
from seawall.contract.audit import AuditEntry, AuditKind
from seawall.stores import open_state

async def main():
    async with open_state(sys.argv[1]) as state:
        for number in range(25):
            await state.audit.append(
                [AuditEntry(kind=AuditKind.CALL, at=0, call_id=f"{sys.argv[2]}-{number}")] * 2
            )

asyncio.run(main())
"""


def test_writers_of_several_processes_keep_one_chain(state_url: str) -> None:
    environment = {**os.environ, VARIABLE: KEY.hex()}
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITE, state_url, name], env=environment)
        for name in "abcd"
    ]
    assert [writer.wait(120) for writer in writers] == [0, 0, 0, 0]

    async def look() -> AuditReport:
        async with open_state(state_url, key=KEY) as state:
            return await state.audit.verify()

    report = asyncio.run(look())
    assert (report.sound, report.entries) == (True, 200)


async def test_entries_stand_and_fall_with_the_transaction_they_are_in(state_url: str) -> None:
    async with open_state(state_url, key=KEY) as state:
        await filled(state, 1)
        audit = state.audit
        assert isinstance(audit, SqlAudit)

        async def fail(connection: Any) -> None:
            await audit.append_in(connection, [entry(2)])
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await database_of(state).write(fail)

        assert await state.audit.verify() == AuditReport(
            entries=1, last=(await state.audit.verify()).last
        )


async def test_a_file_that_was_written_anew_without_a_key_does_not_pass(tmp_path: Path) -> None:
    async with open_state(f"sqlite:///{tmp_path}/state.db") as state:
        await filled(state, 3)
        forged, mark = Chain(None), BEGINNING
        await execute(state, "DELETE FROM audit")
        for _ in range(3):
            record = forged.link(mark, AuditEntry(kind=AuditKind.CALL, at=1.0))
            mark = AuditMark(record.seq, record.hash)
            values = f"{record.seq}, 1.0, '{record.text}', '', '{record.hash}'"
            await execute(state, f"INSERT INTO audit VALUES ({values.replace(':', chr(92) + ':')})")
        await execute(state, f"UPDATE audit_head SET seq = {mark.seq}, hash = '{mark.hash}'")

        report = await state.audit.verify()

    assert [fault.seq for fault in report.faults] == [1, 2, 3]
    assert "without a key" in report.faults[0].said


@pytest.mark.parametrize("is_kept", [True, False])
async def test_entries_of_which_it_is_not_known_whether_they_were_kept_are_there_once(
    state_url: str, monkeypatch: pytest.MonkeyPatch, *, is_kept: bool
) -> None:
    async with open_state(state_url, key=KEY) as state:
        write, entries = database_of(state).write, [entry(1), entry(2)]

        async def unanswered(work: Any, *more: Any) -> Any:
            if is_kept:
                await write(work, *more)
            else:
                with pytest.raises(ZeroDivisionError):
                    await write(lambda connection: broken_off(connection, work))
            raise StoreUnavailable("there", "gone while it answered")

        async def broken_off(connection: Any, work: Any) -> None:
            await work(connection)
            raise ZeroDivisionError

        await state.audit.append([entry(0)])
        with monkeypatch.context() as away:
            away.setattr(database_of(state), "write", unanswered)
            for _ in range(2):
                with pytest.raises(StoreUnavailable):
                    await state.audit.append(entries)
        await state.audit.append([entry(9)])  # of somebody else, in between
        await state.audit.append([*entries, entry(3)])

        records = [json.loads(record.text)["call_id"] async for record in state.audit.records()]
        expected = ["0", "1", "2", "9", "3"] if is_kept else ["0", "9", "1", "2", "3"]
        assert records == expected
        assert (await state.audit.verify()).sound
