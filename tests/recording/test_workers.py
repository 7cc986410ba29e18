"""Several workers: real processes, whose counts outlive them and whose gauges do not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING

import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.waiting import waited

from seawall import ConfigurationError, Metrics

if TYPE_CHECKING:
    from collections.abc import Iterator

CASES = {
    one["id"]: one
    for one in json.loads((Path(__file__).parents[1] / "cases" / "metrics.json").read_text())
}

WORKER = """
import asyncio, logging, os, signal, sys
from seawall import *
from seawall.testing import scripted

logging.disable()
reads = Annotations.for_reading()
gate = asyncio.Event()

async def waits(arguments, context):
    await gate.wait()

tools = [
    scripted("found", name="search", annotations=reads),
    scripted(ConnectionError("no"), name="broken", annotations=reads),
    Tool("waits", "Waits.", {"type": "object"}, waits, annotations=reads),
]
policies = Policies(RunPolicy(max_retries=1, base_delay_s=0.001, rate="1000/minute",
                              breaker=BreakerPolicy(threshold=2, cooldown_s=99)))

async def serve():
    pipeline = Pipeline(tools, policies=policies)
    metrics = pipeline.metrics
    running = []
    for line in iter(sys.stdin.readline, ""):
        word, _, rest = line.strip().partition(" ")
        if word == "call":
            name, _, times = rest.partition(" ")
            for _ in range(int(times)):
                await pipeline.call(name, {})
        elif word == "begin":
            running.append(asyncio.ensure_future(pipeline.call("waits", {})))
            await asyncio.sleep(0)
            metrics.text()
        elif word == "gone":
            pipeline.registry.unregister(rest)
        elif word == "python":
            exec(rest)
        elif word == "scrape":
            text = metrics.text(rest).decode()
            print(text.replace("\\n", "\\x1f"), flush=True)
            continue
        print("done", flush=True)

asyncio.run(serve())
"""

FORKED = """
import asyncio, os, logging
from seawall import Pipeline
from seawall.testing import scripted

logging.disable()
pipeline = Pipeline([scripted("found", name="search")])
asyncio.run(pipeline.call("search", {}))
child = os.fork()
if child == 0:
    asyncio.run(pipeline.call("search", {}))
    asyncio.run(pipeline.call("search", {}))
    os._exit(0)
os.waitpid(child, 0)
print(pipeline.metrics.text().decode())
"""

Series = dict[tuple[str, frozenset[tuple[str, str]]], float]


class Worker:
    """A process that is told what to do, a line at a time."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        assert process.stdin is not None
        assert process.stdout is not None
        self._to: IO[str] = process.stdin
        self._from: IO[str] = process.stdout

    def do(self, line: str) -> str:
        self._to.write(line + "\n")
        self._to.flush()
        answer = self._from.readline()
        assert answer, "the worker has ended"
        return answer.strip().replace("\x1f", "\n")

    def scrape(self, accept: str = "") -> Series:
        return series(self.do(f"scrape {accept}"))

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


def series(text: str) -> Series:
    found = {}
    for family in text_string_to_metric_families(text + "\n"):
        for sample in family.samples:
            key = (sample.name, frozenset(sample.labels.items()))
            assert key not in found, "a series stands there twice"
            found[key] = float(sample.value)
    return found


def at(found: Series, name: str, **labels: str) -> float | None:
    return found.get((name, frozenset(labels.items())))


@contextmanager
def workers(count: int, folder: Path | None) -> Iterator[list[Worker]]:
    environment = dict(os.environ)
    if folder is not None:
        environment["PROMETHEUS_MULTIPROC_DIR"] = str(folder)
    started = [
        Worker(
            subprocess.Popen(
                [sys.executable, "-c", WORKER],
                stdin=subprocess.PIPE,
                stderr=sys.stderr,
                stdout=subprocess.PIPE,
                text=True,
                env=environment,
            )
        )
        for _ in range(count)
    ]
    try:
        yield started
    finally:
        for one in started:
            one.kill()
            one._to.close()
            one._from.close()


def test_what_a_killed_worker_counted_stays_as_the_case_says(tmp_path: Path) -> None:
    case = CASES["metrics-03"]
    each = case["call"]["timeline"][0]["per_worker"]

    with workers(case["given"]["workers"], tmp_path) as started:
        for one in started:
            one.do(f"call search {each}")
        started[case["call"]["timeline"][1]["which"]].kill()
        found = started[0].scrape()

    total = case["expect"]["metric"]["calls_total"]["value"]
    assert at(found, "seawall_calls_total", tool="search", outcome="success") == total
    assert at(found, "seawall_call_duration_seconds_count", tool="search") == total
    assert at(found, "seawall_attempts_total", tool="search", outcome="success") == total
    assert at(found, "seawall_queue_duration_seconds_count", tool="search") == total


def test_calls_in_flight_add_up_and_those_of_a_killed_worker_are_dropped(tmp_path: Path) -> None:
    with workers(2, tmp_path) as [one, other]:
        one.do("begin")
        other.do("begin")
        both = one.scrape()
        other.kill()
        left = one.scrape()

    assert at(both, "seawall_in_flight", tool="waits") == 2
    assert at(left, "seawall_in_flight", tool="waits") == 1


