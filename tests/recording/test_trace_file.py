"""Every span in a file: what is written, what is not, and what survives a kill."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from seawall.contract.annotations import Annotations
from seawall.contract.errors import ConfigurationError
from seawall.contract.span import Outcome
from seawall.orchestration.pipeline import Pipeline
from seawall.pipeline.session import Session
from seawall.recording import trace_file
from seawall.recording.trace_file import TraceFile, read_trace
from seawall.registry.registry import Registry
from seawall.testing import FakeClock, FixedChance, scripted

if TYPE_CHECKING:
    from pathlib import Path

READING = Annotations.for_reading()


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


class Recording:
    def __init__(self, path: Path, *answers: Any, **fields: Any) -> None:
        self.clock = FakeClock()
        tool = scripted(*answers, name="tool", **{"annotations": READING, **fields})
        self.registry = Registry([tool])
        self.file = TraceFile(path, tools=self.registry, clock=self.clock)
        self.pipeline = Pipeline(
            self.registry,
            clock=self.clock,
            chance=FixedChance(),
            recorders=[self.file],
            loop=None,
        )

    async def call(self, arguments: Any = None, **options: Any) -> None:
        await self.clock.run(self.pipeline.call("tool", arguments or {}, **options))


async def test_every_attempt_and_the_end_of_the_call_are_written(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    it = Recording(path, ("sleep", 2, "late"), ConnectionError("down"), "done")
    await it.call()
    await it.call(session=Session("s", caller="c"))
    it.file.close()

    trace = read_trace(path)

    first, second = trace.calls
    assert (first.attempts, first.outcome, first.spans[0].duration_ms) == (1, "success", 2000)
    assert [span.outcome for span in second.spans] == [Outcome.FAILED, Outcome.SUCCESS]
    assert second.spans[0].health == "infrastructure"
    assert second.arrival_s == 2
    assert second.end is not None
    assert second.end.attempts == 2
    assert trace.tools["tool"].hints["read_only"] is True


async def test_no_value_and_no_name_of_a_caller_is_written(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    it = Recording(path, RuntimeError("secret-answer"))
    await it.call({"a": "secret-argument"}, session=Session("secret-session", caller="secret-c"))
    it.file.close()

    assert "secret" not in path.read_text()
    assert len(read_trace(path).calls) == 1


async def test_callers_are_told_apart_by_fingerprints(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    it = Recording(path, "done")
    for caller in ("a", "b", "a"):
        await it.call(session=Session("s", caller=caller))
    it.file.close()

    found = [call.end.caller for call in read_trace(path).calls if call.end is not None]
    assert found[0] == found[2] != found[1]


async def test_what_an_answer_says_of_the_tool_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    it = Recording(path, FileNotFoundError("x"), annotations=Annotations())
    await it.call()
    it.file.close()

    (call,) = read_trace(path).calls
    assert call.spans[0].health == "answer"
    assert call.layer == "executor"


async def test_lines_wait_no_longer_than_said(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    it = Recording(path, "done")
    await it.call()
    before = len(lines(path))

    await it.clock.advance(0.2)

    assert len(lines(path)) == before + 3


async def test_no_more_than_the_bound_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trace_file, "MAX_BUFFER", 2_000)
    it = Recording(tmp_path / "x.jsonl", "done")

    for _ in range(50):
        await it.call()
        assert len(it.file._buffer) < 2_500

    assert len(lines(tmp_path / "x.jsonl")) > 80


def test_only_the_owner_may_read_it(tmp_path: Path) -> None:
    TraceFile(tmp_path / "x.jsonl").close()

    assert stat.S_IMODE((tmp_path / "x.jsonl").stat().st_mode) == 0o600


async def test_a_second_recorder_appends_and_its_calls_come_later(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    for wall in (1_000.0, 1_060.0):
        it = Recording(path, "done")
        it.clock.step_wall(wall - it.clock.wall())
        # The file was begun when the clock stood elsewhere; begin another one at the new time.
        it.file.close()
        with TraceFile(path, tools=it.registry, clock=it.clock) as file:
            pipeline = Pipeline(it.registry, clock=it.clock, recorders=[file])
            await it.clock.run(pipeline.call("tool", {}))

    trace = read_trace(path)

    assert len(trace.calls) == 2


@pytest.mark.parametrize("end", [b'{"call_id": "x", "to', b'{"call_id":"\xff'])
async def test_a_last_line_that_was_cut_off_is_passed_over(tmp_path: Path, end: bytes) -> None:
    path = tmp_path / "x.jsonl"
    it = Recording(path, "done")
    await it.call()
    it.file.close()
    path.write_bytes(path.read_bytes() + end)

    trace = read_trace(path)

    assert (len(trace.calls), trace.broken) == (1, 1)


async def test_a_recorder_goes_on_after_a_line_that_was_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(b'{"trace":1,"started":1.0}\n{"call_id": "x", "to')
    it = Recording(path, "done")
    await it.call()
    it.file.close()

    trace = read_trace(path)

    assert (len(trace.calls), trace.broken) == (1, 1)


@pytest.mark.parametrize("text", ["oops\n", '{"a": 1}\n{"trace":1,"started":1}\nno\n{"call_id":1}'])
def test_what_is_no_trace_is_told_with_its_line(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text(text)

    with pytest.raises(ConfigurationError, match=r"x\.jsonl:\d: is no line of a trace"):
        read_trace(path)


def written(path: Path, started: float, *offsets: float, end: str = "") -> Path:
    lines: list[dict[str, Any]] = [{"trace": 1, "started": started}]
    lines += [
        {
            "call_id": "c1",
            "tool": "find",
            "attempt": 1,
            "started": 0.0,
            "duration_ms": 1.0,
            "outcome": "success",
            "offset_s": offset,
        }
        for offset in offsets
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines) + end)
    return path


@pytest.mark.parametrize("first", [1, 2])
def test_files_of_several_recorders_are_one_trace_whatever_their_order(
    tmp_path: Path, first: int
) -> None:
    files = [
        written(tmp_path / "day.1.jsonl", 100.0, 1.0, 3.0, end='{"call_id": "cut o'),
        written(tmp_path / "day.2.jsonl", 100.5, 0.0, 1.0),
    ]

    trace = read_trace(*(files if first == 1 else files[::-1]))

    assert [call.arrival_s for call in trace.calls] == pytest.approx([0.5, 1.0, 1.5, 3.0])
    assert trace.broken == 1


def test_one_of_several_files_that_is_no_trace_is_told_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "day.2.jsonl").write_text("no trace")

    with pytest.raises(ConfigurationError, match=r"day\.2\.jsonl:1.*is no line of a trace"):
        read_trace(written(tmp_path / "day.1.jsonl", 100.0, 1.0), tmp_path / "day.2.jsonl")


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="cannot be read: No such file"):
        read_trace(tmp_path / "no.jsonl")


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="cannot be written: No such file"):
        TraceFile(tmp_path / "no" / "x.jsonl")


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no /dev/full")
async def test_what_cannot_be_written_harms_no_call_and_is_counted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = FakeClock()
    file = TraceFile("/dev/full", clock=clock)
    pipeline = Pipeline([scripted("done", name="tool")], clock=clock, recorders=[file])

    result = await clock.run(pipeline.call("tool", {}))
    file.close()

    assert result.text == "done"
    assert file.lost == 3
    assert caplog.text.count("spans cannot be written") == 1


KILLED = """
import asyncio, sys
from seawall import Pipeline
from seawall.recording.trace_file import TraceFile

