"""What resuming needs of its pipeline."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from seawall.contract.policy import RunPolicy
    from seawall.contract.tool import Tool
    from seawall.contract.turn import TurnStatus
    from seawall.layers.risk_gate import Gate
    from seawall.orchestration.turn import Doors
    from seawall.pipeline.arguments.prepare import Prepare
    from seawall.pipeline.session import Session


class Grounds(NamedTuple):
    """The pipeline as it is now, each time it is asked."""

    doors: Doors
    gate: Callable[[], Gate]
    has_gate: bool
    """Whether there is a risk gate at all."""
    preparing: Callable[[Tool, RunPolicy], Prepare]
    """Makes what prepares the arguments of a tool."""
    new_key: Callable[[], str]
    ending: Callable[[str, Session], AbstractContextManager[Callable[[TurnStatus, str], object]]]
    """Writes the end of a turn into the audit log, whatever that is."""
