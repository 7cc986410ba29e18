"""Who is calling, what they brought, and what was allowed to them."""

from __future__ import annotations

from typing import Any

import pytest

from seawall.contract.decision import Action
from seawall.contract.errors import ConfigurationError
from seawall.pipeline.session import Permissions, Services, Session, frozen_deeply


def test_a_standing_answer_holds_until_it_is_changed_or_forgotten() -> None:
    permissions = Permissions()
    assert permissions.decision("t") is None

    permissions.allow("t")
    permissions.deny("u", "not today")
    permissions.deny("t")

    found = permissions.snapshot()
    assert {name: answer.action for name, answer in found.items()} == {
        "t": Action.DENY,
        "u": Action.DENY,
    }
    assert found["u"].reason == "not today"
    permissions.reset("t")
    permissions.reset("never there")
    assert permissions.decision("t") is None
    assert permissions.decision("u") is not None
    permissions.reset()
    assert permissions.snapshot() == {}
    assert len(found) == 2, "a snapshot stays as it was"


def test_a_service_is_there_if_it_was_offered_and_only_once() -> None:
    services = Services({"clock": 1})
    services.register("none", None)

    assert services.get("clock") == 1
    assert services.get("none") is None
    assert services.get("other") is None
    with pytest.raises(ConfigurationError, match="'clock' is registered twice"):
        services.register("clock", 2)


def test_state_is_a_copy_that_nobody_can_change_at_any_depth() -> None:
    given: dict[str, Any] = {"a": {"b": [1, {"c": 2}]}, "s": {1, 2}, "t": (1, [2])}
    state = Session(state=given).state

    given["a"]["b"].append("later")

    assert state["a"]["b"] == (1, {"c": 2})
    assert state["t"] == (1, (2,))
    assert state["s"] == frozenset({1, 2})
    changed: Any = state
    for path in (changed, changed["a"], changed["a"]["b"][1]):
        with pytest.raises(TypeError):
            path["new"] = 1
    assert frozen_deeply("text") == "text"


def test_a_session_without_anything_is_empty() -> None:
    session = Session()

    assert (session.id, session.caller, dict(session.state)) == ("", "", {})
    assert session.services.get("x") is None
    assert session.memory == {}


def test_services_may_be_shared_between_sessions() -> None:
    services = Services({"store": object()})

    one, other = Session("1", services=services), Session("2", services={"store": 5})

    assert one.services is services
    assert other.services.get("store") == 5


def test_one_call_may_be_offered_more_while_all_that_is_remembered_is_the_sessions() -> None:
    session = Session("1", caller="ann", state={"a": 1}, services={"store": 5})

    call = session.offering({"run": 7})
    call.permissions.deny("pay")
    call.memory["x"] = 1
    call.recent = "window"

    assert (call.id, call.caller, dict(call.state)) == ("1", "ann", {"a": 1})
    assert (call.services.get("store"), call.services.get("run")) == (5, 7)
    assert session.services.get("run") is None
    assert session.permissions.decision("pay") is not None
    assert (session.memory, session.recent) == ({"x": 1}, "window")


def test_a_service_that_is_there_already_cannot_be_offered_again() -> None:
    with pytest.raises(ConfigurationError, match="registered twice"):
        Session(services={"run": 1}).offering({"run": 2})
