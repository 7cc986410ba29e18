"""Whose session an id names."""

from __future__ import annotations

import pytest

from seawall.edges.mcp.proxy.session_ids import SESSION, for_client, for_server, owner_in

OWNER = "0123456789abcdef0123456789abcdef"
MORE = (b"content-type", b"application/json")


@pytest.mark.parametrize("own", [b"", b"1", b"a.b.c", b"x.seawall-" + b"0" * 32, b"\xe9\n"])
def test_the_server_gets_the_id_that_it_gave(own: bytes) -> None:
    told = for_client([MORE, (SESSION, own)], OWNER)

    assert owner_in(told[1][1]) == OWNER
    assert for_server(told) == [MORE, (SESSION, own)]


@pytest.mark.parametrize("sent", [b"", b"a", b"a.seawall-", b"a.seawall-" + b"0" * 31 + b"G"])
def test_an_id_that_was_not_given_here_has_no_owner_and_passes_as_it_is(sent: bytes) -> None:
    assert owner_in(sent) is None
    assert for_server([(SESSION, sent)]) == [(SESSION, sent)]
