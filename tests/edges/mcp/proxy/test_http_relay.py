"""The proxy over HTTP, and from one transport to the other."""

from __future__ import annotations

import asyncio
import itertools
import json
import sys
import time
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from tests.edges.mcp.proxy.conftest import LEGACY, MODERN, STATUSES, UNBROKEN, listening
from tests.servers import free_port
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.edges.mcp.proxy.conftest import Refusing, Served

ACCEPT = {"accept": "application/json, text/event-stream"}
WAYS = pytest.mark.parametrize("way", ["http", "stdio"])


class Web:
    """A client that speaks the bare protocol over HTTP."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}/mcp"
        self.http = httpx.AsyncClient(timeout=20, trust_env=False)
        self.headers: dict[str, str] = {}
        self.events: list[Any] = []

    async def open(self, **capabilities: Any) -> httpx.Response:
        said = {**LEGACY, "capabilities": capabilities}
        response = await self.post(request("initialize", said))
        self.headers = {
            "mcp-session-id": response.headers["mcp-session-id"],
            "mcp-protocol-version": "2025-11-25",
        }
        await self.post({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return response

    async def post(self, message: Any, **headers: str) -> httpx.Response:
        sent = {**ACCEPT, **self.headers, **headers}
        return await self.http.post(self.url, json=message, headers=sent)

    async def ask(self, message: Any, **headers: str) -> Any:
        """The answer, however it comes; what came before it is in `events`."""
        response = await self.post(message, **headers)
        if not response.headers["content-type"].startswith("text/event-stream"):
            return response.json()
        found = [json.loads(line[6:]) for line in response.text.splitlines() if len(line) > 6
                 and line.startswith("data: ")]  # fmt: skip
        self.events += found[:-1]
        return found[-1]

    async def call(self, tool: str, arguments: Any = None, **params: Any) -> Any:
        return await self.ask(
            request("tools/call", {"name": tool, "arguments": arguments or {}, **params})
        )

    async def modern(self, tool: str, arguments: Any = None, **params: Any) -> httpx.Response:
        said = {"name": tool, "arguments": arguments or {}, "_meta": MODERN, **params}
        return await self.post(request("tools/call", said), **modern_headers("tools/call", tool))


def modern_headers(method: str, name: str = "") -> dict[str, str]:
    found = {"mcp-protocol-version": "2026-07-28", "mcp-method": method}
    return {**found, "mcp-name": name} if name else found


numbers = itertools.count(1)


def request(method: str, params: Any = None, request_id: Any = None) -> dict[str, Any]:
    request_id = next(numbers) if request_id is None else request_id
    return {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params or {}}


async def counted(web: Web, what: str = "cancelled") -> int:
    """How many calls of the tool `hang` have `hung`, or were told to give up."""
    if web.headers:
        said = text_of(await web.call("was_cancelled"))
    else:
        said = text_of((await web.modern("was_cancelled")).json())
    return int(json.loads(said)[what])


async def more_than(before: int, web: Web, what: str = "cancelled") -> None:
    async def are_more() -> bool:
        return await counted(web, what) > before

    await until(are_more, within_s=10)


def text_of(answer: Any) -> str:
    return str(answer["result"]["content"][0]["text"])


@pytest.fixture
async def webs() -> AsyncIterator[Any]:
    made: list[Web] = []

    def make(port: int) -> Web:
        made.append(Web(port))
        return made[-1]

    yield make
    for web in made:
        await web.http.aclose()


@WAYS
async def test_a_session_opens_serves_calls_and_ends(
    ports: dict[str, int], webs: Any, way: str
) -> None:
    web = webs(ports[way])

    opened = await web.open()
    answer = await web.call("add", {"a": "1", "b": 2})
    ended = await web.http.delete(web.url, headers=web.headers)
    after = await web.post(request("ping"))

    assert opened.status_code == 200
    assert text_of(answer) == "3"
    assert ended.status_code == 200
    assert after.status_code == 404


@WAYS
async def test_a_session_that_is_gone_is_not_found(
    ports: dict[str, int], webs: Any, way: str
) -> None:
    web = webs(ports[way])

    response = await web.post(request("tools/list"), **{"mcp-session-id": "gone"})
    called = await web.post(request("tools/call", {"name": "add"}), **{"mcp-session-id": "gone"})

    assert response.status_code == 404
    assert called.status_code == 404


@WAYS
async def test_a_call_without_a_session_is_answered(
    ports: dict[str, int], webs: Any, way: str
) -> None:
    web = webs(ports[way])

    answers = await asyncio.gather(*(web.modern("add", {"a": n, "b": 1}) for n in range(20)))
    unknown = await web.modern("ad")

    assert [text_of(a.json()) for a in answers] == [str(n + 1) for n in range(20)]
    assert answers[0].json()["result"]["resultType"] == "complete"
    assert unknown.status_code == 400
    assert unknown.json()["error"]["data"]["hints"] == ["add"]


@WAYS
async def test_headers_that_do_not_fit_the_body_are_refused(
    ports: dict[str, int], webs: Any, way: str
) -> None:
    web = webs(ports[way])
    await web.modern("add", {"a": 1, "b": 1})

    said = {"name": "add", "arguments": {"a": 1, "b": 2}, "_meta": MODERN}
    response = await web.post(request("tools/call", said), **modern_headers("tools/call", "hang"))

    assert response.status_code == 400
    assert response.json()["error"]["code"] == -32020


@WAYS
async def test_progress_and_logs_come_on_the_stream_of_their_call(
    ports: dict[str, int], webs: Any, way: str
) -> None:
    web = webs(ports[way])
    await web.open()

    await web.call("test_tool_with_progress", _meta={"progressToken": "p"})
    reported = [e["params"]["progress"] for e in web.events if "progress" in e.get("method", "")]
    await web.call("test_tool_with_logging")
    logged = [e for e in web.events if e.get("method") == "notifications/message"]

    assert reported == [0, 50, 100]
    assert len(logged) == 3


@WAYS
async def test_two_clients_do_not_hear_of_each_other(
    ports: dict[str, int], webs: Any, way: str
) -> None:
    port = ports[way]
    one, other = webs(port), webs(port)
    await one.open(sampling={})
    await other.open(roots={})

    said = await asyncio.gather(
        *(
            web.call("test_tool_with_progress", _meta={"progressToken": "same"})
            for web in (one, other)
        ),
        one.call("what_can_the_client"),
    )

    assert len(said) == 3
    assert len(one.events) == len(other.events) == 3
    assert json.loads(text_of(said[2])) == {"sampling": {}}
    assert json.loads(text_of(await other.call("what_can_the_client"))) == {"roots": {}}


@WAYS
async def test_a_disconnect_is_a_cancellation_where_there_is_no_session(
    ports: dict[str, int], webs: Any, way: str
) -> None:
    web = webs(ports[way])
    await web.modern("add", {"a": 1, "b": 1})

    before, hung = await counted(web), await counted(web, "hung")
    hanging = asyncio.create_task(web.modern("hang"))
    await more_than(hung, web, "hung")
    hanging.cancel()
    await asyncio.wait({hanging})

    await more_than(before, web)


@WAYS
async def test_a_cancellation_in_a_session_reaches_the_server(
    ports: dict[str, int], webs: Any, way: str
) -> None:
    web = webs(ports[way])
    await web.open()

    before, hung = await counted(web), await counted(web, "hung")
    hanging = asyncio.create_task(web.post(request("tools/call", {"name": "hang"}, "h")))
    await more_than(hung, web, "hung")
    params = {"requestId": "h", "reason": "enough"}
    told = await web.post({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})
    assert told.status_code == 202
    await more_than(before, web)
    assert '"result"' not in (await hanging).text


@WAYS
async def test_a_person_is_asked_on_the_stream_of_the_call(
    ports: dict[str, int], webs: Any, way: str
) -> None:
    web = webs(ports[way])
    await web.open(elicitation={})
    said = {"name": "remove", "arguments": {"message": "it"}}
    sent = {**ACCEPT, **web.headers}
    answers = []

    async with web.http.stream(
        "POST", web.url, json=request("tools/call", said, 5), headers=sent
    ) as stream:
        async for line in stream.aiter_lines():
            if not line.startswith("data: {"):
                continue
            message = json.loads(line[6:])
            if message.get("method") == "elicitation/create":
                result = {"action": "accept", "content": {"decision": "once"}}
                answer = {"jsonrpc": "2.0", "id": message["id"], "result": result}
                assert (await web.post(answer)).status_code == 202
            else:
                answers.append(message)

    assert [text_of(a) for a in answers] == ["removed it"]


async def asked_and_answered(web: Web, decision: str, call_id: int = 7) -> tuple[list[str], Any]:
    """Call `pay`; gives what the person was asked, all of it answered so, and the result."""
    sent = {**ACCEPT, **web.headers}
    asked: list[str] = []
    said: Any = None
    call = request("tools/call", {"name": "pay", "arguments": {}}, call_id)
    async with web.http.stream("POST", web.url, json=call, headers=sent) as stream:
        async for line in stream.aiter_lines():
            found = line.removeprefix("data: ")
            if not found.startswith("{"):
                continue
            said = json.loads(found)
            if said.get("method") == "elicitation/create":
                asked.append(said["params"]["message"])
                result = {"action": "accept", "content": {"decision": decision}}
                await web.post({"jsonrpc": "2.0", "id": said["id"], "result": result})
    return asked, said


async def test_clients_that_a_server_gives_one_session_are_asked_each_for_itself(
    served: Served, refusing: Refusing, webs: Any
) -> None:
    refusing.more = "Mcp-Session-Id: the-same\r\n"
    refusing.hints = {"destructiveHint": True}
    refusing.status = 200
    refusing.body = b'{"jsonrpc":"2.0","id":"the same","result":{"content":[]}}'
    port = served.before(refusing.port)
    careless, careful, late = webs(port), webs(port), webs(port)
    await careless.open(elicitation={})
    await careful.open(elicitation={})

    first, _ = await asked_and_answered(careless, "session")
    again, _ = await asked_and_answered(careless, "deny", 8)
    other, refused = await asked_and_answered(careful, "deny")
    await late.open(elicitation={})
    still, _ = await asked_and_answered(careless, "deny", 9)
    new, _ = await asked_and_answered(late, "deny")

    assert [len(asked) for asked in (first, again, still)] == [1, 0, 0]
    assert [len(asked) for asked in (other, new)] == [1, 1]
    assert refused["result"]["isError"] is True
    assert refusing.ran == 3


async def test_a_server_does_not_learn_what_its_clients_are_told_of_a_session(
    served: Served, refusing: Refusing, webs: Any
) -> None:
    refusing.more = "Mcp-Session-Id: a.b\r\n"
    port = served.before(refusing.port)
    first, second = webs(port), webs(port)

    await first.open()
    await second.open()
    known = first.headers["mcp-session-id"]
    echoed = (await first.post(request("ping"))).headers["mcp-session-id"]
    await first.call("pay")
    ended = await first.http.delete(first.url, headers=first.headers)

    assert known.startswith("a.b.")
    assert known != second.headers["mcp-session-id"]
    assert echoed == known == ended.headers["mcp-session-id"]
    told = [head.partition("mcp-session-id: ")[2].partition("\r\n")[0] for head in refusing.heads]
    assert set(told) == {"", "a.b"}
    assert told[-1] == "a.b"


async def test_a_stream_that_the_server_closes_is_resumed_through_the_proxy(
    ports: dict[str, int], webs: Any
) -> None:
    web = webs(ports["http"])
    await web.open()

    said = request("tools/call", {"name": "test_reconnection"}, "again")
    first = await web.post(said)
    ids = [line[4:] for line in first.text.splitlines() if line.startswith("id: ")]
    headers = {"accept": "text/event-stream", **web.headers, "last-event-id": ids[-1]}
    found: Any = None
    async with web.http.stream("GET", web.url, headers=headers) as stream:
        async for line in stream.aiter_lines():
            if line.startswith("data: {") and json.loads(line[6:]).get("id") == "again":
                found = json.loads(line[6:])
                break

    assert '"result"' not in first.text
    assert "retry: 200" in first.text
    assert text_of(found) == "Reconnection test completed"


async def test_a_call_that_is_resumed_is_guarded_like_any_other(
    served: Served, ports: dict[str, int], webs: Any, tmp_path: Any
) -> None:
    policy = tmp_path / "short.toml"
    policy.write_text('extends = "mcp-proxy"\n[tools."*"]\nidle_timeout_s = 0.1\n')
    web = webs(served.before(ports["direct"], "--policy", str(policy)))
    await web.open()

    first = await web.post(request("tools/call", {"name": "test_reconnection"}, "again"))
    after = await web.call("add", {"a": 1, "b": 1})

    assert '"result"' not in first.text or "attempt_timeout" in first.text
    assert text_of(after) == "2"


@pytest.mark.parametrize("method", ["tools/list", "tools/call", "prompts/list"])
async def test_a_server_that_is_away_gives_an_error_and_is_found_again(
    served: Served, webs: Any, method: str
) -> None:
    server = served.everything()
    web = webs(served.before(server))
    params = {"name": "add", "arguments": {"a": 1, "b": 2}, "_meta": MODERN}
    headers = modern_headers(method, "add" if method == "tools/call" else "")
    before = await web.post(request(method, params), **headers)

    served.kill(server)
    away = (await web.post(request(method, params), **headers)).json()
    served.everything(server)
    back = await web.post(request(method, params), **headers)

    assert before.status_code == back.status_code == 200
    assert "error" in away or away["result"]["isError"]
    assert "tools" not in away.get("result", {})


@WAYS
async def test_other_host_names_and_origins_may_not_come_in(
    ports: dict[str, int], webs: Any, way: str
) -> None:
    web = webs(ports[way])
    port = web.url.rpartition(":")[2].partition("/")[0]

    statuses = [
        (await web.post(request("ping"), **headers)).status_code
        for headers in (
            {"host": "evil.example"},
            {"host": f"evil.example:{port}"},
            {"origin": "https://evil.example"},
            {"origin": "null"},
        )
    ]
    local = await web.post(
        request("initialize", LEGACY), host=f"localhost:{port}", origin=f"http://localhost:{port}"
    )

    assert statuses == [421, 421, 403, 403]
    assert local.status_code == 200


async def test_a_token_is_asked_for_and_not_passed_on(
    served: Served, ports: dict[str, int], webs: Any
) -> None:
    options = ("--url", f"http://127.0.0.1:{ports['direct']}/mcp")
    web = webs(served.proxy(*options, SEAWALL_PROXY_TOKEN="s3cret"))

    without = await web.post(request("initialize", LEGACY))
    wrong = await web.post(request("initialize", LEGACY), authorization="Bearer s3cre")
    right = await web.post(request("initialize", LEGACY), authorization="Bearer s3cret")

    assert (without.status_code, wrong.status_code, right.status_code) == (401, 401, 200)


async def test_an_address_that_others_reach_needs_a_token() -> None:
    process = await asyncio.create_subprocess_exec(
        *(
            sys.executable,
            "-m",
            "seawall",
            "proxy",
            "--url",
            "http://127.0.0.1:1/mcp",
        ),
        *("--http", f"0.0.0.0:{free_port()}"),
        stderr=asyncio.subprocess.PIPE,
    )

    _, said = await asyncio.wait_for(process.communicate(), 20)

    assert process.returncode == 2
    assert b"--token-file" in said


@WAYS
async def test_a_body_beyond_the_bound_is_refused(
    ports: dict[str, int], webs: Any, way: str
) -> None:
    web = webs(ports[way])

    response = await web.post(request("ping", {"x": "a" * (17 * 1024 * 1024)}))

    assert response.status_code == 413


@WAYS
async def test_large_results_pass(ports: dict[str, int], webs: Any, way: str) -> None:
    web = webs(ports[way])
    await web.open()

    answer = await web.call("large", {"bytes": 3_000_000})

    assert len(text_of(answer)) == 3_000_000


async def test_a_batch_with_a_call_is_refused_over_http(ports: dict[str, int], webs: Any) -> None:
    web = webs(ports["http"])
    await web.open()

    response = await web.post([request("tools/call", {"name": "add"})])

    assert response.status_code == 400


async def test_the_servers_own_question_passes_without_a_session(
    ports: dict[str, int], webs: Any
) -> None:
    web = webs(ports["http"])
    can = {**MODERN, "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}}}

    first = (await web.modern("ask_first", {"message": "m"}, _meta=can)).json()["result"]
    answers = {"count": {"action": "accept", "content": {"count": 3}}}
    second = await web.modern(
        "ask_first", {"message": "m"}, _meta=can, inputResponses=answers,
        requestState=first["requestState"],
    )  # fmt: skip

    assert first["resultType"] == "input_required"
    assert first["requestState"] == "half way"
    assert text_of(second.json()) == "half way: {'count': 3}"


async def test_a_signal_ends_it_although_streams_are_open(served: Served, webs: Any) -> None:
    port = served.on_stdio()
    web = webs(port)
    await web.open()
    hanging = asyncio.create_task(web.post(request("tools/call", {"name": "hang"}, "h")))
    await more_than(0, web, "hung")

    begun = time.monotonic()
    served.processes[port].terminate()
    await asyncio.to_thread(served.processes[port].wait, 10)
    hanging.cancel()

    assert time.monotonic() - begun < 6


@WAYS
async def test_a_message_of_several_lines_is_one_message(
    ports: dict[str, int], webs: Any, way: str
) -> None:
    web = webs(ports[way])
    await web.open()
    call = json.dumps(request("tools/call", {"name": "add", "arguments": {"a": 1, "b": 2}}, "in"))
    said = json.dumps(request("ping", {}, "out"))[:-3] + '{"x-own":\r\n' + call + "\n}}"

    response = await web.http.post(
        web.url, content=said, headers={**ACCEPT, **web.headers, "content-type": "application/json"}
    )

    assert response.status_code == 200
    assert '"out"' in response.text
    assert '"in"' not in response.text


async def test_what_some_servers_would_read_otherwise_is_refused(
    ports: dict[str, int], webs: Any
) -> None:
    web = webs(ports["http"])
    await web.open()

    response = await web.post({"jsonrpc": "2.0", "id": 1, "Method": "tools/call", "params": {}})

    assert response.status_code == 400
    assert response.json()["error"]["code"] == -32600


@WAYS
@pytest.mark.parametrize(("named", "status"), [("127.0.0.1", 404), ("evil.example", 421)])
async def test_a_host_in_the_address_counts_like_the_header(
    ports: dict[str, int], way: str, named: str, status: int
) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", ports[way])
    head = f"GET http://{named}:{ports[way]}/none HTTP/1.1\r\nHost: 127.0.0.1:{ports[way]}\r\n"
    writer.write(f"{head}Connection: close\r\n\r\n".encode())
    said = await reader.read()
    writer.close()

    assert said.startswith(f"HTTP/1.1 {status} ".encode()), said


class Written:
    """A server that writes down what it gets, and answers as it is told."""

    def __init__(self) -> None:
        self.heads: list[str] = []
        self.bodies: list[bytes] = []
        self.kind = "application/json"
        self.answer = b'{"jsonrpc":"2.0","id":1,"result":{}}'
        self.port = 0
        self.divert: Any = None

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.divert is not None:
            await self.divert(reader, writer)
            return
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        size = head.partition("content-length: ")[2].partition("\r\n")[0]
        self.heads.append(head)
        self.bodies.append(await reader.readexactly(int(size or 0)))
        writer.write(
            f"HTTP/1.1 200 OK\r\nContent-Type: {self.kind}\r\nConnection: close\r\n"
            f"Content-Length: {len(self.answer)}\r\n\r\n".encode()
        )
        writer.write(self.answer)
        await writer.drain()
        writer.close()


@pytest.fixture
async def behind() -> AsyncIterator[Written]:
    found = Written()
    async with listening(found.serve) as found.port:
        yield found


async def sent(port: int, head: str, body: bytes = b"") -> str:
    """Send a request as it is written; gives its answer."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    more = f"Host: 127.0.0.1\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n"
    writer.write((head + more).encode() + body)
    said = await asyncio.wait_for(reader.read(), 20)
    writer.close()
    return said.decode()


CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "t"}}
PLAIN = "Content-Type: application/json\r\n"


@pytest.mark.parametrize(
    "general", [{}, {"http_proxy": "http://127.0.0.1:9", "no_proxy": "127.0.0.1"}]
)
async def test_only_paths_that_are_known_reach_the_server(
    served: Served, behind: Written, general: dict[str, str]
) -> None:
    url = f"http://127.0.0.1:{behind.port}/at/mcp"
    port = served.proxy("--url", url, **general)
    body = json.dumps(CALL).encode()

    for path in (
        "/.well-known/../at/mcp", "/.well-known/%2e%2e/at/mcp", "/.well-known/..%2fat/mcp",
        "/.well-known/..\\at\\mcp", "/.well-known//../at/mcp", "//at/mcp", "/at//mcp", "/at/mcp/",
        "/at/mcp;a=1", "/%61t/mcp", "/%6dcp", "/at/./mcp", "/at/x/../mcp", "/MCP", "/",
        "/.well-known/oauth-protected-resource/../../at/mcp", "/.well-known/else",
        "/.well-known/oauth-protected-resource/other", "/.well-known/oauth-protected-resource;a",
        "http://127.0.0.1/.well-known/../at/mcp",
    ):  # fmt: skip
        for method in ("POST", "GET"):
            said = await sent(port, f"{method} {path} HTTP/1.1\r\n{PLAIN}", body)
            assert said.startswith(("HTTP/1.1 404 ", "HTTP/1.1 400 ")), (path, said)
    at = "/.well-known/oauth-protected-resource"
    for method in ("POST", "PUT", "DELETE"):
        said = await sent(port, f"{method} {at} HTTP/1.1\r\n{PLAIN}", body)
        assert said.startswith("HTTP/1.1 405 ")
    assert behind.heads == []

    for path in (at, f"{at}/mcp", f"{at}/at/mcp"):
        assert "200 OK" in await sent(port, f"GET {path}?a=1 HTTP/1.1\r\n", body)

    assert [head.split()[:2] for head in behind.heads] == [
        ["get", at], ["get", f"{at}/at/mcp"], ["get", f"{at}/at/mcp"],
    ]  # fmt: skip
    assert behind.bodies == [b"", b"", b""]


