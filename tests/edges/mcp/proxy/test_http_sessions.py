"""What waits for one client of a process that is reached over HTTP."""

from __future__ import annotations

from seawall.edges.mcp.proxy.http_sessions import MAX_BACKLOG, Outlet


async def test_what_a_client_does_not_take_is_bounded_and_its_answer_is_not_lost() -> None:
    outlet = Outlet()

    for at in range(MAX_BACKLOG + 50):
        outlet.put(b"%d" % at)
    outlet.put(b"answer", last=True)
    taken = [await outlet.take() for _ in range(MAX_BACKLOG)]

    assert taken[0] == (b"51", False)
    assert taken[-1] == (b"answer", True)
