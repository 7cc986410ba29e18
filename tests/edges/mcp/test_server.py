import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import mcp_types as types
import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from tests.edges.mcp.conftest import NASTY, Connect, heard, nasty
from tests.waiting import SOON_S, until, waited

from seawall import BreakerPolicy, FailureCode, Pipeline, Policies, RunPolicy
from seawall.edges.mcp.options import McpOptions
from seawall.edges.mcp.server import Server
from seawall.recording.otel import OpenTelemetry
from seawall.testing import FakeClock, FixedChance

LINE = 200_000


def policies(**fields: Any) -> Policies:
    fields.setdefault("breaker", None)
    return Policies(default=RunPolicy(**fields))


def gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


async def test_a_server_that_dies_in_a_call_gives_a_result_at_once(connected: Connect) -> None:
    servers = await connected(nasty(tools={"t": "kill_self_on_call"}))
    began = time.monotonic()

    result = await Pipeline(servers.registry, policies=policies(timeout_s=30)).call("n__t")

    assert time.monotonic() - began < SOON_S
    failure = result.failure
    assert failure is not None
    assert (failure.code, failure.reason) == (FailureCode.EXECUTION_FAILED, "transport")
    assert failure.may_have_run is True
    assert "Out of cheese" in failure.message
    assert "hunter2" not in failure.message


async def test_a_dead_server_is_started_again_and_answers(connected: Connect) -> None:
    servers = await connected(nasty(tools={"die": "kill_self_on_call", "pid": "pid"}))
    pipeline = Pipeline(servers.registry, policies=policies())
    first = (await pipeline.call("n__pid")).text

    await pipeline.call("n__die")
    second = await pipeline.call("n__pid")

    assert not second.is_error
    assert second.text != first


async def test_a_dead_server_fails_fast_and_trips_the_breakers_of_its_tools(
    connected: Connect,
) -> None:
    servers = await connected(nasty(tools={"t": "kill_self_on_call"}), max_restarts=1)
    pipeline = Pipeline(
        servers.registry, policies=policies(timeout_s=30, breaker=BreakerPolicy(threshold=3))
    )
    await pipeline.call("n__t")
    await Pipeline(servers.registry).call("n__t")
    await until(lambda: servers.states()[0].state == "waiting")
    began = time.monotonic()

    results = [await pipeline.call("n__t") for _ in range(3)]

    assert time.monotonic() - began < SOON_S
    first = results[0].failure
    assert first is not None
    assert (first.reason, first.may_have_run) == ("transport", False)
    assert first.retry_after_s is not None
    assert results[-1].failure is not None
    assert results[-1].failure.code is FailureCode.CIRCUIT_OPEN


async def test_a_server_is_not_started_more_often_than_allowed(
    connected: Connect, tmp_path: Path
) -> None:
    starts = tmp_path / "starts"

    servers = await connected(
        nasty(dies="no licence", starts=str(starts)), base_delay_s=0.01, max_restarts=3
    )
    await until(lambda: "left alone" in servers.states()[0].why)
    await asyncio.sleep(0.3)

    assert len(starts.read_text().split()) == 4
    assert "no licence" in servers.states()[0].why


async def test_one_server_that_cannot_start_keeps_no_other(
    connected: Connect, notes: list[str]
) -> None:
    servers = await connected(nasty("bad", dies="broken"), nasty("good", tools={"t": "reply"}))

    result = await Pipeline(servers.registry, policies=policies()).call("good__t", {"a": 1})

    assert result.text == '{"a": 1}'
    assert any("'bad'" in note and "broken" in note for note in notes)


@pytest.mark.parametrize("deaf", ["initialize", "tools/list"])
async def test_a_server_that_never_gets_ready_is_given_up(
    connected: Connect, deaf: str, notes: list[str]
) -> None:
    began = time.monotonic()

    servers = await connected(nasty(deaf=[deaf]), connect_s=0.5)

    assert time.monotonic() - began < SOON_S
    assert "not ready within 0.5 s" in servers.states()[0].why
    assert notes


