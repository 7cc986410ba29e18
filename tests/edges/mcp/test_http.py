import asyncio
import logging
import time
from base64 import b64encode
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import mcp_types as types
import pytest
from opentelemetry import trace
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags
from tests.edges.mcp.conftest import Connect, Served, heard
from tests.waiting import until

from seawall import FailureCode, Pipeline, Policies, RunPolicy
from seawall.edges.mcp import http
from seawall.edges.mcp.config import ServerConfig
from seawall.testing import FakeClock

POLICIES = Policies(default=RunPolicy(timeout_s=20, breaker=None))
REVISIONS = {"auto": "2026-07-28", "handshake": "2025-11-25"}


@pytest.mark.parametrize("mode", ["stream", "json"])
@pytest.mark.parametrize("protocol", list(REVISIONS))
async def test_both_revisions_are_spoken_over_http(
    connected: Connect, served: Served, protocol: str, mode: str
) -> None:
    served.start(mode)

    servers = await connected(served.config, protocol=protocol)
    result = await Pipeline(servers.registry, policies=POLICIES).call("s__echo", {"words": "hi"})

    assert servers.states()[0].version == REVISIONS[protocol]
    assert result.text == "hi"
    (call,) = heard(served.log, "tools/call")
    assert call["headers"]["x-key"] == "k-123"
    assert call["headers"]["mcp-protocol-version"] == REVISIONS[protocol]


async def test_a_key_in_an_address_reaches_the_server_and_no_log(
    connected: Connect, served: Served, caplog: pytest.LogCaptureFixture
) -> None:
    served.start()
    url = f"http://ann:s3cret-word@127.0.0.1:{served.port}/mcp?key=s3cret-key%20&n=1"
    caplog.set_level(logging.DEBUG)

    servers = await connected(ServerConfig(name="s", url=url))
    result = await Pipeline(servers.registry, policies=POLICIES).call("s__echo", {"words": "hi"})

    assert result.text == "hi"
    (call,) = heard(served.log, "tools/call")
    assert call["query"] == "key=s3cret-key%20&n=1"
    assert call["headers"]["authorization"] == f"Basic {b64encode(b'ann:s3cret-word').decode()}"
    assert caplog.records
    assert "s3cret" not in caplog.text


async def test_a_header_that_was_given_stands_above_a_name_in_the_address(
    connected: Connect, served: Served
) -> None:
    served.start()
    url = f"http://ann:word@127.0.0.1:{served.port}/mcp"

    await connected(ServerConfig(name="s", url=url, headers={"authorization": "Bearer k"}))

    (listed,) = heard(served.log, "tools/list")
    assert listed["headers"]["authorization"] == "Bearer k"


async def test_a_body_with_half_a_character_is_mended() -> None:
    def answer(_: httpx2.Request) -> httpx2.Response:
        async def body() -> AsyncIterator[bytes]:
            yield rb'{"jsonrpc": "2.0", "id": 1, "result": {"a": "cut \ud83d"}}'

        return httpx2.Response(200, content=body(), headers={"content-type": "application/json"})

    careful = http._Careful(httpx2.MockTransport(answer), FakeClock(), 1_000)
    async with httpx2.AsyncClient(transport=careful) as client:
        found = (await client.get("http://h/mcp")).json()

    assert found["result"] == {"a": "cut \ufffd"}


async def test_in_the_stateless_revision_a_call_names_itself_in_headers(
    connected: Connect, served: Served
) -> None:
    served.start()
    servers = await connected(served.config)

    await Pipeline(servers.registry, policies=POLICIES).call("s__echo", {"words": "hi"})

    (call,) = heard(served.log, "tools/call")
    assert call["headers"]["mcp-method"] == "tools/call"
    assert call["headers"]["mcp-name"] == "echo"
    assert not heard(served.log, "initialize")


async def test_arguments_that_want_to_be_headers_are_mirrored(
    connected: Connect, served: Served
) -> None:
    served.start()
    servers = await connected(served.config)

    result = await Pipeline(servers.registry, policies=POLICIES).call("s__region", {"where": "eu"})

    (call,) = heard(served.log, "tools/call")
    assert result.text == "eu"
    assert call["headers"]["mcp-param-region"] == "eu"


