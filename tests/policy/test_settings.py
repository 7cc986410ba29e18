"""Who is asked, and how much is traced."""

from __future__ import annotations

from typing import Any

import pytest

from seawall.contract.annotations import Risk
from seawall.contract.errors import ConfigurationError
from seawall.policy.settings import RiskSettings, TraceSettings


def test_without_a_word_high_risk_is_asked_for() -> None:
    assert RiskSettings().ask_from is Risk.HIGH
    assert not RiskSettings().default_deny


@pytest.mark.parametrize("allow", [(), ("a",)])
def test_an_allow_list_refuses_the_rest_even_if_it_is_empty(allow: tuple[str, ...]) -> None:
    assert RiskSettings(allow=allow).default_deny


@pytest.mark.parametrize("lists", [{"ask": ("a",)}, {"deny": ("a",)}])
def test_lists_without_an_allow_list_are_refused(lists: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match="needs `allow` beside it") as caught:
        RiskSettings(**lists)

    assert [fault.key for fault in caught.value.faults] == list(lists)


@pytest.mark.parametrize(
    "lists",
    [
        {"allow": ("a",), "ask": ("a",)},
        {"allow": ("a",), "deny": ("a",)},
        {"allow": (), "ask": ("a",), "deny": ("a",)},
        {"allow": ("a_*",), "deny": ("a_b",)},
    ],
)
def test_a_tool_in_two_lists_is_refused(lists: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        RiskSettings(**lists)


@pytest.mark.parametrize("capacity", [-1, 1_000_001])
def test_a_trace_keeps_no_negative_and_no_boundless_number_of_spans(capacity: int) -> None:
    with pytest.raises(ConfigurationError, match="must be from 0 to 1,000,000"):
        TraceSettings(capacity=capacity)


@pytest.mark.parametrize("capacity", [None, 0, 1_000_000])
def test_a_trace_may_keep_nothing_or_much(capacity: int | None) -> None:
    assert TraceSettings(capacity=capacity).capacity == capacity
