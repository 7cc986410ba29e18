"""Which tools belong to a family."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seawall.policy.patterns import Pattern, any_fits

if TYPE_CHECKING:
    from collections.abc import Callable

    from seawall.contract.tool import Tool
    from seawall.policy.changes import Family


class Members:
    """Tells the tools of one family: those that name it, and those that its choice fits."""

    def __init__(self, name: str, family: Family) -> None:
        self._name = name
        self.servers = family.servers
        self._checks = _checks(family)

    def named_by(self, tool: Tool) -> bool:
        """Whether the tool itself says that it is of this family."""
        return tool.family == self._name

    def chosen(self, tool: Tool) -> bool:
        """Whether all that the family asks for fits the tool; asking for nothing chooses none."""
        return bool(self._checks) and all(check(tool) for check in self._checks)


def _checks(family: Family) -> list[Callable[[Tool], bool]]:
    patterns = [Pattern(text) for text in family.match]
    servers = tuple(f"{server}__" for server in family.servers)
    hints = tuple(family.annotations.items())
    checks: list[tuple[object, Callable[[Tool], bool]]] = [
        (patterns, lambda tool: any_fits(patterns, tool.name)),
        (family.tags, lambda tool: not set(family.tags).isdisjoint(tool.tags)),
        (family.categories, lambda tool: tool.category in family.categories),
        (servers, lambda tool: tool.name.startswith(servers)),
        (hints, lambda tool: all(getattr(tool.annotations, key) is value for key, value in hints)),
    ]
    return [check for given, check in checks if given]
