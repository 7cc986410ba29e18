"""What a pipeline is given by mistake is told where it is given, and names what was meant."""

from __future__ import annotations

from typing import Any

import pytest

from seawall import ConfigurationError, LoopPolicy, Pipeline, RunPolicy, Session, ToolCall
from seawall.orchestration.given import check_given
from seawall.testing import scripted


def pipeline(**options: Any) -> Pipeline:
    return Pipeline([scripted("x", name="t")], **options)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"policies": "strict"}, "policies: must be Policies, not 'strict'; a file is read by "),
        ({"policies": RunPolicy()}, "policies: must be Policies, not a RunPolicy"),
        ({"layers": "retry"}, "layers: must be a list of layers, not 'retry'"),
        ({"layers": 5}, "layers: must be a list of layers, not 5"),
        ({"hooks": object()}, "hooks: must be a list of hooks, not a object"),
        ({"clock": 5}, "clock: must be a Clock, not 5"),
        ({"chance": 5}, "chance: must be a Chance, not 5"),
        ({"trace": 50}, "trace: must be a TraceRecorder, not 50"),
        ({"usage": {}}, "usage: must be a UsageTracker, not a dict"),
        ({"metrics": True}, "metrics: must be Metrics, not True"),
        ({"loop": True}, "loop: must be a LoopPolicy, or None for no detector, not True"),
        ({"recorders": [5]}, "recorders[0]: 5 is not a recorder"),
        ({"recorders": 5}, "recorders: must be a list, not 5"),
        ({"digest_key": "secret"}, "digest_key: must be bytes, not a str"),
        ({"on_progress": 3}, "on_progress: must be a plain function"),
        ({"on_defect": "Raise"}, "on_defect: must be result or raise, not 'Raise'"),
        ({"environment": {}}, "environment: must be an Environment, not a dict"),
    ],
)
def test_a_part_of_the_wrong_kind_is_told_by_name(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        pipeline(**options)

    assert str(raised.value).startswith(said)
    assert "secret" not in str(raised.value)


def test_all_wrong_parts_are_told_together() -> None:
    with pytest.raises(ConfigurationError) as raised:
        check_given(5, [5], clock=5, on_defect=None)

    assert [fault.key for fault in raised.value.faults] == [
        "policies",
        "recorders[0]",
        "clock",
        "on_defect",
    ]


@pytest.mark.parametrize("key", ["threshold", "window", "pause_s", "judge_after", "judge_within_s"])
def test_a_loop_policy_takes_numbers(key: str) -> None:
    wrong: dict[str, Any] = {key: "3"}

    with pytest.raises(ConfigurationError, match=key):
        LoopPolicy(**wrong)


def test_new_policies_are_policies() -> None:
    with pytest.raises(ConfigurationError, match="must be Policies"):
        pipeline().replace_policies("strict")  # type: ignore[arg-type]  # what is tested


async def test_a_session_is_no_text() -> None:
    made, wrong = pipeline(), "abc"
    options: dict[str, Any] = {"session": wrong}

    for work in (
        lambda: made.call("t", **options),
        lambda: made.turn([("t", {})], **options),
    ):
        with pytest.raises(TypeError, match=r"session must be a Session, .* Session\('abc'\)"):
            await work()
    with pytest.raises(TypeError, match="session must be a Session"):
        made.prepare("t", **options)


async def test_a_session_may_be_of_a_kind_of_its_own() -> None:
    class Own(Session):
        pass

    assert (await pipeline().call("t", session=Own("a"))).text == "x"


@pytest.mark.parametrize("name", ["timeout_s", "deadline_s"])
@pytest.mark.parametrize(
    ("seconds", "kind"), [("2s", TypeError), (True, TypeError), (0, ValueError), (-1, ValueError)]
)
async def test_limits_of_a_call_are_seconds(name: str, seconds: Any, kind: type[Exception]) -> None:
    limit: dict[str, Any] = {name: seconds}

    with pytest.raises(kind, match=name):
        await pipeline().call("t", **limit)


@pytest.mark.parametrize(
    ("calls", "said"),
    [
        ([ToolCall("call-1", "t", {})], "name, arguments and id, in this order; not of str, str, "),  # type: ignore[arg-type]  # what is tested
        ([ToolCall({}, "t")], "in this order; not of dict, str, NoneType"),  # type: ignore[arg-type]  # what is tested
        ("t", "calls must be a list of calls; a single str is none"),
        ({"name": "t"}, "a single dict is none"),
        (ToolCall("t", {}), "a single ToolCall is none"),
    ],
)
async def test_calls_of_a_turn_are_a_list_of_calls(calls: Any, said: str) -> None:
    with pytest.raises(TypeError, match=said):
        await pipeline().turn(calls)


async def test_a_listener_of_a_turn_is_a_function() -> None:
    with pytest.raises(TypeError, match="on_event must be a function"):
        await pipeline().turn([("t", {})], on_event=5)  # type: ignore[arg-type]  # what is tested
