"""Who may come in over HTTP."""

from __future__ import annotations

from typing import Any

import pytest

from seawall.contract.errors import ConfigurationError
from seawall.edges.mcp.proxy.http_serving import address
from seawall.edges.mcp.proxy.http_shell import Doorkeeper, Request


def a_request(*headers: tuple[str, str]) -> Request:
    scope: dict[str, Any] = {
        "method": "POST",
        "path": "/mcp",
        "headers": [(name.encode(), value.encode("latin-1")) for name, value in headers],
    }

    async def nothing(*_: Any) -> Any:
        raise AssertionError

    return Request(scope, nothing, nothing)


def status(door: Doorkeeper, *headers: tuple[str, str]) -> int:
    refusal = door.refusal(a_request(*headers))
    return 200 if refusal is None else refusal[0]


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("127.0.0.1:8100", 200),
        ("localhost", 200),
        ("LOCALHOST:1", 200),
        ("[::1]:8100", 200),
        ("evil.example", 421),
        ("127.0.0.1.evil.example:8100", 421),
        ("localhost:8100.evil.example", 421),
        ("", 421),
    ],
)
def test_only_local_names_are_served_on_a_loopback_address(host: str, expected: int) -> None:
    assert status(Doorkeeper("127.0.0.1"), ("host", host)) == expected


def test_a_request_without_a_host_or_with_two_is_refused() -> None:
    door = Doorkeeper("127.0.0.1")

    assert status(door) == 421
    assert status(door, ("host", "localhost"), ("host", "evil.example")) == 421


@pytest.mark.parametrize(
    ("origin", "expected"),
    [
        ("http://localhost:3000", 200),
        ("https://tools.example", 200),
        ("https://evil.example", 403),
        ("null", 403),
        ("http://[", 403),
        ("file://localhost", 403),
        ("http://localhost.evil.example", 403),
    ],
)
def test_web_pages_of_others_may_not_use_it(origin: str, expected: int) -> None:
    door = Doorkeeper("127.0.0.1", origins=["https://tools.example/"])

    assert status(door, ("host", "localhost"), ("origin", origin)) == expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("Bearer s3cret", 200),
        ("bearer s3cret", 200),
        ("Bearer s3cre", 401),
        ("Basic s3cret", 401),
        ("Bearer é", 401),
        ("", 401),
    ],
)
def test_a_token_must_be_the_one(given: str, expected: int) -> None:
    door = Doorkeeper("10.0.0.1", token="s3cret")

    assert status(door, ("host", "any.example"), ("authorization", given)) == expected


def test_further_hosts_narrow_an_open_address() -> None:
    door = Doorkeeper("0.0.0.0", token="t", hosts=["mcp.example"])
    right = ("authorization", "Bearer t")

    assert status(door, ("host", "mcp.example:443"), right) == 200
    assert status(door, ("host", "other.example"), right) == 421


def test_addresses_are_read() -> None:
    assert address("127.0.0.1:80") == ("127.0.0.1", 80)
    assert address("[::1]:0") == ("::1", 0)
    assert address(":81") == ("127.0.0.1", 81)
    for wrong in ("x", "host:", "host:70000", ""):
        with pytest.raises(ConfigurationError):
            address(wrong)
