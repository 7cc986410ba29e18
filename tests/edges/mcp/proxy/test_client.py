"""What is kept of a client."""

from __future__ import annotations

import pytest

from seawall.edges.mcp.proxy.client import Client
from seawall.pipeline.chance import SystemChance


@pytest.mark.parametrize(
    ("options", "one"), [({}, True), ({"shared": True}, False), ({"stateless": True}, False)]
)
def test_calls_have_one_session_only_where_they_are_of_one_client(
    options: dict[str, bool], one: bool
) -> None:
    chance = SystemChance(1)
    client = Client(chance, **options)

    first, second = client.session_for_call(chance), client.session_for_call(chance)

    assert (first is second) is one