@pytest.mark.parametrize("protocol", list(REVISIONS))
async def test_progress_comes_over_http(connected: Connect, served: Served, protocol: str) -> None:
    served.start()
    servers = await connected(served.config, protocol=protocol)
    reports: list[Any] = []

    result = await Pipeline(servers.registry, policies=POLICIES).call(
        "s__slow", {"steps": 3}, on_progress=lambda *report: reports.append(report)
    )

    assert result.text == "done"
    assert ("step 3", 3.0, 3.0) in reports


@pytest.mark.parametrize("protocol", list(REVISIONS))
async def test_a_call_that_is_given_up_ends_on_the_server(
    connected: Connect, served: Served, protocol: str
) -> None:
    served.start()
    servers = await connected(served.config, protocol=protocol)
    task = asyncio.create_task(
        Pipeline(servers.registry, policies=POLICIES).call("s__hang", timeout_s=0.3)
    )

    result = await task

    assert result.failure is not None
    assert result.failure.code is FailureCode.TIMEOUT
    await until(lambda: heard(served.log, "hang ended"))


@pytest.mark.parametrize("protocol", list(REVISIONS))
async def test_a_server_that_was_restarted_is_spoken_to_again(
    connected: Connect, served: Served, protocol: str
) -> None:
    served.start()
    servers = await connected(served.config, protocol=protocol)
    pipeline = Pipeline(servers.registry, policies=POLICIES)
    first = await pipeline.call("s__echo", {"words": "one"})

    served.stop()
    away = await pipeline.call("s__echo", {"words": "two"})
    served.start()
    last = await pipeline.call("s__echo", {"words": "three"})

    assert (first.text, last.text) == ("one", "three")
    assert away.failure is not None
    assert (away.failure.reason, away.failure.may_have_run) == ("transport", False)
    assert len(heard(served.log, "initialize")) == (2 if protocol == "handshake" else 0)


@pytest.mark.parametrize("protocol", list(REVISIONS))
async def test_a_server_killed_in_a_call_gives_a_result_at_once(
    connected: Connect, served: Served, protocol: str
) -> None:
    served.start()
    servers = await connected(served.config, protocol=protocol)
    task = asyncio.create_task(Pipeline(servers.registry, policies=POLICIES).call("s__hang"))
    await until(lambda: heard(served.log, "tools/call"))
    began = time.monotonic()

    served.stop()
    result = await task

    assert time.monotonic() - began < 5
    assert result.failure is not None
    assert result.failure.reason == "transport"
    assert result.failure.may_have_run is True


@pytest.mark.parametrize("mode", ["stream", "json"])
async def test_an_answer_beyond_the_bound_fails_its_own_call_alone(
    connected: Connect, served: Served, mode: str
) -> None:
    served.start(mode)
    servers = await connected(served.config, max_message_bytes=100_000)
    pipeline = Pipeline(servers.registry, policies=POLICIES)

    large, small = await asyncio.gather(
        pipeline.call("s__large", {"size": 200_000}), pipeline.call("s__slow", {"steps": 2})
    )

    assert small.text == "done"
    assert large.failure is not None
    assert large.failure.code is FailureCode.EXECUTION_FAILED
    assert "100000" in large.failure.message


async def test_an_answer_above_what_the_sdk_allows_by_itself_comes_whole(
    connected: Connect, served: Served
) -> None:
    served.start()
    servers = await connected(served.config)

    result = await Pipeline(
        servers.registry, policies=Policies(default=RunPolicy(max_result_bytes=None, breaker=None))
    ).call("s__large", {"size": 2_000_000})

    assert len(result.text) == 2_000_000