async def test_a_server_that_never_answers_is_cancelled_with_the_reason(
    connected: Connect, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    servers = await connected(nasty(tools={"t": "never_reply"}, log=str(log)))

    result = await Pipeline(servers.registry, policies=policies(timeout_s=0.2)).call("n__t")
    await until(lambda: heard(log, "notifications/cancelled"))

    assert result.failure is not None
    assert result.failure.code is FailureCode.TIMEOUT
    (call,) = heard(log, "tools/call")
    (cancelled,) = heard(log, "notifications/cancelled")
    assert cancelled["params"] == {"requestId": call["id"], "reason": "attempt_timeout"}


async def test_a_caller_that_cancels_is_free_at_once_and_the_server_is_told(
    connected: Connect, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    servers = await connected(nasty(tools={"t": "never_reply"}, log=str(log)))
    pipeline = Pipeline(servers.registry, policies=policies(timeout_s=30))
    task = asyncio.create_task(pipeline.call("n__t"))
    await until(lambda: heard(log, "tools/call"))
    began = time.monotonic()

    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert time.monotonic() - began < SOON_S
    await until(lambda: heard(log, "notifications/cancelled"))
    assert heard(log, "notifications/cancelled")[0]["params"]["reason"] == "cancelled"


async def test_lines_on_stdout_that_are_no_messages_are_passed_over(connected: Connect) -> None:
    noise = "MCP Server running on stdio...\n\n{not json}\n[1, 2]\n"

    servers = await connected(nasty(stdout_before=noise, tools={"t": "reply"}))

    assert not (await Pipeline(servers.registry, policies=policies()).call("n__t")).is_error


async def test_a_long_line_below_the_bound_comes_whole(connected: Connect) -> None:
    servers = await connected(nasty(tools={"t": "text:a*200000"}))

    result = await Pipeline(servers.registry, policies=policies(max_result_bytes=1_000_000)).call(
        "n__t"
    )

    assert result.text == "a" * 200_000


@pytest.mark.parametrize("how", ["text:x*20000000", "id_last:20000000"])
async def test_a_message_beyond_the_bound_fails_only_its_own_call(
    connected: Connect, how: str
) -> None:
    servers = await connected(nasty(tools={"big": how, "small": "reply_at:0.5"}))
    pipeline = Pipeline(servers.registry, policies=policies(timeout_s=20))

    big, small = await asyncio.gather(pipeline.call("n__big"), pipeline.call("n__small"))

    assert small.text == "late"
    assert big.failure is not None
    assert "more than 10485760 bytes" in big.failure.message
    assert big.failure.retryable is False


async def test_a_large_message_of_nobody_ends_the_connection_and_says_so(
    connected: Connect,
) -> None:
    servers = await connected(
        nasty(tools={"t": f"anonymous:{LINE}", "u": "reply"}), max_message_bytes=LINE
    )
    pipeline = Pipeline(servers.registry, policies=policies(timeout_s=20))

    result = await pipeline.call("n__t")

    assert result.failure is not None
    assert result.failure.reason == "transport"
    assert f"more than {LINE} bytes" in result.failure.message


async def test_a_flood_on_stderr_blocks_nobody(connected: Connect) -> None:
    servers = await connected(nasty(tools={"t": "flood_stderr:20000"}))

    result = await Pipeline(servers.registry, policies=policies(timeout_s=20)).call("n__t")

    assert result.text == "flooded"


async def test_progress_reaches_the_caller_and_keeps_an_idle_limit_away(connected: Connect) -> None:
    servers = await connected(nasty(tools={"t": "progress:0.1;reply_at:0.8"}))
    pipeline = Pipeline(servers.registry, policies=policies(timeout_s=5, idle_timeout_s=0.4))
    reports: list[Any] = []

    result = await pipeline.call("n__t", on_progress=lambda *report: reports.append(report))

    assert result.text == "late"
    assert reports[0] == ("step 1", 1.0, 10.0)


async def test_silence_beyond_the_idle_limit_ends_a_call(connected: Connect) -> None:
    servers = await connected(nasty(tools={"t": "reply_at:3"}))
    pipeline = Pipeline(servers.registry, policies=policies(timeout_s=5, idle_timeout_s=0.3))

    result = await pipeline.call("n__t")

    assert result.failure is not None
    assert result.failure.code is FailureCode.TIMEOUT


async def test_every_call_asks_for_progress_and_carries_what_the_hook_gives(
    connected: Connect,
) -> None:
    servers = await connected(
        nasty(tools={"t": "meta"}), meta=lambda context: {"vendor/call": context.call_id}
    )

    result = await Pipeline(servers.registry, policies=policies()).call("n__t", call_id="c7")

    meta = json.loads(result.text)
    assert meta["vendor/call"] == "c7"
    assert "progressToken" in meta


async def test_the_span_of_the_call_is_the_parent_of_what_the_server_does(
    connected: Connect,
) -> None:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    servers = await connected(nasty(tools={"t": "meta"}), meta=lambda _: {"vendor/k": 1})
    pipeline = Pipeline(
        servers.registry, policies=policies(), recorders=[OpenTelemetry(tracer_provider=provider)]
    )

    results = [await pipeline.call("n__t") for _ in range(2)]

    spans = exporter.get_finished_spans()
    assert [span.name for span in spans] == ["execute_tool n__t"] * 2
    for result, span in zip(results, spans, strict=True):
        meta = json.loads(result.text)
        assert span.context is not None
        assert meta["vendor/k"] == 1
        _, trace_id, parent_id, _ = meta["traceparent"].split("-")
        assert (int(trace_id, 16), int(parent_id, 16)) == (
            span.context.trace_id,
            span.context.span_id,
        )


@pytest.mark.parametrize(
    ("code", "expected", "reason"),
    [
        (-32602, FailureCode.INVALID_ARGUMENT, "argument_invalid"),
        (-32601, FailureCode.UNSUPPORTED, "unsupported"),
        (-32603, FailureCode.EXECUTION_FAILED, "tool_failed"),
        (-32700, FailureCode.EXECUTION_FAILED, "transport"),
        (-32001, FailureCode.EXECUTION_FAILED, "tool_timeout"),
        (-32022, FailureCode.UNSUPPORTED, "unsupported"),
        (-32042, FailureCode.UNSUPPORTED, "input_required"),
        (1234, FailureCode.EXECUTION_FAILED, "tool_failed"),
    ],
)
async def test_an_error_of_the_protocol_has_the_code_that_it_means(
    connected: Connect, code: int, expected: FailureCode, reason: str
) -> None:
    servers = await connected(nasty(tools={"t": f"error:{code},no such luck"}))

    result = await Pipeline(servers.registry, policies=policies()).call("n__t")

    assert result.failure is not None
    assert (result.failure.code, result.failure.reason) == (expected, reason)
    assert "no such luck" in result.failure.message
    assert result.metadata is not None
    assert result.metadata["mcp_error"]["code"] == code


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ('{"content": "text"}', "output_invalid"),
        ('{"resultType": "input_required", "inputRequests": {}}', "input_required"),
        ('{"resultType": "input_required", "inputRequests": {"a": 1}}', "input_required"),
        ('{"resultType": "hologram"}', "unsupported"),
    ],
)
async def test_an_answer_that_is_no_result_is_a_failure(
    connected: Connect, answer: str, reason: str
) -> None:
    servers = await connected(nasty(tools={"t": f"raw:{answer}"}))

    result = await Pipeline(servers.registry, policies=policies()).call("n__t")

    assert result.failure is not None
    assert result.failure.reason == reason


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            (
                r'{"jsonrpc": "2.0", "id": ID, "result": {"content": ['
                r'{"type": "text", "text": "cut \ud83d"}]}}'
            ),
            "cut \ufffd",
        ),
        ('{"jsonrpc": "2.0", "id": ID, "result": "text"}', "no message of the protocol"),
        ('{"jsonrpc": "2.0", "id": ID, "result": {"content": [}}', "no message of the protocol"),
    ],
)
async def test_an_answer_that_no_strict_reader_takes_ends_its_call_at_once(
    connected: Connect, line: str, said: str
) -> None:
    servers = await connected(nasty(tools={"t": f"line:{line}"}))

    result = await Pipeline(servers.registry, policies=policies(timeout_s=20)).call("n__t")

    assert said in result.text
    assert result.failure is None or result.failure.reason == "output_invalid"


