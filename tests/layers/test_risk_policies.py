"""Which calls are allowed, asked about or denied."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seawall.contract.annotations import Annotations, Risk
from seawall.contract.decision import Action, Prepared
from seawall.contract.errors import ConfigurationError
from seawall.layers.risk_policies import AllowlistPolicy, CallPolicy, RiskPolicy
from seawall.testing import scripted


def decided(policy: CallPolicy, name: str = "tool", **fields: Any) -> Action:
    decision = policy.decide(Prepared(tool=scripted(name=name, **fields), arguments={}))
    assert decision.reason.strip()
    return decision.action


@pytest.mark.parametrize(
    ("policy", "low", "medium", "high"),
    [
        (RiskPolicy(), Action.ALLOW, Action.ALLOW, Action.ASK),
        (RiskPolicy(strict=True), Action.ALLOW, Action.ASK, Action.ASK),
        (RiskPolicy(Risk.MEDIUM), Action.ALLOW, Action.ASK, Action.ASK),
        (RiskPolicy(Risk.LOW), Action.ASK, Action.ASK, Action.ASK),
        (RiskPolicy(Risk.LOW, strict=True), Action.ASK, Action.ASK, Action.ASK),
    ],
)
def test_a_risk_policy_asks_from_its_risk_on(
    policy: RiskPolicy, low: Action, medium: Action, high: Action
) -> None:
    assert decided(policy, risk=Risk.LOW) is low
    assert decided(policy, risk=Risk.MEDIUM) is medium
    assert decided(policy, risk=Risk.HIGH) is high


def test_a_risk_policy_takes_the_risk_that_the_hints_mean() -> None:
    assert decided(RiskPolicy(), annotations=Annotations.for_destroying()) is Action.ASK
    assert decided(RiskPolicy(), annotations=Annotations.for_reading()) is Action.ALLOW
    private = Annotations(read_only=True, sensitive=True)
    assert decided(RiskPolicy(strict=True), annotations=private) is Action.ASK


def test_a_risk_policy_takes_a_risk_and_nothing_else() -> None:
    with pytest.raises(ConfigurationError, match="ask_from: must be a Risk, not 'high'"):
        RiskPolicy("high")  # type: ignore[arg-type]  # the mistake under test


def test_what_no_list_names_is_denied() -> None:
    policy = AllowlistPolicy(allow=["read"], ask=["write"], deny=["format"])

    assert decided(policy, "read") is Action.ALLOW
    assert decided(policy, "write") is Action.ASK
    assert decided(policy, "format") is Action.DENY
    assert decided(policy, "other") is Action.DENY
    assert decided(AllowlistPolicy(), "read") is Action.DENY


def test_letters_count_as_they_are_written() -> None:
    policy = AllowlistPolicy(allow=["read", "fs_*"])

    assert decided(policy, "READ") is Action.DENY
    assert decided(policy, "FS_read") is Action.DENY


@pytest.mark.parametrize(
    ("pattern", "name", "matches"),
    [
        ("fs_*", "fs_read", True),
        ("fs_*", "my_fs_read", False),
        ("fs_?", "fs_1", True),
        ("fs_?", "fs_12", False),
        ("fs_[rw]", "fs_w", True),
        ("fs_[!rw]", "fs_w", False),
        ("*", "anything\nat all", True),
        ("fs.read*", "fs-read", False),
    ],
)
def test_a_pattern_matches_the_whole_name(pattern: str, name: str, *, matches: bool) -> None:
    action = decided(AllowlistPolicy(allow=[pattern]), name)

    assert (action is Action.ALLOW) is matches


@pytest.mark.parametrize(
    ("lists", "said"),
    [
        ({"allow": ["a"], "ask": ["a"]}, "allow: has 'a', and so has ask too"),
        ({"ask": ["a"], "deny": ["a"]}, "ask: has 'a', and so has deny too"),
        ({"allow": ["a*"], "deny": ["a*"]}, "allow: has 'a*', and so has deny"),
        ({"allow": ["fs_*"], "deny": ["fs_rm"]}, "deny: has 'fs_rm', and so has allow as 'fs_*'"),
        ({"deny": ["fs_*"], "allow": ["fs_rm"]}, "allow: has 'fs_rm', and so has deny as 'fs_*'"),
        ({"allow": "read"}, "allow: must be a list of names, not the text 'read'"),
        ({"ask": ["read", " "]}, "ask: has an entry that is blank"),
        ({"ask": [7]}, "ask: has an entry that is blank, padded, or no text"),
        ({"deny": ["x"] * 10_001}, "deny: has 10001 entries"),
    ],
)
def test_lists_that_contradict_each_other_are_refused(lists: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigurationError) as error:
        AllowlistPolicy(**lists)

    assert len(error.value.faults) == 1
    assert said in str(error.value)


def test_all_faults_of_the_lists_are_told_at_once() -> None:
    with pytest.raises(ConfigurationError) as error:
        AllowlistPolicy(allow=["a", "b*", ""], ask=["a", "b1"], deny=["b*"])

    assert len(error.value.faults) == 5


def test_a_name_twice_in_one_list_is_no_contradiction() -> None:
    policy = AllowlistPolicy(allow=["fs_read", "fs_*", "fs_read", "*_read"])

    assert decided(policy, "fs_read") is Action.ALLOW


def test_a_tool_that_patterns_of_two_lists_match_is_denied_and_told() -> None:
    policy = AllowlistPolicy(allow=["fs_*"], ask=["*_write"])

    assert decided(policy, "fs_read") is Action.ALLOW
    assert decided(policy, "db_write") is Action.ASK
    assert decided(policy, "fs_write") is Action.DENY
    (fault,) = policy.faults(["fs_read", "fs_write", "db_write"])
    assert fault.key == "fs_write"
    assert "allow: 'fs_*', ask: '*_write'" in fault.message


NAMES = st.text("ab_", min_size=1, max_size=4)
LISTS = st.lists(NAMES | st.sampled_from(["a*", "*b", "?", "*"]), max_size=4)


@given(allow=LISTS, ask=LISTS, deny=LISTS, name=NAMES)
def test_only_what_exactly_one_list_has_is_more_than_denied(
    allow: list[str], ask: list[str], deny: list[str], name: str
) -> None:
    try:
        policy = AllowlistPolicy(allow, ask, deny)
    except ConfigurationError:
        return
    alone = {
        Action.ALLOW: AllowlistPolicy(allow=allow),
        Action.ASK: AllowlistPolicy(allow=ask),
        Action.DENY: AllowlistPolicy(allow=deny),
    }
    having = [action for action, one in alone.items() if decided(one, name) is Action.ALLOW]

    assert decided(policy, name) is (having[0] if len(having) == 1 else Action.DENY)
    assert bool(policy.faults([name])) is (len(having) > 1)
