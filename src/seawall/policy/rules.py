"""Sections of a policy become rules: every value with the line that gave it, presets resolved."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seawall.contract.policy import PRESETS, RunPolicy
from seawall.policy.changes import Changes, flattened, unknown
from seawall.policy.explain import Given, Rule, settle
from seawall.policy.origins import dotted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from seawall.policy.origins import KeyPath, Origins

MAX_DEPTH = 16
"""How many presets may start from one another."""


class Rules:
    """Makes the rules of one policy; a preset that cannot be is noted, and taken as a plain one."""

    def __init__(self, sections: Mapping[KeyPath, RunPolicy | Changes], origins: Origins) -> None:
        self._sections = sections
        self._presets = {path[1]: said for path, said in sections.items() if path[0] == "presets"}
        self._names = {**PRESETS, **self._presets}
        self._origins = origins
        self._settled_presets: dict[str, dict[str, Given]] = {}
        for name in self._presets:
            self._settled(name, ())

    def rule(self, path: KeyPath) -> Rule:
        """Make the rule of the section at `path`."""
        policy, said = self._sections[path], dotted(path)
        if isinstance(policy, RunPolicy):
            return whole_rule(policy, self._origins.said(path))
        changing = self._changing(policy, said, path)
        if policy.preset is None:
            return changing
        return joined(self._from_preset(policy.preset, said, path), changing)

    def default(self) -> Rule:
        """Make the rule that replaces the one by annotations: it gives every value."""
        path = ("default",)
        return joined(whole_rule(RunPolicy(), self._origins.said(path)), self.rule(path))

    def by_annotations(self, reason: str, preset: str) -> Rule:
        """Make the rule for tools of which no section says anything."""
        return self._whole(preset, f"annotations: {reason}", ())

    def _from_preset(
        self, name: str, said: str, path: KeyPath, within: tuple[str, ...] = ()
    ) -> Rule:
        where = (*path, "preset")
        if name not in self._names:
            self._origins.fault(where, f"{name!r} {unknown(name, self._names)}")
        elif name in within:
            self._origins.fault(
                where, f"{name!r} starts from this preset in turn; take one of the two out"
            )
        elif len(within) == MAX_DEPTH:
            self._origins.fault(
                where, f"more than {MAX_DEPTH} presets start from one another; put some together"
            )
        else:
            return self._whole(name, said + self._origins.line(path, "preset"), within)
        return whole_rule(RunPolicy(), said)

    def _whole(self, preset: str, said: str, within: tuple[str, ...]) -> Rule:
        values = self._settled(preset, within)
        return Rule(
            {key: Given(given.value, f"{said} -> {given.rule}") for key, given in values.items()},
            whole=True,
        )

    def _settled(self, preset: str, within: tuple[str, ...]) -> dict[str, Given]:
        if preset not in self._settled_presets:
            own = self._presets.get(preset)
            base = self._preset_base(preset, own, (*within, preset))
            path, said = ("presets", preset), f"preset {preset}"
            over = [self._changing(own, said, path)] if isinstance(own, Changes) else []
            self._settled_presets[preset] = settle([base, *over])
        return self._settled_presets[preset]

    def _preset_base(
        self, name: str, own: RunPolicy | Changes | None, within: tuple[str, ...]
    ) -> Rule:
        said = f"preset {name}"
        if isinstance(own, RunPolicy):
            return whole_rule(own, said)
        ready = PRESETS.get(name)
        if own is None or own.preset is None or (own.preset == name and ready is not None):
            return whole_rule(ready or RunPolicy(), said)
        return self._from_preset(own.preset, said, ("presets", name), within)

    def _changing(self, changes: Changes, said: str, path: KeyPath) -> Rule:
        return Rule(
            {
                key: Given(value, said + self._origins.line(path, key))
                for key, value in changes.values.items()
            }
        )


def whole_rule(policy: RunPolicy, said: str) -> Rule:
    """Make a rule that gives every value."""
    return Rule({key: Given(v, said) for key, v in flattened(policy).items()}, whole=True)


def joined(base: Rule, over: Rule) -> Rule:
    """Make one rule of a whole one and what is laid over it."""
    return Rule(settle([base, over]), whole=True)