async def test_a_server_that_never_rests_is_listed_ever_less_often(
    connected: Connect, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    servers = await connected(nasty(tools={"t": "reply"}, restless=True, log=str(log)))

    await until(lambda: len(heard(log, "tools/list")) >= 3)
    began = time.monotonic()
    await until(lambda: len(heard(log, "tools/list")) >= 5)

    assert time.monotonic() - began > 1.5
    assert servers.states()[0].state == "up"


async def test_a_list_of_tools_beyond_the_bound_is_not_taken(connected: Connect) -> None:
    tool = {"name": "t", "description": "x" * 6_000, "inputSchema": {"type": "object"}}

    servers = await connected(nasty(declared=[tool], endless=True), max_message_bytes=10_000)

    assert "its list of tools has more than 10000 bytes" in servers.states()[0].why


async def test_notes_on_one_list_are_bounded(connected: Connect, notes: list[str]) -> None:
    tool = {"name": "t", "inputSchema": {"type": "object"}}

    await connected(nasty(declared=[tool] * 500))

    assert len(notes) == 51
    assert "449 more notes" in notes[-1]


async def test_a_server_that_asks_only_to_be_called_again_is(
    connected: Connect, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    servers = await connected(nasty(tools={"t": "again:2"}, log=str(log)))

    result = await Pipeline(servers.registry, policies=policies()).call("n__t", {"a": 1})

    assert result.text == "now"
    states = [call["params"].get("requestState") for call in heard(log, "tools/call")]
    assert states == [None, "1", "2"]
    assert all(call["params"]["arguments"] == {"a": 1} for call in heard(log, "tools/call"))


async def test_a_server_that_asks_for_ever_costs_the_time_of_the_policy(connected: Connect) -> None:
    servers = await connected(nasty(tools={"t": "again:1000000"}))

    result = await Pipeline(servers.registry, policies=policies(timeout_s=0.4)).call("n__t")

    assert result.failure is not None
    assert result.failure.code is FailureCode.TIMEOUT


async def test_error_answers_of_a_tool_leave_its_breaker_closed(connected: Connect) -> None:
    servers = await connected(nasty(tools={"t": "is_error:not found"}))
    pipeline = Pipeline(servers.registry, policies=policies(breaker=BreakerPolicy(threshold=3)))

    results = [await pipeline.call("n__t") for _ in range(6)]

    failure = results[-1].failure
    assert failure is not None
    assert failure.code is FailureCode.EXECUTION_FAILED
    assert "not found" in failure.message


async def test_a_server_that_asks_the_user_is_told_that_nobody_is_there(connected: Connect) -> None:
    servers = await connected(nasty(tools={"t": "elicit"}))

    result = await Pipeline(servers.registry, policies=policies()).call("n__t")

    assert "not supported" in result.text


async def test_who_can_be_asked_answers_the_server(connected: Connect) -> None:
    async def elicit(context: Any, params: Any) -> types.ElicitResult:
        return types.ElicitResult(action="accept", content={"said": params.message})

    servers = await connected(nasty(tools={"t": "elicit"}), elicit=elicit)

    result = await Pipeline(servers.registry, policies=policies()).call("n__t")

    assert json.loads(result.text)["content"] == {"said": "Which?"}


async def test_a_call_from_another_loop_reaches_the_server(connected: Connect) -> None:
    servers = await connected(nasty(tools={"t": "reply"}))

    def elsewhere() -> str:
        return Pipeline(servers.registry, policies=policies()).call_sync("n__t", {"a": 1}).text

    assert await asyncio.to_thread(elsewhere) == '{"a": 1}'


async def test_after_closing_calls_fail_and_no_process_is_left(
    connected: Connect, tmp_path: Path
) -> None:
    family = tmp_path / "family"
    servers = await connected(nasty(tools={"t": "reply"}, family=str(family)))
    pids = list(map(int, family.read_text().split()))

    await servers.close()
    result = await Pipeline(servers.registry, policies=policies()).call("n__t")

    assert result.failure is not None
    assert result.failure.reason == "transport"
    await until(lambda: all(map(gone, pids)))


async def test_a_server_that_ignores_the_end_is_killed(connected: Connect, tmp_path: Path) -> None:
    family = tmp_path / "family"
    servers = await connected(nasty(family=str(family), stubborn=True))
    began = time.monotonic()

    await servers.close()

    assert time.monotonic() - began < 6
    pids = list(map(int, family.read_text().split()))
    await until(lambda: all(map(gone, pids)))


OWNER = """
import asyncio, json, signal, sys
from seawall.edges.mcp.config import ServerConfig
from seawall.edges.mcp.servers import connect

async def main():
    command = (sys.executable, sys.argv[1], sys.argv[2])
    await connect(ServerConfig(name="n", command=command))
    print("up", flush=True)
    await asyncio.Event().wait()

# Where the tests run in the background of a shell, this signal is ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
asyncio.run(main())
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_no_process_outlives_ours_however_it_ends(how: signal.Signals, tmp_path: Path) -> None:
    family = tmp_path / "family"
    plan = json.dumps({"family": str(family), "stubborn": True})
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, str(NASTY), plan],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert owner.stdout is not None
    assert owner.stdout.readline() == b"up\n"
    pids = list(map(int, family.read_text().split()))
    assert not any(map(gone, pids))

    owner.send_signal(how)
    owner.wait()
    owner.stdout.close()

    waited(lambda: all(map(gone, pids)), within_s=5)
    assert os.getpid() not in pids


@pytest.mark.parametrize(
    ("failures", "started_ago_s", "expected"),
    [
        (0, [0], 0.0),
        (1, [0], 0.5),
        (2, [0], 1.0),
        (4, [0], 4.0),
        (7, [0], 30.0),
        (1_000, [0], 30.0),
        (0, [50, 40, 30, 20, 10, 0], 10.0),
        (0, [61, 40, 30, 20, 10, 0], 0.0),
        (7, [50, 40, 30, 20, 10, 0], 30.0),
    ],
)
def test_waits_double_up_to_a_ceiling_and_starts_are_bounded(
    failures: int, started_ago_s: list[float], expected: float
) -> None:
    clock, listing = FakeClock(), Mock()
    server = Server(nasty(), McpOptions(), clock, FixedChance(1.0), listing, lambda said: None)
    server._starts.extend(1_000 - ago for ago in started_ago_s)

    assert server._wait_s(failures, 1_000) == pytest.approx(expected)
    assert ("left alone" in server.why) is (len(started_ago_s) > 5 and started_ago_s[0] < 60)
