from __future__ import annotations

import re

import pytest

from seawall import ConfigurationError
from seawall.stores.redis_address import redis_address


@pytest.mark.parametrize(
    ("url", "client", "shown"),
    [
        ("redis://host", "redis://host", "redis://host"),
        ("redis://host:6379/2", "redis://host:6379/2", "redis://host:6379/2"),
        ("redis://[::1]:6379/0", "redis://[::1]:6379/0", "redis://[::1]:6379/0"),
        ("valkey://host:6379", "redis://host:6379", "valkey://host:6379"),
        ("rediss://u:secret@host/0", "rediss://u:secret@host/0", "rediss://host/0"),
        ("valkeys://:secret@host", "rediss://:secret@host", "valkeys://host"),
        ("redis://host/0?password=secret", "redis://host/0?password=secret", "redis://host/0"),
        ("redis://host?password=secret", "redis://host?password=secret", "redis://host"),
        ("redis+unix:///run/r.sock", "redis+unix:///run/r.sock", "redis+unix:///run/r.sock"),
        (
            "valkey+sentinel://:secret@a:26379,b:26379/limits",
            "redis+sentinel://:secret@a:26379,b:26379/limits",
            "valkey+sentinel://a:26379,b:26379/limits",
        ),
        (
            "redis+cluster://a:7000,b:7001",
            "redis+cluster://a:7000,b:7001",
            "redis+cluster://a:7000,b:7001",
        ),
    ],
)
def test_an_address_is_read_and_shown_without_its_secrets(
    url: str, client: str, shown: str
) -> None:
    address = redis_address(url)

    assert (address.url, address.shown) == (client, shown)
    assert "secret" not in repr(address)


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("", "this text is no address"),
        ("host:6379", "this text is no address"),
        ("http://host", "http:… is no address"),
        ("rediss+cluster://a:1", "rediss+cluster:… is no address"),
        ("redis://", "cannot be read"),
        ("redis://:secret@/0", "cannot be read"),
        ("redis://:secret@host:port/0", "cannot be read"),
        ("redis://:secret@host/secret", "cannot be read"),
        ("redis+sentinel://a:26379", "names no service"),
        ("redis+sentinel://:secret@a/limits", "host:port, with commas"),
        ("redis+cluster://:secret@a", "host:port, with commas"),
        ("redis+unix://", "names no socket"),
    ],
)
def test_what_is_no_address_is_told_without_showing_it(url: str, said: str) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(said)) as raised:
        redis_address(url)

    assert "secret" not in str(raised.value)
