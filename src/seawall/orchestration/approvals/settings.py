"""How approvals are kept, how long they hold, and who is told of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import msgspec

from seawall.contract.errors import ConfigurationError, Fault
from seawall.orchestration.approvals.store import ApprovalStore


class ApprovalSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How calls wait for a person. Given to a pipeline, it makes turns wait."""

    store: ApprovalStore | None = None
    """Where they are kept. None: the pipeline's state, else memory."""
    store_timeout_s: float = 5.0
    """How long one step of `store` may take; a state has a `timeout_s` of its own for that."""
    expires_after_s: float | None = 86_400.0
    """How long an answer, and then the run, may take; None is no limit."""
    hidden: tuple[str, ...] = ()
    """Names of fields, at any depth, that nobody is shown; beside those the schema marks."""
    on_approval: Callable[..., Any] | None = None
    """Told of each new `ApprovalBatch`, once it is stored; may be async."""
    announce_within_s: float = 10.0
    """How long that may take; it is logged then, and nothing is lost."""
    lease_s: float = 30.0
    """Without a sign of life for so long, whoever runs one is taken to be gone."""
    keep_read_s: float = 3_600.0
    """How long results stay after they were read."""
    keep_closed_s: float = 30 * 86_400.0
    """How long anything stays that nothing more can come of, counted from its making."""

    def __post_init__(self) -> None:
        faults = [
            Fault(f"must be a number of seconds above 0 (got {value!r})", key=name)
            for name in (
                "store_timeout_s",
                "announce_within_s",
                "lease_s",
                "keep_read_s",
                "keep_closed_s",
            )
            if not 0 < (value := getattr(self, name)) < math.inf
        ]
        expires = self.expires_after_s
        if expires is not None and not 0 < expires < math.inf:
            said = f"must be above 0; None is no limit (got {expires!r})"
            faults.append(Fault(said, key="expires_after_s"))
        hidden: Any = self.hidden
        if isinstance(hidden, str):
            faults.append(Fault("must be names in a list, not one text", key="hidden"))
        if faults:
            raise ConfigurationError(faults)
