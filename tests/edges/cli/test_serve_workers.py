"""`seawall serve --workers`: real processes, and what must hold for all of them together."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from tests.edges.cli.fleet import ADMIN, CALLER, TOOLS, Fleet, Worker, fleet, one_of_each
from tests.redis_servers import running as running_redis
from tests.waiting import until_gone, waited

from seawall import ConfigurationError
from seawall.edges.cli.paper import Paper
from seawall.edges.cli.serve import ServeOptions
from seawall.edges.cli.serve_workers import serve_by_workers
from seawall.recording.trace_file import read_trace

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tests.redis_servers import Server

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="workers need Linux")

KEY = "0123456789abcdef" * 4


@pytest.fixture(name="state_of_all", params=["sqlite", "postgresql"], scope="module")
def state_of_all_fixture(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path_factory.mktemp('state')}/state.db"
    url: str = request.getfixturevalue("postgres_server").new_database()
    return url


@pytest.fixture(name="both", scope="module")
def both_fixture(state_of_all: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    folder = tmp_path_factory.mktemp("fleet")
    with fleet(folder, state_of_all, SEAWALL_STATE_KEY=KEY) as found:
        found.until("2 workers serve")
        yield found


@pytest.fixture(name="redis", scope="module")
def redis_fixture() -> Iterator[Server]:
    with running_redis() as server:
        yield server


# ---- what is said ---------------------------------------------------------------------------


def test_it_says_at_the_start_what_is_shared_divided_and_of_each(both: Fleet) -> None:
    said = "\n".join(both.lines)

    assert re.search(
        r"shared by all 2 workers, in (sqlite|postgresql):\S+: approvals, effects", said
    )
    assert "shared by all 2 workers: metrics" in said
    assert "divided, each worker grants 1/2: rates of tools, rates of clients" in said
    assert re.search(r"each worker has its own: .*spans, usage.*exclusive \(alone\)", said)
    assert said.count(" tools at ") == 1


def test_each_worker_says_which_it_is_and_what_is_whose(both: Fleet) -> None:
    with one_of_each(both) as workers:
        told = [worker.get("/workers").json() for worker in workers]
        traces = [worker.get("/traces?limit=0").json()["worker"] for worker in workers]

    assert sorted(one["worker"] for one in told) == sorted(traces) == [1, 2]
    assert told[0]["sharing"] == told[1]["sharing"]
    assert {"what": "spans", "how": "each", "where": ""} in told[0]["sharing"]


# ---- state ----------------------------------------------------------------------------------


def test_what_one_worker_is_asked_to_approve_is_answered_and_run_by_another(both: Fleet) -> None:
    with one_of_each(both) as (one, other):
        asked = one.called("drop", {"name": "users"})
        where = asked.json()["approval"]
        before = both.marks().count("drop")
        answered = other.post(where, json={"decision": "approve"})
        results = [_done(worker, where) for worker in (one, other)]

    assert asked.status_code == 202
    assert answered.json()["status"] == "approved"
    assert [result["results"][0]["text"] for result in results] == ["users dropped"] * 2
    assert both.marks().count("drop") - before == 1


def test_an_answer_is_given_once_whichever_worker_is_told(both: Fleet) -> None:
    with one_of_each(both) as workers:
        where = workers[0].called("drop", {"name": "orders"}).json()["approval"]
        said = [worker.post(where, json={"decision": "deny"}).status_code for worker in workers]

    assert said == [200, 409]


def _done(client: httpx.Client, where: str) -> Any:
    def done() -> Any:
        found = client.get(where).json()
        return found if found["status"] == "done" else None

    return waited(done)


@pytest.mark.parametrize("tool", ["read", "pay"])
def test_one_key_sent_fifty_times_through_all_workers_runs_once(both: Fleet, tool: str) -> None:
    arguments = {"seconds": 0.3} if tool == "read" else {"amount": 7}
    before = both.marks().count(tool)
    headers = {"Idempotency-Key": f"fifty-{tool}"}
    with one_of_each(both) as workers, ThreadPoolExecutor(50) as pool:

        def ask(number: int) -> httpx.Response:
            return workers[number % 2].called(tool, arguments, headers=headers)

        found = list(pool.map(ask, range(50)))
        texts = {again.json()["text"] for again in map(ask, range(4))}

    statuses = Counter(answer.status_code for answer in found)
    assert both.marks().count(tool) - before == 1
    assert set(statuses) <= {200, 409}, [answer.json() for answer in found if answer.is_error]
    assert statuses[200] >= 1
    assert len(texts) == 1
    assert {answer.json()["text"] for answer in found if answer.is_success} == texts


@pytest.mark.parametrize("tool", ["read", "pay"])
def test_an_answer_of_another_worker_is_given_again_as_it_was(both: Fleet, tool: str) -> None:
    headers = {"Idempotency-Key": f"again-{tool}"}
    arguments = {} if tool == "read" else {"amount": 1}
    with one_of_each(both) as (one, other):
        first = one.called(tool, arguments, requestId="the-first", headers=headers)
        again = other.called(tool, arguments, requestId="the-second", headers=headers)
        differs = other.called(tool, {**arguments, "x": 1}, headers=headers)

    assert first.headers.get("idempotency-replayed") is None
    assert again.headers["idempotency-replayed"] == "true"
    assert again.json()["requestId"] == "the-first"
    assert again.json()["text"] == first.json()["text"]
    assert differs.status_code == 422


def test_approvals_of_other_workers_reach_a_viewer_within_a_second(both: Fleet) -> None:
    lines: list[tuple[float, str]] = []
    begun = threading.Event()
    with one_of_each(both) as (one, other):

        def view() -> None:
            with other.stream("GET", "/events") as events:
                for line in events.iter_lines():
                    lines.append((time.monotonic(), line))
                    begun.set()
                    if "resumed" in line:
                        return

        viewing = threading.Thread(target=view)
        viewing.start()
        assert begun.wait(30)
        time.sleep(1.0)  # what is there at the first look is no news
        where = one.called("drop", {"name": "seen"}).json()["approval"]
        asked_at = time.monotonic()
        approval = where.rpartition("/")[2]
        time.sleep(1.2)
        one.post(where, json={"decision": "approve"})
        viewing.join(30)

    about = [at for at, line in lines if approval in line]
    assert '"workers":2' in lines[1][1]
    assert about, lines
    assert about[0] - asked_at < 3  # one, and room for a machine that is busy
    assert any(line == "event: resumed" for _, line in lines)


# ---- rates and circuits ---------------------------------------------------------------------


def test_without_a_store_all_workers_together_keep_to_a_rate(tmp_path: Path) -> None:
    (tmp_path / "policy.toml").write_text('[tools.read]\nrate = "20/hour"\n')
    state = f"sqlite:///{tmp_path}/s.db"
    with fleet(tmp_path, state, "--client-rate", "100/hour") as found:
        found.until("2 workers serve")
        with one_of_each(found, CALLER) as workers:
            each = [[worker.called("read") for _ in range(15)] for worker in workers]
            refused = each[0][-1].json()["failure"]["message"]
            rest = [[worker.called("who").status_code for _ in range(60)] for worker in workers]

    granted = [sum(answer.is_success for answer in answers) for answers in each]
    assert granted == [10, 10]
    assert "20/hour by 2 processes together" in refused
    # 50 each, of which some went into finding the workers and the calls above.
    assert all(codes[-1] == 429 for codes in rest)
    assert sum(codes.count(200) for codes in rest) <= 70


def test_with_a_store_rates_are_exact_over_all_workers(tmp_path: Path, redis: Server) -> None:
    (tmp_path / "policy.toml").write_text(
        '[shared]\nurl_env = "LIMITS"\nprefix = "rates"\n[tools.read]\nrate = "20/hour"\n'
    )
    state = f"sqlite:///{tmp_path}/s.db"
    with fleet(tmp_path, state, "--client-rate", "200/hour", LIMITS=redis.url) as found:
        found.until("2 workers serve")
        with one_of_each(found, CALLER) as (one, other):
            before = [one.called("read").status_code for _ in range(15)]
            after = [other.called("read").status_code for _ in range(15)]
            codes = [one.called("who").status_code for _ in range(250)]
            said = found.until("rates of clients")

    assert before == [200] * 15
    assert after == [200] * 5 + [429] * 10
    assert codes[0] == 200
    assert codes[-1] == 429
    assert said.startswith("shared by all 2 workers, in redis://")


def test_a_circuit_opened_by_hand_is_open_in_all_workers_within_a_second_and_after_a_restart(
    tmp_path: Path, redis: Server
) -> None:
    (tmp_path / "policy.toml").write_text(
        '[shared]\nurl_env = "LIMITS"\nprefix = "hand"\n[default]\nbreaker = {}\n'
    )
    with fleet(tmp_path, f"sqlite:///{tmp_path}/s.db", LIMITS=redis.url) as found:
        found.until("2 workers serve")
        with one_of_each(found) as (one, other):
            # Nobody has called it yet: the other worker knows of it all the same.
            one.post("/breakers/read", json={"action": "open"}).raise_for_status()
            opened = _within_a_second((one, other), 503)
            os.kill(other.process, signal.SIGKILL)
            found.until("serves again")
        with one_of_each(found) as (one, other):
            replaced = [worker.called("read").status_code for worker in (one, other)]
            states = [_state(worker, "read") for worker in (one, other)]
            other.post("/breakers/read", json={"action": "close"}).raise_for_status()
            closed = _within_a_second((one, other), 200)

    assert opened == replaced == [503, 503]
    assert states == ["open", "open"]
    assert closed == [200, 200]


def _within_a_second(workers: Iterable[Worker], wanted: int) -> list[int]:
    """Ask until all answer so, for a second at the most; give the last answers."""
    end = time.monotonic() + 1.0
    while True:
        is_last = time.monotonic() >= end
        found = [worker.called("read").status_code for worker in workers]
        if is_last or set(found) == {wanted}:
            return found


def _state(worker: Worker, tool: str) -> str:
    found = worker.get("/breakers").json()["breakers"]
    return next(str(one["state"]) for one in found if one["tool"] == tool)


def test_without_a_store_a_circuit_is_not_opened_in_one_worker_alone(both: Fleet) -> None:
    with httpx.Client(base_url=both.base, headers={"Authorization": f"Bearer {ADMIN}"}) as client:
        said = client.post("/breakers/read", json={"action": "open"})

    assert said.status_code == 501
    assert said.json()["failure"]["reason"] == "not_shared"


# ---- processes ------------------------------------------------------------------------------


def test_a_killed_worker_loses_its_own_calls_alone_and_its_counts_stay(tmp_path: Path) -> None:
    with fleet(tmp_path, f"sqlite:///{tmp_path}/s.db", TMPDIR=str(tmp_path)) as found:
        found.until("2 workers serve")
        with one_of_each(found) as (one, other), ThreadPoolExecutor(2) as pool:
            for worker in (one, other, other):
                worker.called("read").raise_for_status()
            slow = [pool.submit(worker.called, "read", {"seconds": 1.0}) for worker in (one, other)]
            waited(lambda: found.marks().count("read") == 5)
            os.kill(other.process, signal.SIGKILL)
            kept = slow[0].result()
            with pytest.raises(httpx.TransportError):
                slow[1].result()
            found.until("worker", 1)
            found.until("serves again")
        with one_of_each(found) as workers:
            texts = [worker.get("/metrics").text for worker in workers]

    counts = [
        re.findall(
            r'^seawall_calls_total\{outcome="success",tool="read"\} (\S+)', text, re.MULTILINE
        )
        for text in texts
    ]
    assert kept.status_code == 200
    # Three, and the one that was not killed; the same whoever is asked.
    assert counts == [["4.0"], ["4.0"]]
    assert not list((tmp_path).glob("seawall-metrics-*"))


def test_who_is_asked_says_of_a_worker_that_is_blocked_for_how_long(tmp_path: Path) -> None:
    with fleet(tmp_path, f"sqlite:///{tmp_path}/s.db") as found, ThreadPoolExecutor(1) as pool:
        found.until("2 workers serve")
        with one_of_each(found) as (one, other):
            blocked = one.get("/workers").json()["worker"]

            def silent() -> dict[int, float]:
                told = other.get("/workers").json()["pulse"]
                return {each["worker"]: each["silentS"] for each in told}

            waited(lambda: None not in silent().values())
            calling = pool.submit(one.called, "block", {"seconds": 4.0})
            waited(lambda: silent()[blocked] > 2.0 > silent()[3 - blocked])
            calling.result().raise_for_status()
            waited(lambda: silent()[blocked] < 2.0)


def test_told_to_stop_calls_of_all_workers_end_and_it_ends_with_0(tmp_path: Path) -> None:
    state = f"sqlite:///{tmp_path}/s.db"
    with fleet(tmp_path, state, "--record", "spans.jsonl") as found:
        found.until("2 workers serve")
        with one_of_each(found) as workers, ThreadPoolExecutor(2) as pool:
            slow = [pool.submit(worker.called, "read", {"seconds": 1.0}) for worker in workers]
            waited(lambda: found.marks().count("read") == 2)
            base = found.base
            code = found.stop()
            texts = [one.result().json()["text"] for one in slow]

    assert code == 0
    assert len(set(texts)) == 2
    recorded = [read_trace(tmp_path / f"spans.{number}.jsonl") for number in (1, 2)]
    assert [sum(call.tool == "read" for call in one.calls) for one in recorded] == [1, 1]
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{base}/healthz")


def test_while_all_workers_stop_new_calls_are_told_so(tmp_path: Path) -> None:
    with fleet(tmp_path, f"sqlite:///{tmp_path}/s.db") as found:
        found.until("2 workers serve")
        with one_of_each(found) as workers, ThreadPoolExecutor(2) as pool:
            slow = [pool.submit(worker.called, "read", {"seconds": 2.0}) for worker in workers]
            waited(lambda: found.marks().count("read") == 2)
            found.process.send_signal(signal.SIGTERM)

            def statuses() -> set[int]:
                asked = [httpx.get(f"{found.base}/readyz").status_code for _ in range(10)]
                return set(asked)

            waited(lambda: statuses() == {503})
            assert [one.result().status_code for one in slow] == [200, 200]
        assert found.code() == 0


def test_a_worker_that_stops_alone_leaves_new_calls_to_the_others(tmp_path: Path) -> None:
    with fleet(tmp_path, f"sqlite:///{tmp_path}/s.db") as found:
        found.until("2 workers serve")
        with one_of_each(found) as (one, other), ThreadPoolExecutor(1) as pool:
            slow = pool.submit(one.called, "read", {"seconds": 3.0})
            waited(lambda: found.marks().count("read") == 1)
            os.kill(one.process, signal.SIGTERM)
            waited(lambda: {_asked(found.base) for _ in range(10)} == {other.process})
            assert not slow.done()
            assert slow.result().status_code == 200


def _asked(base: str) -> int:
    """Which worker a new connection comes to; 0 if to one that stops."""
    headers = {"Authorization": f"Bearer {ADMIN}"}
    said = httpx.post(f"{base}/tools/call", json={"tool": "who"}, headers=headers)
    return int(said.json()["text"]) if said.is_success else 0


def test_that_nobody_reads_what_is_said_does_not_end_the_watch(tmp_path: Path) -> None:
    said = tmp_path / "said"
    script = (
        "seawall serve --workers 2 --port 0 --registry shop:registry --state sqlite:///s.db"
        f" 2>&1 | head -n 6 > {said}; sleep 600"
    )
    (tmp_path / "shop.py").write_text(TOOLS)
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {
        **os.environ,
        "PATH": path,
        "SEAWALL_ADMIN_TOKEN": ADMIN,
        "SEAWALL_TOKEN": CALLER,
    }
    with subprocess.Popen(
        ["bash", "-c", script], cwd=tmp_path, env=environment, start_new_session=True
    ) as shell:
        try:
            waited(said.exists)
            waited(lambda: "2 workers serve" in said.read_text(), within_s=90)
            found = SimpleNamespace(base=said.read_text().split(" tools at ")[1].split()[0])
            with one_of_each(found) as (one, _):
                os.kill(one.process, signal.SIGKILL)
            with one_of_each(found) as workers:
                assert one.process not in {worker.process for worker in workers}
        finally:
            os.killpg(shell.pid, signal.SIGKILL)


def test_a_hangup_takes_the_policy_anew_in_all_workers(tmp_path: Path) -> None:
    with fleet(tmp_path, f"sqlite:///{tmp_path}/s.db") as found:
        found.until("2 workers serve")
        with one_of_each(found) as workers:
            (tmp_path / "policy.toml").write_text('[risk]\nallow = ["who"]\ndeny = ["read"]\n')
            found.process.send_signal(signal.SIGHUP)
            found.until("policy taken", 2)
            said = [worker.called("read").status_code for worker in workers]

            (tmp_path / "policy.toml").write_text("[tools.read]\ntimeout_s = 0\n")
            found.process.send_signal(signal.SIGHUP)
            found.until("the former policy goes on", 2)
            still = [worker.called("read").status_code for worker in workers]

    assert said == still == [403, 403]


def test_workers_of_a_supervisor_that_was_killed_end_and_give_the_port_back(
    tmp_path: Path,
) -> None:
    state = f"sqlite:///{tmp_path}/s.db"
    with fleet(tmp_path, state, "--drain", "2", TMPDIR=str(tmp_path)) as found:
        found.until("2 workers serve")
        (left,) = tmp_path.glob("seawall-metrics-*")
        port = int(found.base.rpartition(":")[2])
        watching = found.process.pid
        workers = Path(f"/proc/{watching}/task/{watching}/children").read_text().split()
        assert len(workers) == 2
        found.process.kill()
        for worker in workers:
            until_gone(int(worker))
        with socket.socket() as probe:
            assert probe.connect_ex(("127.0.0.1", port))

    with fleet(tmp_path, state, TMPDIR=str(tmp_path)) as found:
        found.until("2 workers serve")
        assert left not in list(tmp_path.glob("seawall-metrics-*"))


# ---- what is refused ------------------------------------------------------------------------


def _ran(folder: Path, *options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "seawall", "serve", "--workers", "2", *options],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=90,
        env={**os.environ, "XDG_STATE_HOME": str(folder), **environment},
    )


@pytest.mark.parametrize("options", [(), ("--state", "memory:")])
def test_workers_without_a_state_that_they_share_are_refused(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    ran = _ran(tmp_path, "--port", "0", *options)

    assert ran.returncode == 2
    assert "2 workers need a state that they share" in ran.stderr


def test_workers_on_a_database_without_a_key_are_refused(tmp_path: Path) -> None:
    ran = _ran(tmp_path, "--port", "0", "--state", "postgresql://nobody@127.0.0.1:9/x")

    assert ran.returncode == 2
    assert "set SEAWALL_STATE_KEY" in ran.stderr


def test_a_state_that_cannot_be_reached_is_said_once_and_ends_it(tmp_path: Path) -> None:
    state = ("--state", "postgresql://nobody@127.0.0.1:9/x")
    ran = _ran(tmp_path, "--port", "0", *state, SEAWALL_STATE_KEY=KEY)

    assert ran.returncode == 2
    assert ran.stderr.count("error: ") == 1
    assert "Traceback" not in ran.stderr


def test_a_registry_that_cannot_be_imported_is_said_once_and_ends_it(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("raise RuntimeError('no')\n")
    ran = _ran(tmp_path, "--port", "0", "--registry", "broken", "--state", "sqlite:///s.db")

    assert ran.returncode == 2
    assert ran.stderr.count("'broken' cannot be imported") == 1


def test_a_registry_that_only_one_process_can_import_ends_it(tmp_path: Path) -> None:
    (tmp_path / "single.py").write_text(
        "import fcntl\nlock = open('lock', 'w')\nfcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)\n"
        "registry = []\n"
    )
    ran = _ran(
        tmp_path, "--port", "0", "--registry", "single:registry", "--state", "sqlite:///s.db"
    )

    assert ran.returncode == 2
    assert "worker 2" in ran.stderr
    assert "no more are started" in ran.stderr


def test_a_port_that_others_have_is_said_whoever_they_are(tmp_path: Path, both: Fleet) -> None:
    def tried(port: int) -> subprocess.CompletedProcess[str]:
        return _ran(tmp_path, "--port", str(port), "--state", f"sqlite:///{tmp_path}/{port}.db")

    with socket.socket() as strange, ThreadPoolExecutor(2) as pool:
        strange.bind(("127.0.0.1", 0))
        strange.listen()
        ports = (strange.getsockname()[1], int(both.base.rpartition(":")[2]))
        all_ran = list(pool.map(tried, ports))

    for ran in all_ran:
        assert ran.returncode == 2
        assert "cannot be listened on" in ran.stderr


def test_other_systems_are_told_that_they_cannot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "win32")

    with pytest.raises(ConfigurationError, match="needs Linux"):
        serve_by_workers(ServeOptions(workers=2, state="sqlite:///s.db"), Paper())
