"""`seawall audit`: look at the audit log of a state, write it out, check that nobody changed it."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import msgspec

from seawall.contract.audit import AuditKind, AuditMark
from seawall.contract.errors import ConfigurationError, Fault, SealBroken
from seawall.edges.cli.exits import Exit
from seawall.edges.cli.sources import existing_state

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from seawall.contract.audit import AuditRecord, AuditReport
    from seawall.edges.cli.paper import Paper
    from seawall.stores.state import State

COLUMNS = ("entry", "time", "kind", "tool", "outcome", "reason", "by", "why", "call")


class AuditOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What the command line said."""

    state: str
    kind: str | None = None
    tool: str | None = None
    limit: int = 40
    last: str | None = None
    as_json: bool = False


def _checked_kind(kind: str | None) -> None:
    """Refuse a kind that no entry has: it would look like an empty log."""
    if kind is not None and kind not in tuple(AuditKind):
        said = f"is {kind!r}; use one of {', '.join(AuditKind)}"
        raise ConfigurationError([Fault(said, "--kind")])


def show(options: AuditOptions, paper: Paper) -> Exit:
    """List the newest entries, the newest last."""
    _checked_kind(options.kind)
    found = asyncio.run(_newest(options))
    if options.as_json:
        paper.text(json.dumps(found))
    else:
        paper.table(COLUMNS, [_row(entry) for entry in found])
    return Exit.OK


def export(options: AuditOptions, paper: Paper) -> Exit:
    """Write all entries as JSON lines, with what is needed to check them."""
    _checked_kind(options.kind)
    asyncio.run(_export(options, paper))
    return Exit.OK


def verify(options: AuditOptions, paper: Paper, errors: Paper) -> Exit:
    """Check the whole log; ends with 1 if it is not as it was written."""
    expected = None if options.last is None else mark_of(options.last)
    report = asyncio.run(_verified(options, expected))
    if options.as_json:
        paper.text(json.dumps({"sound": report.sound, **msgspec.to_builtins(report)}))
    else:
        _tell(report, paper, errors)
    return Exit.OK if report.sound else Exit.TOOL_FAILED


def mark_of(text: str) -> AuditMark:
    """Read an entry's mark, as `verify` writes it."""
    seq, _, hashed = text.partition(":")
    if not (seq.isascii() and seq.isdecimal() and len(seq) < 19 and hashed):
        said = "takes what an earlier verify gave as the last entry, NUMBER:HASH"
        raise ConfigurationError([Fault(said, key="--last")])
    return AuditMark(int(seq), hashed)


async def _newest(options: AuditOptions) -> list[dict[str, Any]]:
    kept: deque[dict[str, Any]] = deque(maxlen=options.limit)
    async with existing_state(options.state) as state:
        async for record in state.audit.records():
            entry = _entry(record)
            if _is_wanted(entry, options):
                kept.append(_opened(entry, state, record))
    return list(kept)


async def _export(options: AuditOptions, paper: Paper) -> None:
    async with existing_state(options.state) as state:
        records: AsyncIterator[AuditRecord] = state.audit.records()
        async for record in records:
            if _is_wanted(_entry(record), options):
                paper.text(json.dumps(msgspec.to_builtins(record)))


async def _verified(options: AuditOptions, expected: AuditMark | None) -> AuditReport:
    async with existing_state(options.state) as state:
        return await state.audit.verify(expected)


def _entry(record: AuditRecord) -> dict[str, Any]:
    """Read an entry; one that was spoilt is shown as what it is."""
    try:
        found = json.loads(record.text)
    except ValueError:
        found = None
    return {**(found if isinstance(found, dict) else {"kind": "spoilt"}), "seq": record.seq}


def _opened(entry: dict[str, Any], state: State, record: AuditRecord) -> dict[str, Any]:
    """Show also why it was so where that is sealed."""
    if entry.pop("why_sealed", None) is None:
        return entry
    try:
        return {**entry, "why": state.audit.why(record)}
    except SealBroken:
        return {**entry, "why": "(sealed with a key that is not here)"}


def _is_wanted(entry: dict[str, Any], options: AuditOptions) -> bool:
    return options.kind in (None, entry.get("kind")) and options.tool in (None, entry.get("tool"))


def _row(entry: dict[str, Any]) -> tuple[str, ...]:
    at = entry.get("at")
    when = datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds") if at else ""
    names = ("kind", "tool", "outcome", "reason", "by", "why", "call_id")
    fields = (str(entry.get(name, "")) for name in names)
    return (str(entry["seq"]), when.replace("+00:00", "Z"), *fields)


def _tell(report: AuditReport, paper: Paper, errors: Paper) -> None:
    for fault in report.faults:
        errors.text(f"entry {fault.seq}: {fault.said}")
    if report.unkeyed:
        errors.text(
            f"note: {report.unkeyed} entries were written without a key; whoever can write to the"
            " state could have made them"
        )
    verdict = "as written" if report.sound else "NOT as written"
    entries = "1 entry" if report.entries == 1 else f"{report.entries} entries"
    paper.text(f"{entries}, {verdict}")
    if report.last is not None:
        paper.text(f"last: {report.last}")
