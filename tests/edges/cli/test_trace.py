"""`seawall trace`: what is read, chosen, counted and written."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from typer.testing import CliRunner, Result

from seawall.contract.span import Digest, Outcome, Span
from seawall.edges.cli.app import app
from seawall.edges.cli.paper import Paper
from seawall.edges.cli.trace import COLUMNS, NARROW_COLUMNS, TraceOptions, spans_from, trace
from seawall.orchestration.pipeline import Pipeline
from seawall.testing import FakeClock, scripted

if TYPE_CHECKING:
    from collections.abc import Callable


def span(tool: str, outcome: Outcome = Outcome.SUCCESS, **fields: Any) -> Span:
    known: dict[str, Any] = {
        "call_id": f"c-{tool}",
        "attempt": 1,
        "started": 1_700_000_000.0,
        "duration_ms": 12.3,
        "digest": Digest(2, 2, "ab" * 16),
    }
    return Span(tool=tool, outcome=outcome, **{**known, **fields})


SPANS = [
    span("read"),
    span("send", Outcome.FAILED, reason="attempt_timeout", started=1_700_000_001.0),
    span("send", attempt=2, started=1_700_000_002.0),
    span("drop", Outcome.DENIED, reason="approval_denied", attempt=0, verdicts=("a:b",)),
]


@pytest.fixture(name="run")
def run_fixture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    monkeypatch.chdir(tmp_path)
    Path("spans.json").write_bytes(msgspec.json.encode(SPANS))
    Path("spans.jsonl").write_bytes(b"\n".join(map(msgspec.json.encode, SPANS)) + b"\n\n")

    def run(*arguments: str, **options: Any) -> Result:
        return CliRunner().invoke(app, ["trace", *arguments], **options)

    return run


def rows(output: str) -> list[list[str]]:
    return [line.split() for line in output.splitlines()]


@pytest.mark.parametrize("file", ["spans.json", "spans.jsonl"])
def test_the_newest_spans_are_listed_under_a_line_that_counts_all(run: Any, file: str) -> None:
    ran = run(file)

    lines = rows(ran.stdout)
    assert ran.stdout.splitlines()[0] == "success 2, failed 1, denied 1, skipped 0"
    assert lines[1] == list(COLUMNS)
    assert [line[1] for line in lines[2:]] == ["send", "send", "read", "drop"]
    assert lines[3][2:6] == ["failed", "attempt_timeout", "1", "12.3"]
    assert lines[5][-1] == "a:b"
    assert ran.exit_code == 0


def test_only_so_many_are_listed_and_only_of_one_tool(run: Any) -> None:
    assert len(rows(run("spans.json", "--limit", "1").stdout)) == 3
    assert len(rows(run("spans.json", "--tool", "read").stdout)) == 3


def test_one_call_is_listed_from_its_first_attempt(run: Any) -> None:
    lines = rows(run("spans.json", "--call", "c-send").stdout)

    assert [line[2] for line in lines[2:]] == ["failed", "success"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--call", "nope"], "of the call 'nope'."),
        (["--tool", "nope"], "of the tool 'nope'; there are drop, read, send."),
        (["--tool", "reed"], "of the tool 'reed'; there are read."),
        (["--tool", "read", "--call", "c-send"], "of the tool 'read' and the call 'c-send'."),
    ],
)
def test_a_call_or_tool_that_is_not_there_is_not_found(
    run: Any, options: list[str], said: str
) -> None:
    ran = run("spans.json", *options)

    assert ran.exit_code == 5
    assert ran.stdout == ""
    assert ran.stderr == f"None of 4 spans in spans.json is {said}\n"


def test_a_file_without_spans_is_told(run: Any) -> None:
    Path("empty.jsonl").write_text("")

    ran = run("empty.jsonl")

    assert ran.exit_code == 0
    assert ran.stderr == "note: no span is recorded in empty.jsonl\n"


@pytest.mark.parametrize(
    "options", [["--suggest", "--histogram"], ["--histogram", "--export", "out.json"]]
)
def test_what_cannot_both_be_written_is_refused(run: Any, options: list[str]) -> None:
    ran = run("spans.json", *options)

    assert ran.exit_code == 2
    assert "one at a time: --histogram or --" in ran.stderr
    assert not Path("out.json").exists()


def test_the_histogram_counts_by_tool(run: Any) -> None:
    lines = rows(run("spans.json", "--histogram").stdout)

    assert lines == [
        ["tool", "success", "failed", "denied", "skipped"],
        ["send", "1", "1", "0", "0"],
        ["drop", "0", "0", "1", "0"],
        ["read", "1", "0", "0", "0"],
        ["all", "2", "1", "1", "0"],
    ]
    counted = json.loads(run("spans.json", "--histogram", "--json").stdout)
    assert counted["send"] == {"success": 1, "failed": 1, "denied": 0, "skipped": 0}


def test_json_is_what_can_be_read_again(run: Any) -> None:
    ran = run("spans.jsonl", "--json", "--call", "c-send")

    assert msgspec.json.decode(ran.stdout, type=list[Span]) == SPANS[1:3]
    assert len(json.loads(run("-", "--json", input=ran.stdout).stdout)) == 2


@pytest.mark.parametrize("name", ["out.json", "out.jsonl", "out.txt"])
def test_an_export_is_json_or_json_lines_by_its_name(run: Any, name: str) -> None:
    ran = run("spans.json", "--tool", "send", "--export", name)

    assert ran.stderr == f"Written to {name}: 2 of 4 spans.\n"
    assert ran.stdout == ""
    assert spans_from(name) == SPANS[1:3]
    assert (Path(name).read_text()[0] == "[") is (name == "out.json")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"tool": "a"}\n', "bad.json:1: is no span"),
        ("\n\nnonsense\n", "bad.json:3: is no span"),
        ("[1]", "bad.json: [0]: is no span"),
        ("[", "bad.json: is no JSON"),
    ],
)
def test_what_is_no_span_is_told_with_its_place(run: Any, text: str, said: str) -> None:
    Path("bad.json").write_text(text)

    ran = run("bad.json")

    assert ran.exit_code == 2
    assert said in ran.stderr


def test_only_the_first_faults_are_told(run: Any) -> None:
    Path("bad.jsonl").write_text("x\n" * 100)

    assert len(run("bad.jsonl").stderr.splitlines()) == 10


@pytest.mark.parametrize("arguments", [["none.json"], ["spans.json", "--export", "no/such.json"]])
def test_a_file_that_cannot_be_read_or_written_is_a_usage_error(
    run: Any, arguments: list[str]
) -> None:
    ran = run(*arguments)

    assert ran.exit_code == 2
    assert "No such file or directory" in ran.stderr


def test_a_file_that_is_no_text_is_a_usage_error(run: Any) -> None:
    Path("bad.json").write_bytes(b"\xff\xfe")

    assert "is no UTF-8 text" in run("bad.json").stderr


@pytest.mark.parametrize("file", ["spans.json", "-"])
def test_what_is_too_large_is_refused(run: Any, monkeypatch: pytest.MonkeyPatch, file: str) -> None:
    monkeypatch.setattr("seawall.edges.cli.trace.MAX_BYTES", 10)

    assert run(file, input="x" * 11).exit_code == 2


def test_an_empty_export_is_no_spans(run: Any) -> None:
    ran = run("-", input="")

    assert ran.stdout == "success 0, failed 0, denied 0, skipped 0\n"


def test_a_name_cannot_begin_a_line_of_its_own(run: Any) -> None:
    Path("odd.json").write_bytes(msgspec.json.encode([span("a\nall  9")]))

    assert len(run("odd.json").stdout.splitlines()) == 3
    assert len(run("odd.json", "--histogram").stdout.splitlines()) == 3


async def test_what_a_recorder_exports_is_read() -> None:
    clock = FakeClock()
    pipeline = Pipeline([scripted("x", ValueError("no"), name="a")], clock=clock)
    for _ in range(2):
        await clock.run(pipeline.call("a", {"secret": "s3cr3t"}))
    spans = pipeline.trace.spans()

    ran = CliRunner().invoke(app, ["trace", "-"], input=pipeline.trace.export_json())

    assert [span.tool for span in spans] == ["a", "a"]
    assert ran.stdout.startswith("success 1, failed 1")
    assert "s3cr3t" not in ran.stdout


def test_what_is_done_again_and_again_is_suggested_as_a_shortcut(run: Any) -> None:
    spans = [
        span(tool, started=1_700_000_000.0 + 1000 * again + place, call_id=f"{again}{tool}")
        for again in range(3)
        for place, tool in enumerate(["a", "b"])
    ]
    Path("often.json").write_bytes(msgspec.json.encode(spans))

    ran = run("often.json", "--suggest")

    headline, _, definition = ran.stdout.partition("\n")
    assert headline == "3 times: a then b"
    assert json.loads(definition)["id"] == "shortcut.a_then_b"
    assert json.loads(run("often.json", "--suggest", "--json").stdout)[0]["count"] == 3
    assert "Nothing was done again and again" in run("spans.json", "--suggest").stderr


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("columns", "shown"), [("80", NARROW_COLUMNS), ("160", COLUMNS)])
def test_on_a_terminal_a_span_is_one_line(
    run: Any, monkeypatch: pytest.MonkeyPatch, columns: str, shown: tuple[str, ...]
) -> None:
    assert run  # the files are there
    monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.setenv("NO_COLOR", "1")
    screen = Screen()

    trace("spans.json", TraceOptions(), Paper(screen), Paper(Screen()))

    plain = re.sub(r"\x1b\[[\d;]*m", "", screen.getvalue())
    lines = [line for line in plain.splitlines() if line.strip()]
    head = next(line for line in lines if line.startswith(shown[0]))
    assert tuple(head.split()) == shown
    told = columns == "80"
    assert ("No room here for: the date, arguments, verdicts. --json has all." in lines) is told
    assert len(lines) == 3 + len(SPANS) + told
    assert max(map(len, lines)) <= int(columns)