async def test_a_call_goes_to_the_server_as_a_post_of_the_pipeline_alone(
    served: Served, behind: Written
) -> None:
    port = served.before(behind.port)
    body = json.dumps(CALL).encode()

    for method in ("PUT", "PATCH", "QUERY", "TRACE"):
        assert "405" in await sent(port, f"{method} /mcp HTTP/1.1\r\n{PLAIN}", body)
    for method in ("DELETE", "OPTIONS", "GET"):
        assert "200 OK" in await sent(port, f"{method} /mcp HTTP/1.1\r\n{PLAIN}", body)

    assert behind.bodies == [b"", b"", b""]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        (PLAIN, 200),
        ("Content-Type: Application/JSON; charset=UTF-8\r\n", 200),
        ("Content-Type: application/json; charset=utf-7\r\n", 415),
        ("Content-Type: application/x-www-form-urlencoded\r\n", 415),
        ("Content-Type: text/plain\r\n", 415),
        ("", 415),
        (PLAIN + "Content-Type: text/plain\r\n", 415),
        (PLAIN + "Content-Encoding: gzip\r\n", 415),
        (PLAIN + "Mcp-Method: ping\r\n", 200),
        (PLAIN + "Mcp-Method: tools/call\r\n", 400),
        (PLAIN + "Mcp-Method: ping\r\nMcp-Method: tools/call\r\n", 400),
        (PLAIN + "Mcp-Name: t\r\n", 400),
    ],
)
async def test_what_a_message_is_said_to_be_is_what_the_proxy_took_it_for(
    served: Served, behind: Written, headers: str, status: int
) -> None:
    port = served.before(behind.port)

    said = await sent(port, f"POST /mcp HTTP/1.1\r\n{headers}", b'{"id":1,"method":"ping"}')

    assert said.startswith(f"HTTP/1.1 {status} "), said
    assert bool(behind.heads) is (status == 200)


