from __future__ import annotations

from typing import Any

import pytest

from seawall import ConfigurationError
from seawall.edges.gateway.settings import GatewaySettings, token_path
from seawall.edges.gateway.tokens import Tokens, token_of

TOKEN = token_of("one", "a-token-of-some-length", "call")


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1", "127.8.8.8"])
def test_loopback_needs_no_token(host: str) -> None:
    assert GatewaySettings(host=host).is_loopback


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.1", "gateway.example"])
def test_other_addresses_need_a_token_that_may_call(host: str) -> None:
    with pytest.raises(ConfigurationError, match="can be reached from elsewhere"):
        GatewaySettings(host=host)
    with pytest.raises(ConfigurationError, match="can be reached from elsewhere"):
        GatewaySettings(host=host, tokens=token_of("x", "a-token-of-some-length", "admin"))
    assert not GatewaySettings(host=host, tokens=TOKEN).is_loopback


@pytest.mark.parametrize(
    "settings",
    [
        {"port": -1},
        {"port": 70_000},
        {"max_body_bytes": 0},
        {"max_in_flight": 0},
        {"drain_s": 0},
        {"client_rate": "often"},
    ],
)
def test_a_setting_that_cannot_work_is_named(settings: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError) as caught:
        GatewaySettings(**settings)

    assert caught.value.faults[0].key == next(iter(settings))


def test_an_address_of_all_is_no_name() -> None:
    hosts = GatewaySettings(host="0.0.0.0", tokens=TOKEN, allow_hosts=("Tools.Example",)).hosts

    assert "0.0.0.0" not in hosts
    assert "tools.example" in hosts


@pytest.mark.parametrize(
    ("tokens", "said"),
    [
        (token_of("a", "x" * 16, "call") + token_of("b", "x" * 16, "admin"), "the same token"),
        (token_of("a", "x" * 16, "call") + token_of("a", "y" * 16, "admin"), "the name a"),
        (token_of("anybody", "x" * 16, "call"), "the gateway's own"),
    ],
)
def test_clients_that_cannot_be_told_apart_are_refused(tokens: Tokens, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        GatewaySettings(tokens=tokens)


def test_two_gateways_of_one_user_keep_their_tokens_apart() -> None:
    assert len({token_path(8080), token_path(8081), token_path(0)}) == 3
