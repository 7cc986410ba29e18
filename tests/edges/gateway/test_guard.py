from __future__ import annotations

import pytest
from tests.edges.gateway.serving import (
    ADMIN,
    APPROVER,
    CALLER,
    TOOLS,
    add,
    asking,
    bearer,
    call,
    with_tokens,
)

from seawall import Pipeline
from seawall.testing import FakeClock


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "127.0.0.1:8080", "localhost", "LOCALHOST:1", "[::1]"]
)
async def test_names_of_loopback_are_answered(host: str) -> None:
    async with asking() as client:
        response = await client.get("/tools", headers={"host": host})

    assert response.status_code == 200


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "", "localhost:80:80"])
async def test_other_names_are_refused_before_anything_is_read(host: str) -> None:
    async with asking() as client:
        response = await client.get("/tools", headers={"host": host})

    assert response.status_code == 421
    assert response.json()["failure"]["reason"] == "host_not_allowed"


async def test_another_name_can_be_allowed() -> None:
    async with asking(allow_hosts=("tools.example",)) as client:
        response = await client.get("/tools", headers={"host": "tools.example:443"})

    assert response.status_code == 200


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        ("http://127.0.0.1", 200),
        ("https://evil.example", 403),
        ("null", 403),
        ("http://127.0.0.1:81", 403),
        ("http://localhost", 403),
    ],
)
async def test_only_pages_of_the_gateway_itself_may_ask(origin: str, status: int) -> None:
    async with asking() as client:
        response = await client.get("/tools", headers={"origin": origin})

    assert response.status_code == status


async def test_health_is_answered_under_any_name_and_without_a_token() -> None:
    async with asking(**with_tokens()) as client:
        health = await client.get("/healthz", headers={"host": "10.0.0.7"})
        ready = await client.get("/readyz", headers={"host": "10.0.0.7"})

    assert (health.status_code, ready.status_code) == (200, 200)


@pytest.mark.parametrize(
    "path", ["/tools", "/traces", "/usage", "/breakers", "/metrics", "/events"]
)
async def test_without_a_token_nothing_is_shown_once_tokens_were_given_out(path: str) -> None:
    async with asking(**with_tokens()) as client:
        response = await client.get(path)

    assert response.status_code == 401
    assert response.headers["www-authenticate"] == 'Bearer realm="seawall"'


@pytest.mark.parametrize(
    "authorization",
    ["", "Bearer", "Bearer ", "Basic dXNlcjpwYXNz", f"Bearer {CALLER}x", f"Token {CALLER}"],
)
async def test_a_wrong_token_is_401(authorization: str) -> None:
    async with asking(**with_tokens()) as client:
        response = await client.get("/tools", headers={"authorization": authorization})

    assert response.status_code == 401


async def test_a_token_that_is_not_known_is_refused_even_where_none_is_needed() -> None:
    async with asking() as client:
        response = await client.get("/tools", headers=bearer("no-such-token-at-all"))

    assert response.status_code == 401


@pytest.mark.parametrize(("token", "status"), [(CALLER, 403), (APPROVER, 403), (ADMIN, 200)])
async def test_circuits_are_opened_by_admins_only(token: str, status: int) -> None:
    async with asking(**with_tokens()) as client:
        response = await client.post(
            "/breakers/add", json={"action": "open"}, headers=bearer(token)
        )

    assert response.status_code == status


async def test_administration_needs_a_token_on_loopback_too() -> None:
    async with asking() as client:
        response = await client.post("/breakers/add", json={"action": "open"})

    assert response.status_code == 401


async def test_a_token_for_approving_may_not_call() -> None:
    async with asking(**with_tokens(), token=APPROVER) as client:
        response = await call(client, "add", {"a": 1, "b": 2})

    assert response.status_code == 403


async def test_each_client_has_a_rate_of_its_own() -> None:
    pipeline = Pipeline(TOOLS, clock=FakeClock())
    async with asking(pipeline=pipeline, **with_tokens(client_rate="1/minute")) as client:
        statuses = [
            (await call(client, "add", {"a": 1, "b": 2}, headers=bearer(token))).status_code
            for token in (CALLER, CALLER, ADMIN)
        ]

    assert statuses == [200, 429, 200]


async def test_headers_beyond_the_bound_are_refused() -> None:
    async with asking(max_header_bytes=500) as client:
        response = await client.get("/tools", headers={"x-long": "x" * 600})

    assert response.status_code == 431


async def test_more_requests_than_it_serves_at_once_are_told_to_come_back() -> None:
    async with asking([add], max_in_flight=1) as client:
        gateway = client._transport.app  # type: ignore[attr-defined]  # the test looks inside
        gateway._in_flight = 1
        response = await client.get("/tools")

    assert response.status_code == 503
    assert response.headers["retry-after"] == "1"


@pytest.mark.parametrize(
    "header", ["Host", "Origin", "Authorization", "Idempotency-Key", "Content-Type"]
)
async def test_a_header_that_two_readers_could_read_in_two_ways_comes_once(header: str) -> None:
    async with asking() as client:
        sent = [("Host", "127.0.0.1"), (header, "127.0.0.1"), (header, "127.0.0.1")]
        answer = await client.get("/tools", headers=sent)
    assert answer.status_code == 400
    assert f"{header.lower()} came more than once" in answer.json()["failure"]["message"]


async def test_headers_of_one_name_count_each_time() -> None:
    async with asking(max_header_bytes=1000) as client:
        answer = await client.get("/tools", headers=[("X-A", "a" * 100)] * 20)
    assert answer.status_code == 431