@WAYS
@pytest.mark.parametrize(
    "message",
    [
        b'{"jsonrpc":"2.0","method":"tools/call","params":{"name":"add"}}',
        b'{"jsonrpc":"2.0","id":null,"method":"tools/call","params":{"name":"add"}}',
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","method":"ping","params":{"name":"add"}}',
        b'{"jsonrpc":"2.0","id":1,"method":"TOOLS/call","params":{"name":"add"}}',
        b'[[{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add"}}]]',
        b'[{"jsonrpc":"2.0","id":1,"method":"tools/list"}]',
        b'[{"jsonrpc":"2.0","method":"tools/call","params":{"name":"add"}}]',
    ],
)
async def test_no_call_passes_beside_the_guard_over_http(
    ports: dict[str, int], way: str, message: bytes
) -> None:
    head = "POST /mcp HTTP/1.1\r\n" + PLAIN

    assert "HTTP/1.1 400 " in await sent(ports[way], head, message)


async def test_a_batch_goes_on_as_it_was_read(served: Served, behind: Written) -> None:
    port = served.before(behind.port)
    body = b'[ {"id":1,"method":"ping"} ,\r\n {"method":"x", "params":{}} ]'
    behind.answer = b'[ {"id":1,"result":{"a":1},"result":{}} ]'

    said = await sent(port, f"POST /mcp HTTP/1.1\r\n{PLAIN}", body)

    assert '[{"id":1,"result":{}}]' in said
    assert behind.bodies == [b'[{"id":1,"method":"ping"},{"method":"x", "params":{}}]']


