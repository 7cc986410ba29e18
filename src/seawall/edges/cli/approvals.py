"""`seawall approvals`: what waits for a person, answered and run from a terminal."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import TYPE_CHECKING, Any

import msgspec

from seawall.contract.approval import (
    ApprovalBatch,
    ApprovalConflict,
    ApprovalNotFound,
    ApprovalStatus,
)
from seawall.contract.errors import ConfigurationError, Fault, StoreUnavailable
from seawall.edges.cli.call import as_data, read
from seawall.edges.cli.exits import Exit, exit_of
from seawall.edges.cli.paper import Paper
from seawall.edges.cli.sources import (
    existing_state,
    policies_from,
    registry_from,
    told_of_bundled,
)
from seawall.orchestration.approvals.desk import MAX_COUNTED, Approvals
from seawall.orchestration.pipeline import Pipeline
from seawall.pipeline.chance import SystemChance
from seawall.pipeline.clock import SystemClock
from seawall.pipeline.visible import visible_json, visible_line
from seawall.recording.shown import moment

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from seawall.contract.decision import PendingApproval
    from seawall.contract.turn import TurnOutcome
    from seawall.stores.state import State

COLUMNS = ("id", "status", "tools", "risk", "why", "expires", "session")

_COLOURS = {
    ApprovalStatus.PENDING: "yellow",
    ApprovalStatus.APPROVED: "green",
    ApprovalStatus.DONE: "green",
    ApprovalStatus.UNKNOWN: "bold red",
    ApprovalStatus.DENIED: "red",
}


class Desk(msgspec.Struct, frozen=True):
    """Which state is meant, and where answers are written."""

    state: str | None
    as_json: bool
    paper: Paper
    errors: Paper


def listed(
    desk: Desk, status: str, session: str | None, limit: int, after: str | None = None
) -> Exit:
    """List requests; `all` is any status. Says on standard error what it leaves out."""
    if status != "all" and status not in list(ApprovalStatus):
        known = ", ".join([*ApprovalStatus, "all"])
        raise ConfigurationError([Fault(f"is {status!r}; use one of {known}", "--status")])
    wanted = None if status == "all" else ApprovalStatus(status)

    async def work(approvals: Approvals) -> Exit:
        try:
            page = await approvals.page(wanted, session_id=session, limit=limit, after=after)
        except ValueError:
            said = "is not what an earlier list gave; take what its last line says"
            raise ConfigurationError([Fault(said, "--after")]) from None
        found = page.approvals
        if desk.as_json:
            desk.paper.text(_json([_data(batch) for batch in found]))
        elif found:
            now = approvals.clock.wall()
            _listed(desk.paper, found, now)
        else:
            said = "Nothing waits for an answer." if status == "pending" else "There is none."
            desk.errors.text(said)
        if page.after is not None:
            number = f"{page.more:,}{' or more' if page.more >= MAX_COUNTED else ''}"
            desk.errors.text(f"{number} older ones are left: --after {page.after}")
        return Exit.OK

    return _at(desk, work)


def shown(desk: Desk, approval_id: str) -> Exit:
    """Show one request with all that a person needs to answer it."""

    async def work(approvals: Approvals) -> Exit:
        _write(desk, await approvals.show(approval_id, whole=True), approvals.clock.wall())
        return Exit.OK

    return _at(desk, work)


def answered(
    desk: Desk, change: Callable[[Approvals], Awaitable[ApprovalBatch]], said: str
) -> Exit:
    """Answer or withdraw, and say what became of the request."""

    async def work(approvals: Approvals) -> Exit:
        batch = await change(approvals)
        if desk.as_json:
            desk.paper.text(_json(_data(batch)))
            return Exit.OK
        desk.paper.line(f"{said}: {batch.id} is ", (batch.status, _COLOURS.get(batch.status, "")))
        left = sum(item.decision is None for item in batch.approvals)
        if batch.status is ApprovalStatus.PENDING:
            desk.paper.line(f"{left} of its calls still wait for an answer.")
        return Exit.OK

    return _at(desk, work)


def resumed(
    desk: Desk, approval_id: str, arguments: str | None, registry: str | None, policy: str | None
) -> Exit:
    """Run an approved request with the tools of a registry, and write its results."""
    given = _arguments(arguments)
    tools, policies = registry_from(registry), policies_from(policy)

    async def work(state: State) -> Exit:
        async with Pipeline(tools, policies=policies, state=state) as pipeline:
            outcome = await pipeline.resume(approval_id, arguments=given)
        code = _results(desk, outcome)
        if not desk.as_json and any(one.tool and one.tool not in tools for one in outcome.results):
            told_of_bundled(desk.errors, registry)
        return code

    return _with_state(desk, work)


def fetched(desk: Desk, approval_id: str) -> Exit:
    """Write the results of a request that was run; nothing is run."""

    async def work(state: State) -> Exit:
        async with Pipeline([], state=state) as pipeline:
            is_theirs = not await _is_of_an_edge(pipeline.approvals, approval_id)
            return _results(desk, await pipeline.outcome(approval_id, read=is_theirs))

    return _with_state(desk, work)


async def _is_of_an_edge(approvals: Approvals, approval_id: str) -> bool:
    """Whether somebody else made the call, at a gateway: a look from here is not their reading."""
    try:
        return bool((await approvals.frozen(approval_id)).front)
    except ApprovalNotFound:
        return False


def _at(desk: Desk, work: Callable[[Approvals], Awaitable[Exit]]) -> Exit:
    async def at(state: State) -> Exit:
        return await work(Approvals(None, SystemClock(), SystemChance(), state=state))

    return _with_state(desk, at)


def _with_state(desk: Desk, work: Callable[[State], Awaitable[Exit]]) -> Exit:
    if desk.state is None:
        said = "is needed: sqlite:///FILE or postgresql://USER@HOST/NAME, as the agent has it"
        raise ConfigurationError([Fault(said, "--state")])
    state = existing_state(desk.state)

    async def opened() -> Exit:
        async with state:
            return await work(state)

    try:
        return asyncio.run(opened())
    except ApprovalNotFound as error:
        return _failed(desk, str(error.args[0]), Exit.NOT_FOUND)
    except ApprovalConflict as error:
        return _failed(desk, str(error), Exit.REFUSED)
    except StoreUnavailable as error:
        return _failed(desk, str(error), Exit.USAGE)


def _failed(desk: Desk, said: str, code: Exit) -> Exit:
    if desk.as_json:
        desk.paper.text(_json({"error": said, "exit_code": int(code)}))
    else:
        desk.errors.line(said, lead="error: ")
    return code


def _arguments(text: str | None) -> dict[str, Any] | None:
    if text is None:
        return None
    said = "must be a JSON object"
    try:
        found = json.loads(read(sys.stdin) if text == "-" else text)
    except ValueError as error:
        raise ConfigurationError([Fault(f"{said}: {error}", "--arguments")]) from None
    if not isinstance(found, dict):
        raise ConfigurationError([Fault(said, "--arguments")])
    return found


def _listed(paper: Paper, found: Sequence[ApprovalBatch], now: float) -> None:
    """Write the table, with the servers if the requests are not all of one."""
    servers = [visible_line(_servers(batch)) for batch in found]
    rows = [tuple(map(visible_line, _row(batch, now))) for batch in found]
    if len(set(servers)) == 1:
        paper.table(COLUMNS, rows)
        return
    at = COLUMNS.index("tools") + 1
    columns = (*COLUMNS[:at], "server", *COLUMNS[at:])
    told = zip(rows, servers, strict=True)
    paper.table(columns, [(*row[:at], server, *row[at:]) for row, server in told])


def _servers(batch: ApprovalBatch) -> str:
    return ", ".join(dict.fromkeys(item.origin for item in batch.approvals if item.origin))


def _row(batch: ApprovalBatch, now: float) -> tuple[str, ...]:
    items = batch.approvals
    worst = max((item.risk for item in items), default=None)
    return (
        batch.id,
        batch.status.value,
        ", ".join(dict.fromkeys(item.tool for item in items)),
        "" if worst is None else worst.name.lower(),
        "; ".join(dict.fromkeys(item.reason for item in items)),
        _left(batch, now),
        batch.session_id,
    )


def _left(batch: ApprovalBatch, now: float) -> str:
    if batch.expires is None:
        return "never"
    if batch.status not in (ApprovalStatus.PENDING, ApprovalStatus.APPROVED):
        return ""
    return f"in {_span(max(batch.expires - now, 0))}"


def _span(seconds: float) -> str:
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} s"


def _write(desk: Desk, batch: ApprovalBatch, now: float) -> None:
    paper = desk.paper
    if desk.as_json:
        paper.text(_json(_data(batch)))
        return
    paper.line((batch.id, "bold"), "  ", (batch.status.value, _COLOURS.get(batch.status, "")))
    others = batch.calls - len(batch.approvals)
    facts = {
        "asked": moment(batch.created),
        "expires": _left(batch, now),
        "session": batch.session_id,
        "caller": batch.caller,
        "run by": batch.owner,
        "with it": f"{others} other calls of the turn" if others else "",
        "state": "" if batch.state is None else _json(batch.state),
    }
    _facts(paper, facts)
    for item in batch.approvals:
        _item(paper, item)


def _item(paper: Paper, item: PendingApproval) -> None:
    paper.line("")
    paper.line((visible_line(item.tool), "bold"), f"  {item.id}")
    decided = "" if item.decided is None else f"{item.decision} at {moment(item.decided)}"
    facts = {
        "server": item.origin,
        "risk": item.risk.name.lower(),
        "why": item.reason,
        "call": item.call_id,
        "digest": item.digest,
        "answer": f"{decided} by {item.decided_by}" if item.decided_by else decided,
        "because": item.deny_reason,
    }
    _facts(paper, facts)
    paper.text("\n".join(f"  {line}" for line in item.arguments.split("\n")))
    if item.arguments_cut:
        paper.line("  Part of the arguments is not shown: they are too long.", lead="")


def _facts(paper: Paper, facts: dict[str, str]) -> None:
    for name, value in facts.items():
        if value:
            paper.line(visible_line(value), lead=f"  {name:<8} ")


def _results(desk: Desk, outcome: TurnOutcome) -> Exit:
    failures = [result.failure for result in outcome.results if result.failure is not None]
    # What is wrong with one keeps the others from running: that one says how it ended.
    told = [failure for failure in failures if failure.reason != "not_executed"]
    code = exit_of(next(iter(told or failures), None))
    if outcome.approval is not None:
        code = Exit.REFUSED
    if desk.as_json:
        results = [as_data(result) for result in outcome.results]
        data = {"status": outcome.status, "reason": outcome.reason, "results": results}
        desk.paper.text(_json({**data, "exit_code": int(code)}))
        return code
    if outcome.approval is not None:
        desk.errors.text(outcome.reason)
    for result in outcome.results:
        paper = desk.errors if result.is_error else desk.paper
        paper.line((result.tool or "approval", "bold"), f"  {result.call_id}")
        tell = paper.line if result.is_error else paper.text
        tell(result.render())
    return code


def _data(batch: ApprovalBatch) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.to_builtins(batch)
    for item, seen in zip(found["approvals"], batch.approvals, strict=True):
        item["risk"] = seen.risk.name.lower()
    return found


def _json(data: Any) -> str:
    return visible_json(json.dumps(data, ensure_ascii=False, default=str))
