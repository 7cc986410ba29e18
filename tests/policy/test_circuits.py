"""Tools that share a circuit agree on its numbers, or are refused."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from seawall import BreakerPolicy, Changes, ConfigurationError, Pipeline, Policies, RunPolicy
from seawall.testing import scripted

if TYPE_CHECKING:
    from pathlib import Path


def sharing(**breaker: object) -> Changes:
    return Changes(breaker={"shared": "warehouse", **breaker})


TOOLS = [scripted("one", name="stock"), scripted("two", name="order")]


def test_tools_that_share_a_circuit_with_other_numbers_are_refused_with_both_rules(
    tmp_path: Path,
) -> None:
    path = tmp_path / "shop.toml"
    path.write_text("""
[tools."*".breaker]
shared = "warehouse"
threshold = 3
[tools.order.breaker]
threshold = 5
""")

    with pytest.raises(ConfigurationError) as caught:
        Pipeline(TOOLS, policies=Policies.load(path))

    said = str(caught.value)
    assert "order.breaker.threshold: is 5 by tools.order" in said
    assert re.search(r"shop\.toml:6\), but 3 for stock by .*shop\.toml:4\)", said)
    assert "'warehouse' need the same" in said


@pytest.mark.parametrize(
    "own", [{"ignore": ["KeyError"]}, {"mode": "shadow"}, {"slow_call_s": 2}, {"threshold": 5}]
)
def test_what_is_a_tools_own_may_differ(own: dict[str, object]) -> None:
    policies = Policies(tools={"stock": sharing(), "order": sharing(**own)})

    assert Pipeline(TOOLS, policies=policies).breakers.snapshot() == {
        "stock": "closed",
        "order": "closed",
    }


def test_new_policies_may_change_the_numbers_of_all_at_once() -> None:
    pipeline = Pipeline(TOOLS, policies=Policies(tools={"*": sharing(threshold=2)}))

    pipeline.replace_policies(Policies(tools={"*": sharing(threshold=9)}))

    with pytest.raises(ConfigurationError):
        pipeline.replace_policies(
            Policies(tools={"stock": sharing(threshold=9), "order": sharing(threshold=2)})
        )
    policy = pipeline.policy_of("order")
    assert policy.breaker == BreakerPolicy(shared="warehouse", threshold=9)


def test_a_tool_that_is_gone_has_no_say() -> None:
    policies = Policies(tools={"stock": sharing(threshold=1), "order": sharing(threshold=2)})
    pipeline = Pipeline([TOOLS[0]], policies=policies)
    with pytest.raises(ConfigurationError):
        pipeline.registry.register(TOOLS[1])

    pipeline.registry.unregister("stock")
    pipeline.registry.register(TOOLS[1])

    assert pipeline.registry.names() == ("order",)


def test_a_tool_that_is_replaced_is_compared_with_the_others_alone() -> None:
    pipeline = Pipeline(TOOLS, policies=Policies(RunPolicy(breaker=BreakerPolicy(shared="all"))))

    pipeline.registry.register(scripted("new", name="order"), on_duplicate="replace")

    assert pipeline.breakers.state("order") == "closed"
