"""What the arguments of a call decide; in doubt, the stricter answer."""

from __future__ import annotations

from typing import Any

import pytest

from seawall import (
    Action,
    AllowlistPolicy,
    Annotations,
    ConfigurationError,
    Decision,
    Pipeline,
    Prepared,
    Risk,
    RiskPolicy,
    Tool,
)
from seawall.layers.risk_rules import MAX_RULES, MAX_VALUES, ArgumentRule, RuledPolicy
from seawall.testing import scripted

ALLOW, ASK, DENY = Action.ALLOW, Action.ASK, Action.DENY


def tool(risk: Risk = Risk.HIGH, **fields: Any) -> Tool:
    return scripted("done", name="write_file", risk=risk, **fields)


def rule(decide: Action, otherwise: Action | None = None, **fields: Any) -> ArgumentRule:
    given = {"tool": "write_*", "argument": "/path", **fields}
    return ArgumentRule(decide=decide, otherwise=otherwise, **given)


def decided(
    rules: list[ArgumentRule], arguments: Any, risk: Risk = Risk.HIGH, base: Any = None
) -> Decision:
    policy = RuledPolicy(base or RiskPolicy(), rules)
    return policy.decide(Prepared(tool=tool(risk), arguments=arguments))


SRV: dict[str, Any] = {"under": ("/srv",)}


@pytest.mark.parametrize(
    ("decide", "otherwise", "risk", "inside", "outside", "unclear"),
    [
        (ALLOW, None, Risk.HIGH, ALLOW, ASK, ASK),
        (ALLOW, None, Risk.LOW, ALLOW, ALLOW, ALLOW),
        (ALLOW, ASK, Risk.LOW, ALLOW, ASK, ASK),
        (ALLOW, DENY, Risk.LOW, ALLOW, DENY, DENY),
        (ASK, None, Risk.LOW, ASK, ALLOW, ASK),
        (ASK, ALLOW, Risk.HIGH, ASK, ALLOW, ASK),
        (ASK, DENY, Risk.LOW, ASK, DENY, DENY),
        (DENY, None, Risk.LOW, DENY, ALLOW, DENY),
        (DENY, None, Risk.HIGH, DENY, ASK, DENY),
        (DENY, ALLOW, Risk.HIGH, DENY, ALLOW, DENY),
    ],
)
def test_a_rule_says_one_thing_inside_one_outside_and_the_stricter_in_doubt(
    decide: Action,
    otherwise: Action | None,
    risk: Risk,
    inside: Action,
    outside: Action,
    unclear: Action,
) -> None:
    rules = [rule(decide, otherwise, **SRV)]

    def said(path: Any) -> Action:
        return decided(rules, {"path": path}, risk).action

    assert (said("/srv/a"), said("/etc/a")) == (inside, outside)
    assert {said(odd) for odd in ("/srv/../etc/a", "srv/a", 7)} == {unclear}
    assert decided(rules, {}, risk).action is unclear


def test_of_several_rules_the_strictest_counts() -> None:
    rules = [rule(ALLOW, **SRV), rule(DENY, under=("/srv/secret",))]

    assert decided(rules, {"path": "/srv/a"}).action is ALLOW
    assert decided(rules, {"path": "/srv/secret/a"}).action is DENY


def test_no_rule_lifts_a_denial() -> None:
    base = AllowlistPolicy(allow=["other"])

    assert decided([rule(ALLOW, **SRV)], {"path": "/srv/a"}, base=base).action is DENY


@pytest.mark.parametrize(
    ("bounds", "amount", "action"),
    [
        ({"above": 100}, 100, ALLOW),
        ({"above": 100}, 100.01, ASK),
        ({"above": 100}, 10**30, ASK),
        ({"above": "0.1"}, 0.1, ALLOW),
        ({"at_least": 0.3}, 0.1 + 0.2, ASK),
        ({"at_least": "0.30000000000000005"}, 0.1 + 0.2, ALLOW),
        ({"below": 0}, -1, ASK),
        ({"below": 0}, 0, ALLOW),
        ({"at_most": 5, "at_least": 3}, 4, ASK),
        ({"at_most": 5, "at_least": 3}, 6, ALLOW),
        ({"above": 100}, "100.01", ASK),
        ({"above": 100}, "1e1", ASK),
        ({"above": 100}, True, ASK),
        ({"above": 100}, None, ASK),
    ],
)
def test_amounts_are_compared_exactly(bounds: Any, amount: Any, action: Action) -> None:
    rules = [rule(ASK, argument="/amount", **bounds)]

    assert decided(rules, {"amount": amount}, Risk.LOW).action is action


@pytest.mark.parametrize(
    ("condition", "value", "action"),
    [
        ({"equals": ("prod", 1)}, "prod", DENY),
        ({"equals": ("prod", 1)}, 1.0, DENY),
        ({"equals": ("prod", 1)}, True, ALLOW),
        ({"equals": (True,)}, 1, ALLOW),
        ({"equals": ("prod",)}, "Prod", ALLOW),
        ({"matches": ("prod-*",)}, "prod-7", DENY),
        ({"matches": ("prod-*",)}, "test", ALLOW),
        ({"matches": ("prod-*",)}, 7, DENY),
    ],
)
def test_values_and_patterns(condition: Any, value: Any, action: Action) -> None:
    rules = [rule(DENY, argument="/where", **condition)]

    assert decided(rules, {"where": value}, Risk.LOW).action is action