@pytest.mark.parametrize("protocol", list(REVISIONS))
async def test_a_tool_that_comes_later_is_called(
    connected: Connect, served: Served, protocol: str
) -> None:
    served.start()
    servers = await connected(served.config, protocol=protocol)
    pipeline = Pipeline(servers.registry, policies=POLICIES)
    # In the older revision the stream for notifications is opened beside the session.
    await until(lambda: heard(served.log, "subscriptions/listen") or heard(served.log, "http GET"))
    await asyncio.sleep(0.2)

    await pipeline.call("s__grow")
    await until(lambda: "s__fresh" in servers.registry)

    assert (await pipeline.call("s__fresh")).text == "new"


@pytest.mark.parametrize("protocol", list(REVISIONS))
async def test_a_tool_that_asks_the_user_is_answered_in_both_revisions(
    connected: Connect, served: Served, protocol: str
) -> None:
    async def elicit(context: Any, params: Any) -> types.ElicitResult:
        return types.ElicitResult(action="accept", content={"colour": f"blue: {params.message}"})

    served.start()
    servers = await connected(served.config, protocol=protocol, elicit=elicit)

    result = await Pipeline(servers.registry, policies=POLICIES).call("s__ask")

    assert result.text == "blue: Which colour?"


@pytest.mark.parametrize("protocol", list(REVISIONS))
async def test_a_tool_that_asks_where_nobody_answers_fails_at_once(
    connected: Connect, served: Served, protocol: str
) -> None:
    served.start()
    servers = await connected(served.config, protocol=protocol)
    began = time.monotonic()

    result = await Pipeline(servers.registry, policies=POLICIES).call("s__ask")

    assert time.monotonic() - began < 5
    assert result.is_error


async def test_the_trace_of_the_caller_goes_along(connected: Connect, served: Served) -> None:
    served.start()
    servers = await connected(served.config)
    here = SpanContext(0xABC, 0xDEF, is_remote=False, trace_flags=TraceFlags(1))

    with trace.use_span(NonRecordingSpan(here)):
        await Pipeline(servers.registry, policies=POLICIES).call("s__echo", {"words": "hi"})

    (call,) = heard(served.log, "tools/call")
    assert f"{0xABC:032x}" in call["params"]["_meta"]["traceparent"]


async def test_changes_are_heard_of_again_after_a_restart(
    connected: Connect, served: Served
) -> None:
    served.start()
    servers = await connected(served.config)
    pipeline = Pipeline(servers.registry, policies=POLICIES)
    await until(lambda: heard(served.log, "subscriptions/listen"))

    served.stop()
    served.start()
    await until(lambda: len(heard(served.log, "subscriptions/listen")) >= 2)
    await until(lambda: len(heard(served.log, "tools/list")) >= 2)
    await pipeline.call("s__grow")
    await until(lambda: "s__fresh" in servers.registry)


def test_the_proxy_of_the_environment_is_used_but_for_this_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[Any] = []
    monkeypatch.setenv("http_proxy", "http://proxy.test:3128")
    monkeypatch.setenv("no_proxy", "inner.test")
    monkeypatch.setattr(
        httpx2, "AsyncHTTPTransport", lambda proxy=None: seen.append(proxy and proxy.url.host)
    )

    for host in ("outer.test", "inner.test", "127.0.0.1:80"):
        http._plain(f"http://{host}/mcp")

    assert seen == ["proxy.test", None, None]


@pytest.mark.parametrize(
    ("status", "said"), [(401, "401"), (403, "403"), (429, "429"), (500, "500"), (404, "404")]
)
async def test_a_server_that_refuses_is_told_of_with_its_status(
    connected: Connect, served: Served, notes: list[str], status: int, said: str
) -> None:
    served.start(str(status))

    await connected(served.config)

    assert said in notes[0]


async def test_a_refusal_that_says_when_to_come_back_is_a_rate_limit(
    connected: Connect, served: Served
) -> None:
    served.start()
    servers = await connected(served.config)
    pipeline = Pipeline(servers.registry, policies=POLICIES)
    served.stop()
    served.start("429")

    result = await pipeline.call("s__echo", {"words": "hi"})

    assert result.failure is not None
    assert result.failure.code is FailureCode.RATE_LIMITED
    assert result.failure.retry_after_s == 7