async def tool() -> str:
    "Say done."
    await asyncio.sleep(0.001)
    return "done"

async def main():
    pipeline = Pipeline([tool], recorders=[TraceFile(sys.argv[1])], loop=None)
    number = 0
    while True:
        await pipeline.call("tool", {})
        number += 1
        print(number, flush=True)

asyncio.run(main())
"""


def test_a_process_that_is_killed_loses_the_last_lines_at_most(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    child = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(path)], stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    done = 0
    for line in child.stdout:
        done = int(line)
        if done == 400:
            break
    os.kill(child.pid, signal.SIGKILL)
    child.wait(20)
    child.stdout.close()

    assert len(read_trace(path).calls) >= 400 - 220


def test_an_attempt_that_lost_a_race_belongs_to_its_call_though_it_ends_later(
    tmp_path: Path,
) -> None:
    file = tmp_path / "race.jsonl"
    span = '{"call_id":"c","tool":"t","attempt":%d,"started":0,"duration_ms":1,"outcome":"%s"}'
    end = '{"call":"c","tool":"t","outcome":"success","attempts":2}'
    lines = ['{"trace":1,"started":0}', span % (2, "success"), end, span % (1, "failed")]
    file.write_text("\n".join(lines) + "\n")

    (call,) = read_trace(file).calls

    assert [one.attempt for one in call.spans] == [1, 2]
    assert call.attempts == 2
