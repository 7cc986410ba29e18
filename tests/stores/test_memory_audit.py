from seawall.contract.audit import AuditEntry, AuditKind, AuditMark
from seawall.stores.memory_audit import MAX_ENTRIES, MemoryAudit


def entry(number: int) -> AuditEntry:
    return AuditEntry(kind=AuditKind.CALL, at=0, call_id=str(number))


async def test_entries_are_kept_in_order_and_chained() -> None:
    audit = MemoryAudit()
    last = await audit.append([entry(number) for number in range(3)])

    report = await audit.verify(last)

    assert report.sound
    assert (report.entries, report.last, report.unkeyed) == (3, last, 3)
    assert [record.seq async for record in audit.records(after=1)] == [2, 3]


async def test_the_oldest_give_way_and_the_rest_is_still_sound() -> None:
    audit = MemoryAudit()
    await audit.append([entry(number) for number in range(MAX_ENTRIES + 5)])

    report = await audit.verify()

    assert (report.sound, report.entries) == (True, MAX_ENTRIES)


async def test_another_entry_than_was_noted_is_a_fault() -> None:
    audit = MemoryAudit()
    await audit.append([entry(1)])

    assert not (await audit.verify(AuditMark(1, "ab"))).sound
