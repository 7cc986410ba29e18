"""Which store a pipeline shares with other processes, and what layers need of it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from seawall.contract.errors import ConfigurationError, Fault
from seawall.layers.breaker.fleet import CircuitStore
from seawall.layers.rate_limit.parts import RateParts
from seawall.layers.rate_limit.shared import BucketStore
from seawall.stores.shared import Shared

if TYPE_CHECKING:
    from seawall.pipeline.clock import Clock
    from seawall.policy.model import Policies


def shared_by(
    given: Shared | str | None, policies: Policies, clock: Clock
) -> tuple[Shared | None, bool]:
    """Give the store, and whether it is the pipeline's own to close."""
    if given is not None and not isinstance(given, str):
        return given, False
    settings = policies.shared
    url = given or settings.url
    if url is None and settings.url_env is not None:
        url = os.environ.get(settings.url_env)
        if not url:
            said = f"the environment has no {settings.url_env}; set it to the URL of the store"
            raise ConfigurationError([Fault(said, key="shared.url_env")])
    if url is None:
        return None, False
    shared = Shared(
        url,
        replicas=settings.replicas,
        timeout_s=settings.timeout_s,
        prefix=settings.shown_prefix,
        clock=clock,
    )
    return shared, True


def parts_of(shared: Shared | None, policies: Policies) -> dict[type, Any]:
    """Give what layers ask for, by the protocols that they declare.

    Processes that share rates but no store grant a part each.
    """
    if shared is None:
        return {RateParts: RateParts(policies.shared.replicas)}
    return {BucketStore: shared.buckets, CircuitStore: shared.circuits}
