"""What a hook is shown of a call."""

from __future__ import annotations

from typing import Any

import pytest

from seawall import Deny, Hook, HookContext, Session
from seawall.orchestration.hooks import copied
from seawall.testing import LayerBench


def test_a_context_shows_the_call_as_it_is_now() -> None:
    bench = LayerBench(session=Session("s1", caller="c1"))
    call = bench.invocation({"a": {"b": [1]}}, depth=2, batch_id="turn-1", call_id="7")

    context = HookContext(call, "given")

    assert (context.call_id, context.tool, context.session) == ("7", bench.tool, bench.session)
    assert (context.turn_id, context.depth, context.given) == ("turn-1", 2, "given")
    assert context.result is None
    assert context.memory == {}
    prepared = context.prepared
    assert (prepared.call_id, prepared.session_id, prepared.caller) == ("7", "s1", "c1")
    assert prepared.arguments == context.arguments == call.arguments


@pytest.mark.parametrize("by_prepared", [True, False])
def test_arguments_are_copied_to_their_depth(by_prepared: bool) -> None:
    call = LayerBench().invocation({"a": {"b": [1]}})
    context = HookContext(call, None)

    shown = context.prepared.arguments if by_prepared else context.arguments
    shown["a"]["b"].append(2)

    assert call.arguments == {"a": {"b": [1]}}


def test_a_copy_is_equal_and_shares_nothing_that_can_change() -> None:
    value: dict[str, Any] = {"list": [{"x": 1}], "text": "t", "none": None}

    found = copied(value)

    assert found == value
    assert found["list"] is not value["list"]
    assert found["list"][0] is not value["list"][0]


def test_what_is_injected_is_kept_with_the_call() -> None:
    call = LayerBench().invocation()
    context = HookContext(call, None)

    context.inject("first")
    context.inject({"role": "user"})

    assert call.beside().messages == ["first", {"role": "user"}]


def test_a_hook_by_itself_lets_everything_go_on() -> None:
    class Half(Hook):
        def before(self, context: HookContext) -> Deny | None:
            return Deny("no")

    hook, context = Half(), HookContext(LayerBench().invocation(), None)

    assert hook.before(context) == Deny("no")
    assert hook.after(context) is None
