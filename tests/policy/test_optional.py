"""Optional layers in policy files: read with their units, explained, refused with their line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from seawall import (
    AdaptiveLimitPolicy,
    Annotations,
    BreakerPolicy,
    CachePolicy,
    Changes,
    ConfigurationError,
    FallbackPolicy,
    HedgePolicy,
    Policies,
    RetryBudgetPolicy,
    RunPolicy,
)
from seawall.contract.policy import SECTIONS
from seawall.testing import scripted

if TYPE_CHECKING:
    from pathlib import Path

READING = scripted("x", name="look", annotations=Annotations.for_reading())

FILE = """
[tools.look]
retry_budget = { share = "30%", min_retries = 1, window_s = "2m" }
adaptive_limit.max_limit = 40

[tools.look.breaker]
failure_rate = "50%"
slow_rate = 0.8
slow_call_s = "500ms"
window_s = "1m"
honour_retry_after = true

[tools.look.fallback]
structured_content = { known = false }
on = "timeout"
tell = false

[tools.look.cache]
ttl_s = "5m"
max_bytes = "1MiB"
scope = "caller"

[tools.look.hedge]
quantile = "95%"
max_extra = 2
"""


def load(tmp_path: Path, text: str) -> Policies:
    path = tmp_path / "shop.toml"
    path.write_text(text)
    return Policies.load(path)


def test_a_file_may_set_every_optional_layer(tmp_path: Path) -> None:
    policy = load(tmp_path, FILE).for_tool(READING)

    assert policy.retry_budget == RetryBudgetPolicy(share=0.3, min_retries=1, window_s=120)
    assert policy.adaptive_limit == AdaptiveLimitPolicy(max_limit=40)
    assert policy.breaker == BreakerPolicy(
        failure_rate=0.5, slow_rate=0.8, slow_call_s=0.5, window_s=60, honour_retry_after=True
    )
    assert policy.fallback == FallbackPolicy(
        structured_content={"known": False}, on=("timeout",), tell=False
    )
    assert policy.cache == CachePolicy(ttl_s=300, max_bytes=1024**2, scope="caller")
    assert policy.hedge == HedgePolicy(quantile=0.95, max_extra=2)


def test_every_value_is_explained_by_its_line(tmp_path: Path) -> None:
    table = load(tmp_path, FILE).explain(READING)

    assert table["cache.ttl_s"].value == 300
    assert table["cache.ttl_s"].rule.endswith("shop.toml:19)")
    assert table["hedge.delay_s"].value == 2.0
    assert table["adaptive_limit.max_limit"].rule.endswith("shop.toml:4)")


def test_all_optional_layers_are_off_until_somebody_asks() -> None:
    policy = Policies.default().for_tool(READING)

    assert [name for name in SECTIONS if getattr(policy, name) is not None] == ["breaker"]


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("cache.ttl_s = 0", "shop.toml:3:7: tools.look.cache.ttl_s: must be above 0"),
        ('cache.scope = "us"', "shop.toml:3:7: tools.look.cache.scope: is 'us'; use one of"),
        ("cache.tll_s = 5", "tools.look.cache.tll_s: is unknown; did you mean ttl_s?"),
        ("cache = 5", "shop.toml:3:1: tools.look.cache: is 5; it takes a table"),
        ('hedge.quantile = "p95"', "tools.look.hedge.quantile: is 'p95'; it takes a share"),
        ("hedge.quantile = 95", "tools.look.hedge.quantile: must be above 0 and at most 1"),
        ("hedge.max_extra = 99", "tools.look.hedge.max_extra: must be at most 10"),
        ('retry_budget.share = "200%"', "tools.look.retry_budget.share: must be above 0 and at"),
        ('fallback.on = ["approval_denied"]', "must not name 'approval_denied'"),
        ('fallback.text = ""', "tools.look.fallback.text: is ''; it takes a text"),
        ("fallback.structured_content = 5", "structured_content: is 5; it takes a table"),
        ("breaker.slow_rate = 1.5", "tools.look.breaker.slow_rate: must be above 0 and at most 1"),
        ("adaptive_limit.min_limit = 0", "tools.look.adaptive_limit.min_limit: must be at least 1"),
        ('adaptive_limit.mode = "x"', "adaptive_limit.mode: is 'x'; use one of on, shadow, off"),
    ],
)
def test_what_cannot_be_is_refused_with_its_line(tmp_path: Path, lines: str, said: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load(tmp_path, f"\n[tools.look]\n{lines}\n")

    assert said in str(caught.value)
    assert "shop.toml:3" in str(caught.value)


def test_rules_may_complete_each_other() -> None:
    policies = Policies(
        families={"readers": Changes(fallback={"tool": "other"}, breaker={"slow_call_s": 2})},
        tools={
            "look": Changes(fallback={"on": ["timeout"]}, breaker={"slow_rate": 0.5}),
        },
    )
    tool = scripted("x", name="look", family="readers")

    policy = policies.for_tool(tool)

    assert policy.fallback == FallbackPolicy(tool="other", on=("timeout",))
    assert policy.breaker is not None
    assert (policy.breaker.slow_rate, policy.breaker.slow_call_s) == (0.5, 2)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"fallback": {"on": ["timeout"]}}, "give either a tool, or a fixed text"),
        ({"breaker": {"slow_rate": 0.5}}, "needs slow_call_s, beyond which a call is slow"),
        ({"adaptive_limit": {"initial": 300}}, "must be from 1 to 200"),
    ],
)
def test_what_no_rule_completes_is_refused_with_the_rules(
    changes: dict[str, Any], said: str
) -> None:
    policies = Policies(tools={"look": Changes(**changes)})

    with pytest.raises(ConfigurationError) as caught:
        policies.for_tool(READING)

    assert said in str(caught.value)
    assert "tools.look" in str(caught.value)


def test_false_takes_a_layer_away(tmp_path: Path) -> None:
    policies = load(tmp_path, '[tools."*".cache]\nttl_s = 5\n[tools.look]\ncache = false\n')

    assert policies.for_tool(READING).cache is None
    assert policies.for_tool(scripted("x", name="other")).cache == CachePolicy(ttl_s=5)


def test_true_is_a_layer_with_its_defaults(tmp_path: Path) -> None:
    policies = load(tmp_path, "[tools.look]\ncache = true\nhedge = true\n")

    assert policies.for_tool(READING).cache == CachePolicy()
    assert policies.for_tool(READING).hedge == HedgePolicy()


def test_a_section_must_be_of_its_kind() -> None:
    with pytest.raises(ConfigurationError, match="cache: must be a CachePolicy, or None"):
        RunPolicy(cache=HedgePolicy())  # type: ignore[arg-type]  # what is tested


def test_what_does_nothing_for_a_tool_is_noted() -> None:
    writing = scripted("x", name="write", annotations=Annotations.for_changing())
    changes = Changes(cache=True, hedge={"delay_s": 1}, fallback={"tool": "nobody"})

    notes = Policies(tools={"write": changes}).notes([writing, READING])

    assert notes == (
        "tools.write gives write a cache, which is for tools that only read",
        "tools.write gives write a hedge, which is for tools that only read",
        "tools.write lets nobody stand in for write, but there is no such tool",
    )


def test_a_rule_for_many_tools_is_not_noted_for_those_that_it_is_not_for() -> None:
    writing = scripted("x", name="write", annotations=Annotations.for_changing())

    policies = Policies(tools={"*": Changes(cache=True)})

    assert policies.notes([writing, READING]) == ()


@pytest.mark.parametrize(
    "changes",
    [
        Changes(breaker={"threshold": 2}),
        Changes(max_retries=4),
        Changes(delays_s=(1, 1, 1, 1)),
        Changes(breaker={"threshold": 2, "mode": "shadow"}),
    ],
)
def test_a_circuit_that_one_failed_call_opens_is_noted(changes: Changes) -> None:
    notes = Policies(tools={READING.name: changes}).notes([READING])

    assert len(notes) == 1
    assert notes[0].startswith(f"tools.{READING.name}: {READING.name} has breaker.threshold ")
    assert "one failed call opens the circuit" in notes[0]


@pytest.mark.parametrize(
    "changes",
    [
        Changes(preset="ladder"),
        Changes(breaker={"threshold": 4}),
        Changes(max_retries=3),
        Changes(max_retries=0, breaker={"threshold": 1}),
        Changes(breaker={"threshold": 2, "outside_retry": True}),
        Changes(breaker={"threshold": 2, "failure_rate": 0.5}),
        Changes(breaker={"threshold": 2, "mode": "off"}),
        Changes(max_retries=9, breaker=None),
    ],
)
def test_a_circuit_that_takes_several_failed_calls_or_is_meant_is_not_noted(
    changes: Changes,
) -> None:
    assert Policies(tools={READING.name: changes}).notes([READING]) == ()


def test_a_tool_that_is_not_repeated_opens_its_circuit_by_calls() -> None:
    writing = scripted("x", name="write", annotations=Annotations.for_changing())

    policies = Policies(tools={"write": Changes(max_retries=5, breaker={"threshold": 2})})

    assert policies.notes([writing]) == ()
