"""One process of several: all that keeps something in a state, again and again, until a time.

`python -m tests.outages.worker URL EFFECTS NAME`: says that it is ready, is told until when, as a
line, and writes JSON.

Each effect is a line in a file of its own, so that what really happened is known past all of our
code. Every failed call is repeated under the same key until it is known how it ended.
"""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import os
import resource
import sys
import threading
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.crash.scene import note

from seawall import (
    Annotations,
    ApprovalConflict,
    ApprovalSettings,
    Pipeline,
    Policies,
    Registry,
    Risk,
    RunPolicy,
    Session,
    Shortcuts,
    StoreUnavailable,
    Tool,
    open_state,
)
from seawall.toolkit.bundle import bundled

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

DEADLINE_S = 3.0
"""Of each call: shorter than what the state may take to answer."""
STORE_S = 5.0
"""What the state may take to answer: each step of an approval asks it a few times."""
GRACE_S = 45.0
"""After the end of the load, for what is still in doubt: longer than the lease of an approval that
was taken by a step of which nobody heard."""
OBJECT = {"type": "object", "properties": {"key": {"type": "string"}}}


class Load:
    """The pipeline of this process, and what came of its calls."""

    def __init__(self, url: str, effects: Path, name: str) -> None:
        self.effects = effects
        self.until = 0.0
        self.name = name
        self.state = open_state(url, timeout_s=STORE_S)
        notes = self.state.notes
        kept = [one for one in bundled(notes=notes) if one.name.startswith("note_")]
        registry = Registry([*kept, *self._tools()])
        # A model that does the same again and again is not what is looked at here.
        self.pipeline = Pipeline(
            registry,
            policies=Policies(RunPolicy(deadline_s=DEADLINE_S, timeout_s=2.0)),
            approvals=ApprovalSettings(),
            state=self.state,
            loop=None,
        )
        self.shortcuts = Shortcuts(self.pipeline)
        self.seen: list[tuple[str, float, float, str]] = []
        """Of each call: what kind, when it began and ended, and its reason if it failed."""
        self.paid: dict[str, str] = {}
        """How each payment ended: `ok`, a reason; `doubt` while nobody knows."""
        self.approved: dict[str, str] = {}
        self.notes = 0
        self.raised: Counter[str] = Counter()
        self._numbers = 0

    def _tools(self) -> list[Tool]:
        async def take_effect(arguments: dict[str, Any], context: Any) -> str:
            await asyncio.to_thread(note, self.effects, arguments["key"])
            return "done"

        async def look(arguments: dict[str, Any], context: Any) -> str:
            return "seen"

        changing, reading = Annotations.for_changing(), Annotations.for_reading()
        return [
            Tool("pay", "Pays.", OBJECT, take_effect, annotations=changing, risk=Risk.LOW),
            Tool("delete", "Deletes.", OBJECT, take_effect, annotations=changing, risk=Risk.HIGH),
            Tool("look", "Looks.", OBJECT, look, annotations=reading),
        ]

    def key(self, kind: str) -> str:
        self._numbers += 1
        return f"{self.name}-{kind}-{self._numbers}"

    async def again(self, kind: str, work: Callable[[], Awaitable[str]], pause_s: float) -> None:
        """Do it until the time is over, and note each."""
        while time.time() < self.until:
            await self.noted(kind, work)
            await asyncio.sleep(pause_s)

    async def noted(self, kind: str, work: Callable[[], Awaitable[str]]) -> None:
        begun = time.time()
        try:
            said = await work()
        except StoreUnavailable:
            said = "StoreUnavailable"
        except Exception as error:  # noqa: BLE001  # what must not come is told
            self.raised[f"{kind}: {error!r}"] += 1
            said = type(error).__name__
        self.seen.append((kind, begun, time.time(), said))

    async def pay(self) -> str:
        key = self.key("pay")
        self.paid[key] = "doubt"
        result = await self.pipeline.call("pay", {"key": key}, idempotency_key=key)
        return self._booked(key, result)

    def _booked(self, key: str, result: Any) -> str:
        failure = result.failure
        if failure is None:
            self.paid[key] = "ok"
            return ""
        reason: str = failure.reason
        if failure.may_have_run is False:
            self.paid[key] = "not run"
        elif reason == "outcome_unknown":
            self.paid[key] = reason
        return reason

    async def cancelled(self) -> str:
        """Ask for a payment, and go away at some moment."""
        key = self.key("pay")
        self.paid[key] = "doubt"
        call = asyncio.ensure_future(self.pipeline.call("pay", {"key": key}, idempotency_key=key))
        await asyncio.sleep((self._numbers % 10) / 1_000)
        call.cancel()
        with suppress(asyncio.CancelledError):
            self._booked(key, await call)
        return ""

    async def look(self) -> str:
        result = await self.pipeline.call("look", {"key": "x"})
        return "" if result.failure is None else result.failure.reason

    async def delete(self) -> str:
        """Have a turn wait, approve it, resume it; each step until the state takes it."""
        key = self.key("delete")
        waits = await self.pipeline.turn([("delete", {"key": key}), ("look", {"key": key})])
        if waits.approval is None:
            failures = [one.failure for one in waits.results if one.failure is not None]
            assert all(failure.may_have_run is False for failure in failures), failures
            return failures[0].reason if failures else "ran without an answer"
        self.approved[key] = "asked"
        await self.approve(waits.approval.id)
        self.approved[key] = f"approved {waits.approval.id}"
        return await self.resume(key, waits.approval.id)

    async def approve(self, approval: str) -> None:
        while True:
            try:
                await self.pipeline.approvals.approve(approval, by="ada")
            except ApprovalConflict:
                return  # it was kept, although that was not said
            except StoreUnavailable:
                await asyncio.sleep(0.1)
            else:
                return

    async def resume(self, key: str, approval: str) -> str:
        """Resume once; whoever did not hear how it ended asks for that."""
        outcome = await self.pipeline.resume(approval)
        first = outcome.results[0].failure
        if first is None:
            self.approved[key] = "ok"
            return ""
        if first.reason == "outcome_unknown":
            self.approved[key] = first.reason
        elif first.reason == "approval_used":
            outcome = await self.pipeline.outcome(approval)
            if outcome.status == "done":
                ended = outcome.results[0].failure
                known = "ok" if ended is None else ended.reason
                if ended is not None and ended.may_have_run is False:
                    known = f"approved {approval}, used and not run: {known}"
                self.approved[key] = known
                return "" if ended is None else ended.reason
        if self.approved[key].startswith("approved "):
            self.approved[key] = f"approved {approval} {first.reason}"
        return first.reason

    async def note(self) -> str:
        text, session = self.key("note"), Session(f"notes of {self.name} {self._numbers // 200}")
        result = await self.pipeline.call("note_add", {"text": text}, session=session)
        if result.failure is not None:
            return result.failure.reason
        found = await self.pipeline.call("note_search", {"query": ""}, session=session)
        if found.failure is not None:
            return found.failure.reason
        assert text in found.text, found.text
        self.notes += 1
        return ""

    async def shortcut(self) -> str:
        name = f"shortcut.{self.key('s').replace('-', '_')}"
        steps = [{"tool": "look", "arguments": {"key": "{key}"}}]
        params = [{"name": "key", "required": True}]
        definition = {"id": name, "name": "Look", "params": params, "steps": steps}
        await self.shortcuts.define(definition)
        result = await self.pipeline.call(name, {"key": "a"})
        await self.shortcuts.remove(name)
        return "" if result.failure is None else result.failure.reason

    async def settle(self) -> None:
        """Ask again until it is known of everything how it ended."""
        end = time.time() + GRACE_S
        while time.time() < end:
            doubt = [key for key, how in self.paid.items() if how in ("doubt", "not run")]
            for key in doubt:
                result = await self.pipeline.call("pay", {"key": key}, idempotency_key=key)
                self._booked(key, result)
            for key, how in tuple(self.approved.items()):
                if how.startswith("approved "):
                    with suppress(StoreUnavailable):
                        await self.resume(key, how.split()[1].rstrip(","))
            if not doubt and not any(how.startswith("approved ") for how in self.approved.values()):
                return
            await asyncio.sleep(0.2)

    def told(self, memory_kb: int) -> dict[str, Any]:
        """What came of the calls, and what is held more than `memory_kb` of memory."""
        database: Any = self.state.database
        pool = database._here.engine.pool
        ledger: Any = self.state.ledger
        return {
            "seen": self.seen,
            "paid": self.paid,
            "approved": self.approved,
            "notes": self.notes,
            "raised": [*self.raised],
            "memory_kb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory_kb,
            "in_use": pool.checkedout() if hasattr(pool, "checkedout") else 0,
            "open": len(ledger._open) + len(ledger._never_ran),
        }


