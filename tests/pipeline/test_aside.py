"""What is kept beside a call, and what a call of its tool shares with it."""

from __future__ import annotations

import pytest

from seawall import RunPolicy
from seawall.pipeline.aside import Aside
from seawall.testing import LayerBench


def test_a_call_of_a_tool_shares_turn_and_messages_and_nothing_else() -> None:
    outer = Aside()
    outer.turn = object()  # type: ignore[assignment]  # any turn
    outer.turnstile = object()  # type: ignore[assignment]  # any turnstile
    outer.limit = object()  # type: ignore[assignment]  # any limit
    outer.seen = 7

    inner = outer.shared()
    inner.messages.append("from within")

    assert inner.turn is outer.turn
    assert outer.messages == ["from within"]
    assert [inner.turnstile, inner.limit, inner.seen, inner.signature] == [None] * 4


def test_what_is_beside_a_call_is_made_at_the_first_asking() -> None:
    call = LayerBench().invocation()

    assert call.aside is None
    assert call.beside() is call.beside() is call.aside


@pytest.mark.parametrize(("hooked", "shares"), [(True, True), (False, False)])
def test_without_hooks_a_call_of_a_tool_shares_nothing(hooked: bool, shares: bool) -> None:
    bench = LayerBench()
    outer, inner = bench.invocation(), bench.invocation()

    inner.belongs_to(outer, hooked=hooked)

    assert (inner.aside is not None) is shares
    assert inner.on_progress is None


def test_progress_of_a_call_within_is_progress_of_the_outer_one() -> None:
    bench = LayerBench(RunPolicy(idle_timeout_s=1))
    outer, inner = bench.invocation(), bench.invocation()
    inner.belongs_to(outer)
    assert inner.on_progress is not None

    inner.on_progress("report", None, None)

    assert outer.progress_at == bench.clock.now()


def test_a_rewrite_is_prepared_anew_and_the_original_forgotten() -> None:
    bench = LayerBench()
    prepared = []

    def prepare(call: object) -> None:
        prepared.append(invocation.given)
        invocation.arguments = dict(invocation.given)

    invocation = bench.invocation({"n": 1}, prepare=prepare)
    invocation.prepared()
    invocation.mended = ("/n",)
    invocation.bound = "typed"

    assert invocation.rewrite({"n": 2}) is None

    assert prepared == [{"n": 1}, {"n": 2}]
    assert [invocation.arguments, list(invocation.mended), invocation.bound] == [{"n": 2}, [], None]