@pytest.mark.parametrize(
    "kind", ["application/json", "text/event-stream", "x-application/json", "a;text/event-stream"]
)
async def test_what_a_server_says_twice_is_heard_once(
    served: Served, behind: Written, kind: str
) -> None:
    port = served.before(behind.port)
    twice = b'{"id":1,"result":{"tools":[]},"result":{"a":1}}'
    behind.kind = kind
    behind.answer = twice if kind.endswith("json") else b"data: " + twice + b"\n\r\n"

    for method in ("ping", "tools/list"):
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method}).encode()
        said = await sent(port, f"POST /mcp HTTP/1.1\r\n{PLAIN}", body)
        assert said.count('"result"') == 1, said
        assert '{"a":1}' in said


async def test_what_nobody_can_look_at_is_not_passed_on(served: Served, behind: Written) -> None:
    port = served.before(behind.port)
    behind.answer = b"data: oops"

    for method in ("ping", "tools/list"):
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method}).encode()
        said = await sent(port, f"POST /mcp HTTP/1.1\r\n{PLAIN}", body)
        assert said.startswith("HTTP/1.1 502 ")
        assert "oops" not in said


async def test_a_status_after_which_a_call_may_have_run_is_said_to_the_model(
    served: Served, refusing: Refusing, tmp_path: Path
) -> None:
    file = tmp_path / "policy.toml"
    await asyncio.to_thread(file.write_text, UNBROKEN)
    port = served.before(refusing.port, "--policy", str(file))
    said = json.dumps({**CALL, "params": {"name": "pay"}}).encode()
    wrong = []

    for status, body, may_have_run in STATUSES:
        refusing.status, refusing.body = status, body
        answer = await sent(port, f"POST /mcp HTTP/1.1\r\n{PLAIN}", said)
        passed = answer.startswith(f"HTTP/1.1 {status} ") and status != 200
        told = '"may_have_run":false' not in answer and "isError" in answer
        if passed is told or told is not (may_have_run and status != 402):
            wrong.append((status, answer))

    assert wrong == []


