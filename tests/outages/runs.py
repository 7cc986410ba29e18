"""Outages: what is done to a database under load, and what became of the calls meanwhile."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tests.outages.network import Network, network_to
from tests.outages.postgres import Crowd, FailingPostgres
from tests.outages.worker import DEADLINE_S, GRACE_S, STORE_S

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PROCESSES = 2
BEFORE_S = 1.0
AFTER_S = 4.0
BACK_S = 5.0
"""Within this after its return all must go on as before."""
BUSY = 3.0 if os.environ.get("CI") == "true" else 1.0
"""How much longer things may take where many others are at work."""
KEY = "33" * 32


class Scene(NamedTuple):
    """A database that is about to fail."""

    server: FailingPostgres
    network: Network
    url: str
    """Of an empty database, through the network."""

    @property
    def direct(self) -> str:
        """The same database, past the network."""
        return self.url.replace(f":{self.network.port}/", f":{self.server.port}/")


@contextmanager
def scene(server: FailingPostgres) -> Iterator[Scene]:
    """Make an empty database behind a network of its own."""
    with network_to(server.port) as network:
        url = server.new_database().replace(f":{server.port}/", f":{network.port}/")
        yield Scene(server, network, url)


def stopped(at: Scene, down_s: float) -> None:
    at.server.stop()
    time.sleep(down_s)
    at.server.start()


def killed(at: Scene, down_s: float) -> None:
    at.server.kill()
    time.sleep(down_s)
    at.server.start()


def paused(at: Scene, down_s: float) -> None:
    at.server.pause()
    time.sleep(down_s)
    at.server.go_on()


def restarted(at: Scene, down_s: float) -> None:
    at.server.stop()
    at.server.start()


def crowded(at: Scene, down_s: float) -> None:
    crowd = Crowd(at.direct)
    crowd.come()
    time.sleep(down_s)
    crowd.go()


def read_only(at: Scene, down_s: float) -> None:
    at.server.allow_writing(at.direct, allowed=False)
    time.sleep(down_s)
    at.server.allow_writing(at.direct, allowed=True)


def full(at: Scene, down_s: float) -> None:
    at.server.query(at.direct, FILLING)
    at.server.fill()
    time.sleep(down_s)
    at.server.make_room()


def reset(at: Scene, down_s: float) -> None:
    at.network.reset()
    time.sleep(down_s)
    at.network.mend()


def swallowed(at: Scene, down_s: float) -> None:
    at.network.swallow()
    time.sleep(down_s)
    at.network.mend()


FILLING = """
INSERT INTO effects (token, scope, tool, digest, call_id, owner, state, reason, created, expires)
SELECT 'filling-' || n, 's', 't', repeat('x', 1900), '', '', 'done', '', 0, 1e12
FROM generate_series(1, 9000) AS n
"""
"""More than one file of the log is long, so that the table cannot grow once files may not."""

HOWS: dict[Callable[[Scene, float], None], str] = {
    stopped: "stopped and started",
    killed: "killed, with all its processes (SIGKILL), and started",
    paused: "paused (SIGSTOP) and continued",
    restarted: "restarted",
    crowded: "out of connections: others have them all",
    read_only: "for reading only",
    full: "on a full disk: no file grows",
    reset: "behind a network that breaks every connection",
    swallowed: "behind a network that passes nothing on; what was open then stays dead",
}


class Run(NamedTuple):
    """What came of an outage."""

    how: str
    calls: int
    failed: Counter[str]
    slowest_s: dict[str, float]
    """By kind of call."""
    back_s: float
    """From the return to the end of the last call that failed, over all kinds and processes."""
    audit_back_s: float
    effects: int
    tasks: int
    memory_kb: int
    faults: list[str]
    """What must not be."""


def outage(
    at: Scene, how: Callable[[Scene, float], None], down_s: float, *, after_s: float = AFTER_S
) -> Run:
    """Let it happen a second after the load began."""
    with tempfile.TemporaryDirectory() as folder:
        effects = Path(folder) / "effects"
        effects.touch()
        load_s = BEFORE_S + down_s + 2 + after_s
        workers = [_worker(at.url, effects, f"w{n}") for n in range(PROCESSES)]
        try:
            _begin(workers, load_s)
            time.sleep(BEFORE_S)
            broken_at = time.time()
            how(at, down_s)
            mended_at = time.time()
            said = [worker.communicate(timeout=load_s + GRACE_S + 60) for worker in workers]
        finally:
            for worker in workers:
                worker.kill()
                worker.wait()
        each = [json.loads(out) if out else {} for out, _ in said]
        faults = [f"a process ended: {error[-2_000:]}" for out, error in said if not out]
        lines = effects.read_text("utf-8").splitlines()
    each = [one for one in each if one]
    run = _run(HOWS[how], each, Counter(lines), broken_at, mended_at)
    return run._replace(faults=[*faults, *run.faults, *_left(at)])


def _begin(workers: list[subprocess.Popen[str]], load_s: float) -> None:
    """Let all begin when all are ready."""
    for worker in workers:
        assert worker.stdout is not None
        assert worker.stdout.readline() == "ready\n", "a process did not start"
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write(f"{time.time() + load_s}\n")
        worker.stdin.flush()


def _worker(url: str, effects: Path, name: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.outages.worker", url, str(effects), name],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "SEAWALL_STATE_KEY": KEY},
    )


def _run(
    how: str,
    each: list[dict[str, Any]],
    effects: Counter[str],
    broken_at: float,
    mended_at: float,
) -> Run:
    seen = [call for one in each for call in one["seen"]]
    slowest = {
        kind: max(ended - begun for this, begun, ended, _ in seen if this == kind)
        for kind in sorted({kind for kind, *_ in seen})
    }
    failed_late = [ended for _, _, ended, said in seen if said and ended > mended_at]
    failed = Counter(f"{kind} {said}" for kind, _, _, said in seen if said)
    back_s = max(failed_late, default=mended_at) - mended_at
    audit_back_s = max((one["drained"] - mended_at for one in each), default=0.0)
    faults = [
        *_faults_of_effects(each, effects),
        *_faults_of_processes(each),
        *_faults_of_times(slowest, seen, back_s, broken_at),
    ]
    return Run(
        how,
        len(seen),
        failed,
        slowest,
        back_s,
        audit_back_s,
        sum(effects.values()),
        max(one["most_tasks"] for one in each),
        max(one["memory_kb"] for one in each),
        faults,
    )


def _faults_of_effects(each: list[dict[str, Any]], effects: Counter[str]) -> list[str]:
    """What is known of each effect must be what happened."""
    told = {
        key: how for one in each for key, how in (*one["paid"].items(), *one["approved"].items())
    }
    faults = [f"{key} took effect {count} times" for key, count in effects.items() if count > 1]
    faults += [f"{key} took effect, and nobody asked" for key in effects if key not in told]
    for key, how in told.items():
        if how == "ok" and not effects[key]:
            faults.append(f"{key} was told to be done, and never was")
        if how == "not run" and effects[key]:
            faults.append(f"{key} was told not to have run, and did")
        if how == "doubt" or how.startswith("approved"):
            faults.append(f"nobody knows how {key} ended ({how})")
    return faults


def _faults_of_processes(each: list[dict[str, Any]]) -> list[str]:
    faults: list[str] = []
    for one in each:
        faults += [f"raised: {said}" for said in one["raised"]]
        faults += [f"logged: {said}" for said in one["logged"]]
        if one["in_use"]:
            faults.append(f"{one['in_use']} connections of the pool were not given back")
        if one["open"]:
            faults.append(f"{one['open']} effects are still kept in memory")
        before, after = one["before"], one["after"]
        # A pool of five, each with its descriptor; threads of the tools are kept for later.
        room = {"tasks": 3, "threads": 20, "descriptors": 12}
        faults += [
            f"{what}: {before[what]} before, {after[what]} after"
            for what in room
            if after[what] > before[what] + room[what]
        ]
        if one["memory_kb"] > 100_000:
            faults.append(f"{one['memory_kb']:,} KB more than before")
    return faults


def _faults_of_times(
    slowest: dict[str, float], seen: list[Any], back_s: float, broken_at: float
) -> list[str]:
    limits = dict.fromkeys(("pay", "look", "cancelled"), DEADLINE_S + 0.5 * BUSY)
    limits["note"] = 2 * DEADLINE_S + 0.5 * BUSY
    # Steps of its own, each within what the state may take.
    limits["shortcut"] = 3 * STORE_S
    faults = [
        f"a call of {kind} took {slowest[kind]:.1f} s"
        for kind, limit in limits.items()
        if slowest.get(kind, 0.0) > limit
    ]
    if back_s > BACK_S * BUSY:
        faults.append(f"something failed {back_s:.1f} s after the return")
    wrong = Counter(said for kind, _, _, said in seen if said and kind == "look")
    if wrong:
        faults.append(f"what needs no state failed: {dict(wrong)}")
    early = Counter(said for _, _, ended, said in seen if said and ended < broken_at)
    if early:
        faults.append(f"something failed before anything happened: {dict(early)}")
    return faults


def _left(at: Scene) -> list[str]:
    """Sessions that outlive the processes they were of."""
    asked = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'seawall'"
    end = time.monotonic() + 10
    while left := int(at.server.query(at.direct, asked)):
        if time.monotonic() > end:
            return [f"{left} connections were left behind"]
        time.sleep(0.1)
    return []
