"""Addresses that hold what they name."""

from __future__ import annotations

from typing import Any

import pytest

from seawall.edges.adapters._data_urls import Held, bytes_of, held_by


@pytest.mark.parametrize(
    ("address", "held"),
    [
        ("data:image/png;base64,AAAA", Held("AAAA", "image/png")),
        ("DATA:Image/PNG;charset=x;Base64,AAAA", Held("AAAA", "image/png")),
        ("data:;base64,AAAA", Held("AAAA", None)),
        ("data:nonsense;base64,AAAA", Held("AAAA", None)),
        ("data:text/plain,a%20b", Held("YSBi", "text/plain")),
        ("data:,a,b", Held("YSxi", None)),
        ("data:image/png;base64", None),
        ("https://x.test/data:,a", None),
        ("", None),
    ],
)
def test_what_an_address_holds_is_read_as_base64_with_its_type(
    address: str, held: Held | None
) -> None:
    assert held_by(address) == held


@pytest.mark.parametrize(
    ("data", "found"),
    [
        ("aGk=", b"hi"),
        ("aG\r\nk=\n", b"hi"),
        ("", b""),
        ("!!", None),
        ("not base64!!!", None),
        ("aGk", None),
        ("\u00e9", None),
        (None, None),
        (7, None),
    ],
)
def test_base64_is_read_or_known_to_be_none(data: Any, found: bytes | None) -> None:
    assert bytes_of(data) == found