async def test_an_answer_to_a_call_is_heard_from_its_guard_alone(
    served: Served, behind: Written
) -> None:
    port = served.before(behind.port)
    hanging, gone = asyncio.Event(), asyncio.Event()
    head = f"POST /mcp HTTP/1.1\r\n{PLAIN}Mcp-Session-Id: s\r\n"
    behind.answer = b'{"id":1,"result":{"tools":[{"name":"t","inputSchema":{"type":"object"}}]}}'
    await sent(port, head, b'{"id":1,"method":"tools/list"}')

    async def never(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if b"tools/call" in await reader.readuntil(b"}}"):
            hanging.set()
            await gone.wait()
        writer.close()

    behind.divert = never
    call = json.dumps({**CALL, "id": "c"}).encode()
    calling = asyncio.create_task(sent(port, head, call))
    await asyncio.wait_for(hanging.wait(), 20)
    behind.divert = None
    behind.kind = "text/event-stream"
    behind.answer = (
        b'data: {"id":"c","result":{"content":[]}}\n\ndata: {"id":2,"result":{"a":1}}\n\n'
    )

    said = await sent(port, head, b'{"id":2,"method":"ping"}')

    gone.set()
    assert "isError" in await calling
    assert '"content"' not in said
    assert '{"a":1}' in said
