"""What those who look into a part of a value need of the one who looks into the whole."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seawall.contract.failure import Issue
    from seawall.pipeline.arguments.faults.survey import Spot, Survey
    from seawall.pipeline.arguments.schema.documents import Place


class Looking(Protocol):
    """Finds the faults of one value, and collects them."""

    survey: Survey

    @property
    def is_done(self) -> bool:
        """Whether there is no use in looking further: enough is told, or enough work done."""

    def tell(self, path: str, message: str, keyword: str) -> None:
        """Note a fault; one that is known is not noted twice."""

    def trial(self, spot: Spot, value: Any, path: str) -> list[Issue]:
        """Give the faults of a value that is refused at a place, without noting them."""

    def visit(self, spot: Spot, value: Any, path: str) -> None:
        """Tell what is wrong with a value that is refused at a place."""

    def part_at(self, spot: Spot, value: Any, path: str) -> None:
        """Tell what is wrong with a value at a place, if it is refused there."""

    def refuses(self, spot: Spot, value: Any) -> bool:
        """Whether a value is not valid at a place."""

    def refuses_one(self, spot: Spot, items: Sequence[Any]) -> bool:
        """Whether one of the items is not valid at a place."""

    def matches(self, pattern: str, name: str) -> bool:
        """Whether a name matches a pattern."""

    def may_compare(self) -> bool:
        """Take one of the comparisons of names that a value may cost; say whether any was left."""

    def places_at(self, path: str) -> Sequence[Place]:
        """Give all nodes of the schema that may speak of the value at a path."""

    def is_secret(self, path: str) -> bool:
        """Whether the value at a path must not be shown."""