class Watch:
    """What a process holds, looked at again and again."""

    def __init__(self, load: Load) -> None:
        self._load = load
        self.most_tasks = 0
        self.most_queued = 0
        self.slowest_loop_s = 0.0
        self.drained = 0.0

    async def go_on(self) -> None:
        audit = self._load.pipeline._audit
        assert audit is not None
        while True:
            before = time.monotonic()
            await asyncio.sleep(0.02)
            self.slowest_loop_s = max(self.slowest_loop_s, time.monotonic() - before - 0.02)
            self.most_tasks = max(self.most_tasks, len(asyncio.all_tasks()))
            self.most_queued = max(self.most_queued, audit.queued)
            if not audit.queued:
                self.drained = time.time()

    def told(self) -> dict[str, Any]:
        """The most that was there, and the last time that nothing was queued."""
        return {
            "most_tasks": self.most_tasks,
            "most_queued": self.most_queued,
            "drained": self.drained,
            "slowest_loop_s": self.slowest_loop_s,
        }


def held() -> dict[str, int]:
    gc.collect()
    return {
        "tasks": len(asyncio.all_tasks()),
        "threads": threading.active_count(),
        "descriptors": len(list(Path("/proc/self/fd").iterdir())),
    }


class Loud(logging.Handler):
    """Errors that somebody logged: asyncio's, of what nobody waited for, among them."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.said.append(f"{record.name}: {record.getMessage()}")


async def main(url: str, effects: str, name: str) -> None:
    loud = Loud()
    logging.getLogger().addHandler(loud)
    logging.getLogger("seawall").setLevel(logging.ERROR)
    unraised: list[str] = []
    sys.unraisablehook = lambda what: unraised.append(repr(what.exc_value))
    threading.excepthook = lambda what: unraised.append(repr(what.exc_value))
    found = await under_load(Load(url, Path(effects), name))
    gc.collect()
    await asyncio.sleep(0)
    found["raised"] += unraised
    found["logged"] = loud.said
    sys.stdout.write(json.dumps(found))


async def under_load(load: Load) -> dict[str, Any]:
    """Say that all is ready, work until the time that is answered, and tell what came of it."""
    watch = Watch(load)
    async with load.state, load.pipeline:
        for work in (load.pay, load.look, load.delete, load.note, load.shortcut):
            await work()  # all that is made once is made
        before = held()
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        load.until = float(await asyncio.to_thread(sys.stdin.readline))
        watching = asyncio.ensure_future(watch.go_on())
        await asyncio.gather(
            *(load.again("pay", load.pay, 0.02) for _ in range(4)),
            *(load.again("cancelled", load.cancelled, 0.2) for _ in range(2)),
            *(load.again("look", load.look, 0.02) for _ in range(2)),
            *(load.again("approval", load.delete, 0.05) for _ in range(2)),
            *(load.again("note", load.note, 0.1) for _ in range(1)),
            *(load.again("shortcut", load.shortcut, 0.1) for _ in range(1)),
        )
        await load.settle()
        watching.cancel()
        await asyncio.sleep(1)
        return {"before": before, "after": held(), **load.told(memory), **watch.told()}


if __name__ == "__main__":
    os.environ.setdefault("SEAWALL_STATE_KEY", "33" * 32)
    asyncio.run(main(*sys.argv[1:]))
