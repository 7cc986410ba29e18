"""Whether the values of a rule can work at all, told before any tool is there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from seawall.contract.annotations import Annotations
from seawall.contract.errors import ConfigurationError
from seawall.contract.policy import SECTIONS, BreakerPolicy, RunPolicy
from seawall.layers.rate_limit.strategies import STRATEGIES, parse_rate
from seawall.policy.changes import LIMITS, Changes, flattened, unknown

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from seawall.policy.changes import Family
    from seawall.policy.origins import KeyPath, Origins


def sound_sections(
    default: RunPolicy | Changes | None,
    tools: Mapping[str, RunPolicy | Changes],
    families: Mapping[str, Family],
    presets: Mapping[str, RunPolicy | Changes],
    origins: Origins,
) -> dict[KeyPath, RunPolicy | Changes]:
    """Give what each section says by its path; what cannot work is noted as a fault."""
    given: dict[KeyPath, RunPolicy | Changes] = {
        **{("presets", name): policy for name, policy in presets.items()},
        **({} if default is None else {("default",): default}),
        **{("tools", name): policy for name, policy in tools.items()},
        **{("families", name): family.policy for name, family in families.items()},
    }
    sections = {path: _of_a_kind(policy, path, origins) for path, policy in given.items()}
    check = _RuleCheck(sections.values(), origins)
    for path, policy in sections.items():
        check(policy, path)
    for name, family in families.items():
        for hint in family.annotations.keys() - set(Annotations.__struct_fields__):
            said = unknown(hint, Annotations.__struct_fields__)
            origins.fault(("families", name, "annotations", hint), said)
    return sections


def _of_a_kind(policy: Any, path: KeyPath, origins: Origins) -> RunPolicy | Changes:
    if isinstance(policy, (RunPolicy, Changes)):
        return policy
    origins.fault(path, f"is a {type(policy).__name__}; give a RunPolicy or Changes")
    return Changes()


class _RuleCheck:
    """Checks each rule alone: what others may still mend is left to the policies that result."""

    def __init__(self, rules: Iterable[RunPolicy | Changes], origins: Origins) -> None:
        self._origins = origins
        self._highest_cooldown_s = max(
            BreakerPolicy().max_cooldown_s, *map(_max_cooldown_s, rules), 0.0
        )

    def __call__(self, rule: RunPolicy | Changes, path: KeyPath) -> None:
        values = _flat(rule)
        missing = {key for key, value in values.items() if value is None and key not in LIMITS}
        for key in missing:
            self._fault(path, key, "needs a value; leave the key out for the default")
        plain, tables = _parted({k: v for k, v in values.items() if k not in missing})
        self._check(RunPolicy, plain, path)
        for name, parts in tables.items():
            self._check(SECTIONS[name], self._completed(name, parts), path)
        self._check_rate(plain, path)

    def _check(self, kind: type[Any], parts: Mapping[str, Any], path: KeyPath) -> None:
        try:
            kind(**parts)
        except ConfigurationError as error:
            self._origins.faults_of(error, path)

    def _completed(self, name: str, parts: dict[str, Any]) -> dict[str, Any]:
        """Stand in for what another rule may say: alone, these values could not be."""
        if name == "breaker":
            return {"max_cooldown_s": self._highest_cooldown_s, "slow_call_s": 1.0, **parts}
        if name == "fallback" and not parts.keys() & _ANSWERS:
            return {"tool": "another", **parts}
        if name == "adaptive_limit":
            return _within_bounds(parts)
        return parts

    def _check_rate(self, values: Mapping[str, Any], path: KeyPath) -> None:
        strategy = values.get("rate_strategy", STRATEGIES[0])
        if strategy not in STRATEGIES:
            said = f"is {strategy!r}; use one of {', '.join(STRATEGIES)}"
            self._fault(path, "rate_strategy", said)
        rate, cost = values.get("rate"), values.get("cost", 1)
        if rate is None:
            return
        try:
            most = parse_rate(rate).amount
        except ConfigurationError as error:
            self._origins.faults_of(error, path)
            return
        if cost > most:
            self._fault(
                path,
                "cost",
                f"is {cost}, more than {rate} can ever grant; lower it, or raise the rate",
            )

    def _fault(self, path: KeyPath, key: str, message: str) -> None:
        self._origins.fault((*path, *key.split(".")), message)


def _flat(rule: RunPolicy | Changes) -> Mapping[str, Any]:
    return flattened(rule) if isinstance(rule, RunPolicy) else rule.values


_ANSWERS = {"tool", "text", "structured_content"}


def _within_bounds(parts: dict[str, Any]) -> dict[str, Any]:
    given = [value for value in parts.values() if isinstance(value, int) and value >= 1]
    fitting = {"min_limit": 1, "max_limit": max(given, default=1)}
    return {"initial": parts.get("min_limit", 1), **fitting, **parts}


def _parted(values: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """Part the values of the policy from those of its tables."""
    plain = {key: value for key, value in values.items() if key.partition(".")[0] not in SECTIONS}
    tables: dict[str, dict[str, Any]] = {name: {} for name in SECTIONS if values.get(name)}
    for key, value in values.items():
        name, _, part = key.partition(".")
        if part:
            tables.setdefault(name, {})[part] = value
    return plain, tables


def _max_cooldown_s(rule: RunPolicy | Changes) -> float:
    found = _flat(rule).get("breaker.max_cooldown_s")
    return found if isinstance(found, (int, float)) else 0.0
