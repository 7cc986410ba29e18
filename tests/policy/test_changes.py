"""What a rule says, in its flat form."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from seawall.contract.errors import ConfigurationError
from seawall.contract.policy import PRESETS, BreakerPolicy, RunPolicy
from seawall.policy.changes import (
    LIMITS,
    SECTION_FIELDS,
    Changes,
    Family,
    flattened,
    gives_timeout,
)


def test_single_values_are_kept_as_given() -> None:
    changes = Changes(preset="network", timeout_s=5, rate=None, delays_s=[1, 2])

    assert changes.preset == "network"
    assert changes.values == {"timeout_s": 5, "rate": None, "delays_s": (1, 2)}


@pytest.mark.parametrize(
    ("breaker", "flat"),
    [
        (None, {"breaker": None}),
        (False, {"breaker": None}),
        (True, {"breaker": True}),
        ({"threshold": 3}, {"breaker": True, "breaker.threshold": 3}),
    ],
)
def test_a_breaker_is_taken_away_or_changed(breaker: Any, flat: dict[str, Any]) -> None:
    assert Changes(breaker=breaker).values == flat


def test_a_whole_breaker_gives_all_its_values() -> None:
    values = Changes(breaker=BreakerPolicy(threshold=2)).values

    assert values["breaker.threshold"] == 2
    assert set(values) == {
        "breaker",
        *(f"breaker.{name}" for name in SECTION_FIELDS["breaker"]),
    }


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"timeout": 5}, "timeout: is unknown; did you mean timeout_s?"),
        ({"breaker": {"treshold": 5}}, "breaker.treshold: is unknown; did you mean threshold?"),
        ({"breaker": 5}, "breaker: takes a table of values, or false for none"),
        ({"xyzzy": 5}, "xyzzy: is unknown; known are preset, timeout_s, "),
    ],
)
def test_what_is_unknown_is_refused_with_what_was_meant(
    values: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        Changes(**values)

    assert str(caught.value).startswith(message)


def test_all_that_is_unknown_is_told_at_once() -> None:
    with pytest.raises(ConfigurationError) as caught:
        Changes(timeout=1, rates=2, breaker={"x": 1, "y": 2})

    assert len(caught.value.faults) == 4


def test_equal_changes_are_equal() -> None:
    assert Changes(timeout_s=5) == Changes(timeout_s=5)
    assert Changes(timeout_s=5) != Changes(timeout_s=5, preset="network")
    assert Changes() != object()


def test_changes_show_what_they_say() -> None:
    shown = repr(Changes(preset="network", timeout_s=5, breaker={"threshold": 3}))

    assert "preset='network'" in shown
    assert "timeout_s=5" in shown
    assert "breaker.threshold=3" in shown


@pytest.mark.parametrize("name", PRESETS)
def test_a_flat_policy_has_every_value(name: str) -> None:
    policy = PRESETS[name]
    flat = flattened(policy)

    for field in RunPolicy.__struct_fields__:
        if field != "breaker":
            assert flat[field] == getattr(policy, field)
    parts = {key.partition(".")[2]: value for key, value in flat.items() if "." in key}
    expected = {} if policy.breaker is None else msgspec.structs.asdict(policy.breaker)
    assert parts == expected


def test_only_limits_may_be_left_without_a_value() -> None:
    assert sorted(LIMITS) == sorted(
        [
            "timeout_s",
            "deadline_s",
            "idle_timeout_s",
            "rate",
            "breaker",
            "breaker.failure_rate",
            "breaker.slow_rate",
            "breaker.slow_call_s",
            "breaker.window_s",
            "breaker.shared",
            "fallback",
            "fallback.tool",
            "fallback.text",
            "fallback.structured_content",
            "cache",
            "retry_budget",
            "hedge",
            "hedge.quantile",
            "adaptive_limit",
            "max_concurrency",
            "max_result_bytes",
        ]
    )


def test_one_text_stands_for_a_list_in_a_family() -> None:
    family = Family(match="git_*", tags=["a", "b"])  # type: ignore[arg-type]  # what a user may write

    assert family.match == ("git_*",)
    assert family.tags == ("a", "b")


@pytest.mark.parametrize(
    ("policy", "gives"),
    [
        (Changes(timeout_s=5), True),
        (Changes(timeout_s=None), True),
        (Changes(preset="network"), False),
        (Changes(rate=None), False),
        (RunPolicy(timeout_s=5), True),
        (RunPolicy(), False),
    ],
)
def test_a_timeout_counts_as_given_where_it_is_said_itself(
    policy: RunPolicy | Changes, *, gives: bool
) -> None:
    assert gives_timeout(policy) is gives