@pytest.mark.parametrize(
    ("paths", "loosened", "tightened"),
    [
        (["/srv/a", "/srv/b"], ALLOW, DENY),
        (["/srv/a", "/etc/b"], ASK, DENY),
        (["/etc/a"], ASK, ASK),
        (["/srv/a", "odd"], ASK, DENY),
        (["/etc/a", "odd"], ASK, DENY),
        ([], ASK, DENY),
        ("/srv/a", ASK, DENY),
    ],
)
def test_of_many_values_all_have_to_fit_to_loosen_and_one_is_enough_to_tighten(
    paths: Any, loosened: Action, tightened: Action
) -> None:
    many: dict[str, Any] = {"argument": "/paths/*", **SRV}

    assert decided([rule(ALLOW, **many)], {"paths": paths}).action is loosened
    assert decided([rule(DENY, **many)], {"paths": paths}).action is tightened


def test_more_values_than_are_looked_at_are_in_doubt() -> None:
    many: dict[str, Any] = {"argument": "/paths/*", **SRV}
    paths = ["/srv/a"] * (MAX_VALUES + 1)

    assert decided([rule(ALLOW, **many)], {"paths": paths}).action is ASK


@pytest.mark.parametrize(
    ("pointer", "arguments"),
    [
        ("/a/0/b~1c", {"a": [{"b/c": "/srv/x"}]}),
        ("/a/*/p", {"a": {"x": {"p": "/srv/x"}, "y": {"p": "/srv/y"}}}),
        ("/~0", {"~": "/srv/x"}),
    ],
)
def test_a_pointer_leads_into_arguments(pointer: str, arguments: Any) -> None:
    assert decided([rule(ALLOW, argument=pointer, **SRV)], arguments).action is ALLOW


@pytest.mark.parametrize(
    "arguments",
    [
        {"path": "/srv/a", "Path": "/etc/b"},
        {"PATH": "/etc/b", "path": "/srv/a"},
    ],
)
def test_an_argument_that_is_there_twice_but_for_its_case_is_in_doubt(arguments: Any) -> None:
    inside = rule(ALLOW, DENY, argument="/path", under=("/srv",))

    assert decided([inside], arguments).action is DENY
    assert decided([inside], {"path": "/srv/a", "pat": "/etc/b"}).action is ALLOW


def test_whoever_is_asked_reads_why() -> None:
    named = rule(ASK, reason="large payments", place="x.toml:3", **SRV)

    assert decided([named], {"path": "/srv/a"}).reason == "large payments (x.toml:3)"
    assert "cannot be told for sure" in decided([named], {"path": "a"}).reason
    assert decided([rule(DENY, **SRV)], {"path": "/srv/a"}).reason == "deny if /path is under /srv"


def test_no_reason_repeats_what_an_argument_was() -> None:
    secret = "/srv/planted-secret"

    assert "planted" not in decided([rule(ASK, **SRV)], {"path": secret}).reason


@pytest.mark.parametrize(
    ("risks", "fields", "risk"),
    [
        ({}, {}, Risk.HIGH),
        ({"write_file": Risk.LOW}, {}, Risk.LOW),
        ({"write_*": Risk.LOW, "write_f*": Risk.MEDIUM}, {}, Risk.MEDIUM),
        ({"*": Risk.LOW, "write_file": Risk.MEDIUM}, {}, Risk.MEDIUM),
        ({"other": Risk.LOW}, {}, Risk.HIGH),
        ({"write_file": Risk.LOW}, {"annotations": Annotations(sensitive=True)}, Risk.MEDIUM),
    ],
)
def test_an_operator_says_the_risk_of_a_tool(risks: Any, fields: Any, risk: Risk) -> None:
    policy = RuledPolicy(RiskPolicy(), risks=risks)
    made = tool(**fields)

    assert policy.risk_of(made) is risk
    assert policy.for_tool(made) == RiskPolicy().for_tool(made, risk)


def test_lists_ask_about_what_they_allow_from_a_risk_on() -> None:
    base = AllowlistPolicy(allow=["write_file"], ask_from=Risk.HIGH)

    assert [base.for_tool(tool(risk)).action for risk in Risk] == [ALLOW, ALLOW, ASK]
    ruled = RuledPolicy(base, risks={"write_file": Risk.LOW})
    known = ruled.for_tool(tool(Risk.HIGH))
    assert known is not None
    assert known.action is ALLOW


async def test_a_pipeline_refuses_by_a_rule_and_runs_what_it_lets_through() -> None:
    policy = RuledPolicy(RiskPolicy(), [rule(ALLOW, DENY, **SRV)])
    pipeline = Pipeline([tool()], risk=policy)

    inside = await pipeline.call("write_file", {"path": "/srv/a"})
    outside = await pipeline.call("write_file", {"path": "/srv/../etc/passwd"})

    assert inside.text == "done"
    assert outside.failure is not None
    assert outside.failure.reason == "denied_by_policy"


@pytest.mark.parametrize(
    ("fields", "key"),
    [
        ({"tool": " "}, "tool"),
        ({"argument": "path"}, "argument"),
        ({"argument": "/"}, "argument"),
        ({"under": ()}, "argument"),
        ({"above": 1}, "argument"),
        ({"otherwise": ALLOW}, "otherwise"),
        ({"under": ("srv",)}, "under"),
    ],
)
def test_a_rule_that_cannot_work_is_told(fields: Any, key: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        ArgumentRule(**{"tool": "t", "argument": "/p", "decide": ALLOW, **SRV, **fields})

    assert key in [fault.key for fault in caught.value.faults]


def test_more_rules_than_anybody_writes_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="are enough"):
        RuledPolicy(RiskPolicy(), [rule(ALLOW, **SRV)] * (MAX_RULES + 1))