def test_a_circuit_that_is_open_in_one_worker_is_seen_by_asking_the_other(tmp_path: Path) -> None:
    with workers(2, tmp_path) as [one, other]:
        other.do("call broken 2")
        other.do("scrape")
        found = one.scrape()

    assert at(found, "seawall_breaker_state", tool="broken", state="open") == 1
    assert at(found, "seawall_breaker_transitions_total", tool="broken", state="open") == 1
    assert at(found, "seawall_refusals_total", tool="broken", layer="registry", reason="x") is None


def test_gauges_are_written_without_anybody_asking(tmp_path: Path) -> None:
    with workers(2, tmp_path) as [one, other]:
        other.do("call broken 2")
        waited(lambda: at(one.scrape(), "seawall_breaker_state", tool="broken", state="open") == 1)


def test_of_tokens_the_least_is_shown(tmp_path: Path) -> None:
    with workers(2, tmp_path) as [one, other]:
        other.do("call search 500")
        other.do("scrape")
        found = one.scrape()

    ratio = at(found, "seawall_limiter_tokens_ratio", tool="search")
    assert ratio is not None
    assert 0.45 < ratio < 0.6


def test_a_tool_that_went_leaves_its_gauges_at_rest(tmp_path: Path) -> None:
    with workers(1, tmp_path) as [one]:
        one.do("call broken 2")
        before = one.scrape()
        one.do("gone broken")
        after = one.scrape()

    assert at(before, "seawall_breaker_state", tool="broken", state="open") == 1
    assert at(after, "seawall_breaker_state", tool="broken", state="open") == 0
    assert at(after, "seawall_limiter_tokens_ratio", tool="broken") == 1
    assert at(after, "seawall_calls_total", tool="broken", outcome="failed") == 1


def test_one_worker_counts_in_files_what_it_counts_without_them(tmp_path: Path) -> None:
    def told(one: Worker) -> Series:
        for line in ("call search 3", "call broken 3", "call nobody 2", "call serch 1", "begin"):
            one.do(line)
        one.do("python metrics.audit_failed(); metrics.loop_stopped('judge')")
        one.do("python metrics.watch_approvals(lambda: (2, 7.5))")
        one.do("python metrics.for_tool('search').on_event('cache', 'store_fail_open')")
        one.do("python metrics.for_tool('search').on_event('hooks', 'failed')")
        one.do("python metrics.for_tool('search').on_event('output_check', 'invalid')")
        return one.scrape()

    with workers(1, tmp_path) as [one], workers(1, None) as [other]:
        files, plain = told(one), told(other)

    def steady(found: Series) -> Series:
        """All but times, which are never the same twice, and what was there but not counted."""
        return {
            key: value
            for key, value in found.items()
            if value and not key[0].endswith(("_sum", "_bucket")) and "tokens" not in key[0]
        }

    assert steady(files) == steady(plain)
    assert len(steady(plain)) > 30


def test_there_are_no_exemplars_and_no_process_ids(tmp_path: Path) -> None:
    with workers(2, tmp_path) as [one, other]:
        other.do("call search 1")
        text = one.do("scrape application/openmetrics-text; version=1.0.0")

    assert "# {" not in text
    assert "pid=" not in text
    assert text.rstrip().endswith("# EOF")


def test_ten_thousand_tools_stay_within_the_bound(tmp_path: Path) -> None:
    loop = (
        "python for n in range(10_000): r = metrics.for_tool(f't{n}');"
        " r.on_event('layer', f'event {n}')"
    )
    with workers(1, tmp_path) as [one]:
        one.do(loop)
        one.do("python bound = metrics.max_series; assert metrics.label('t9999') == '_OTHER'")
        found = one.scrape()

    tools = {dict(labels)["tool"] for _, labels in found if "tool" in dict(labels)}
    assert len(tools) == 1_250 + 1
    assert "t9999" not in tools
    assert len(found) <= Metrics().max_series


@pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing forks here")
def test_a_worker_that_was_forked_counts_for_itself(tmp_path: Path) -> None:
    told = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORKED],
        env={**os.environ, "PROMETHEUS_MULTIPROC_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )

    assert at(series(told.stdout), "seawall_calls_total", tool="search", outcome="success") == 3
    assert len(list(tmp_path.glob("counter_*.db"))) == 2


# What cannot work.


def test_a_folder_that_was_named_too_late_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    import prometheus_client  # noqa: F401, PLC0415  # now it is too late

    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", str(tmp_path))

    with pytest.raises(ConfigurationError, match="set it before the program starts"):
        Metrics()


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    told = subprocess.run(
        [sys.executable, "-c", "from seawall import Metrics; Metrics()"],
        env={**os.environ, "PROMETHEUS_MULTIPROC_DIR": str(tmp_path / "none")},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert "make an empty one before the workers start" in told.stderr
