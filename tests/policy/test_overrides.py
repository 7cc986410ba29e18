"""What the environment says over a policy file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from seawall.contract.annotations import Annotations, Risk
from seawall.contract.errors import ConfigurationError
from seawall.contract.tool import Tool
from seawall.policy.model import Policies
from seawall.policy.overrides import is_overridden

if TYPE_CHECKING:
    from pathlib import Path

FILE = """
[presets.network]
rate = "20/minute"
[tools.search]
timeout_s = "9s"
breaker.threshold = 2
"""


async def answer(arguments: dict[str, Any], context: Any) -> str:
    return "done"


def a_tool(name: str) -> Tool:
    return Tool(name, "", {}, answer, annotations=Annotations.for_reading(open_world=True))


def load(folder: Path, text: str = FILE, **environment: str) -> Policies:
    path = folder / "x.toml"
    path.write_text(text)
    said = {f"SEAWALL_POLICY__{name}": value for name, value in environment.items()}
    return Policies.load(path, environment={"PATH": "/bin", **said})


@pytest.mark.parametrize(
    ("name", "value", "key", "expected"),
    [
        ("TOOLS__search__TIMEOUT_S", "5s", "timeout_s", 5),
        ("tools__search__timeout_s", "5s", "timeout_s", 5),
        ("TOOLS__search__TIMEOUT_S", "2.5", "timeout_s", 2.5),
        ("TOOLS__search__TIMEOUT_S", '"5s"', "timeout_s", 5),
        ("TOOLS__search__TIMEOUT_S", "false", "timeout_s", None),
        ("TOOLS__search__DELAYS_S", '["1s", 2]', "delays_s", (1, 2)),
        ("TOOLS__search__BREAKER__THRESHOLD", "7", "breaker.threshold", 7),
        ("TOOLS__search__BREAKER", "false", "breaker", None),
        ("PRESETS__network__RATE", "3/minute", "rate", "3/minute"),
        ("FAMILIES__all__MATCH", "*", "rate", "20/minute"),
    ],
)
def test_a_value_of_the_environment_counts_over_the_file(
    tmp_path: Path, name: str, value: str, key: str, expected: object
) -> None:
    found = load(tmp_path, **{name: value}).explain(a_tool("search"))

    assert found[key].value == expected


def test_other_values_of_the_same_section_stay(tmp_path: Path) -> None:
    found = load(tmp_path, TOOLS__search__TIMEOUT_S="5s").explain(a_tool("search"))

    assert found["breaker.threshold"].value == 2


def test_explain_names_the_variable_as_the_rule(tmp_path: Path) -> None:
    found = load(tmp_path, TOOLS__search__TIMEOUT_S="5s").explain(a_tool("search"))

    assert found["timeout_s"].rule == "tools.search (SEAWALL_POLICY__TOOLS__search__TIMEOUT_S)"
    assert found["breaker.threshold"].rule.endswith("x.toml:6)")


def test_a_name_with_two_underscores_is_one_name(tmp_path: Path) -> None:
    policies = load(tmp_path, TOOLS__github__find__BREAKER__THRESHOLD="3")

    assert policies.explain(a_tool("github__find"))["breaker.threshold"].value == 3


def test_the_risk_may_be_said(tmp_path: Path) -> None:
    assert load(tmp_path, RISK__ASK_FROM="low").risk.ask_from is Risk.LOW


def test_a_whole_section_may_be_switched_off(tmp_path: Path) -> None:
    assert load(tmp_path, LOOP="false").loop is None


def test_a_default_of_the_file_may_be_changed(tmp_path: Path) -> None:
    policies = load(tmp_path, "[default]\ntimeout_s = 3", DEFAULT__TIMEOUT_S="4s")

    assert policies.for_tool(a_tool("x")).timeout_s == 4


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("TOLS__search__RATE", "1/minute", "section 'tols' is unknown; did you mean tools?"),
        ("TOOLS__search__TIMEOUT", "5s", "tools.search.timeout: is unknown; did you mean"),
        ("TOOLS__search__TIMEOUT_S", "5 parsecs", "it takes a number of seconds"),
        ("TOOLS__search__TIMEOUT_S", "0", "must be above 0"),
        ("TOOLS__search", "5s", "names no value"),
        ("EXTENDS", "strict", "section 'extends' is unknown"),
        ("RISK", "low", "names no value"),
        ("DEFAULT__TIMEOUT_S", "5s", "the policy has no [default]"),
        ("TOOLS__search__RATE", "often", "give one rate"),
    ],
)
def test_what_cannot_be_is_refused_and_names_the_variable(
    tmp_path: Path, name: str, value: str, said: str
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load(tmp_path, **{name: value})

    (fault,) = caught.value.faults
    assert str(fault).startswith(f"SEAWALL_POLICY__{name}: ")
    assert said in str(fault)


@pytest.mark.parametrize(
    "more",
    [
        {"TOOLS__search__RATE": "1/minute", "tools__search__rate": "2/minute"},
        {"TOOLS__search__BREAKER": "false", "TOOLS__search__BREAKER__THRESHOLD": "3"},
    ],
)
def test_two_variables_that_contradict_each_other_are_refused(
    tmp_path: Path, more: dict[str, str]
) -> None:
    with pytest.raises(ConfigurationError, match=r"twice|as a whole"):
        load(tmp_path, **more)


def test_faults_of_the_file_are_told_too(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load(tmp_path, "[tools.a]\nrat = 1", TOOLS__a__COST="x")

    assert len(caught.value.faults) == 2


def test_without_such_variables_nothing_is_overridden() -> None:
    assert not is_overridden({"SEAWALL_TOKEN": "x"})
    assert is_overridden({"seawall_policy__risk__ask_from": "low"})
