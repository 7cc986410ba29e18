"""What the workers of a gateway share, what they have a part of each, and what each has alone.

Said at the start and at `/workers`, so that nobody takes one worker's view for the whole, or a
bound of one worker for one of all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import msgspec

from seawall.contract.errors import ConfigurationError, Fault

if TYPE_CHECKING:
    from collections.abc import Callable

    from seawall.contract.policy import RunPolicy
    from seawall.edges.gateway.settings import GatewaySettings
    from seawall.orchestration.pipeline import Pipeline
    from seawall.stores.state import State

IN_STATE = (
    "approvals",
    "effects",
    "idempotency keys",
    "audit log",
    "notes",
    "shortcuts",
    "cut results",
)
SHOWN = 5
"""Names of tools in one line."""

_OF_EACH: tuple[tuple[str, Callable[[RunPolicy], object]], ...] = (
    ("max_concurrency", lambda policy: policy.max_concurrency),
    ("adaptive_limit", lambda policy: policy.adaptive_limit),
    ("cache", lambda policy: policy.cache),
    ("retry_budget", lambda policy: policy.retry_budget),
)


class Part(msgspec.Struct, frozen=True):
    """One thing that a gateway remembers or bounds."""

    what: str
    how: Literal["shared", "divided", "each"]
    """One for all; a part for each worker; each worker its own."""
    where: str = ""


def sharing(pipeline: Pipeline, settings: GatewaySettings) -> tuple[Part, ...]:
    """Say of everything how the workers have it."""
    state, shared = pipeline.state, pipeline.shared
    durable = state is not None and state.durable
    where = state.shown if state is not None and durable else ""
    parts = [Part(what, "shared" if durable else "each", where) for what in IN_STATE]
    store = "" if shared is None else shared.shown
    rates: Literal["shared", "divided"] = "divided" if shared is None else "shared"
    parts += [Part(what, rates, store) for what in ("rates of tools", "rates of clients")]
    parts.append(Part("circuits", "each" if shared is None else "shared", store))
    counted = "shared" if pipeline.metrics.is_of_workers else "each"
    parts.append(Part("metrics", counted))  # type: ignore[arg-type]  # one of the two
    parts += [Part(what, "each") for what in ("spans", "usage", "loops of a session")]
    parts.append(Part(f"requests at once ({settings.max_in_flight})", "each"))
    return (*parts, *_bounds(pipeline))


def _bounds(pipeline: Pipeline) -> list[Part]:
    """Name what holds in each worker alone, as far as some tool has it."""
    parts = []
    exclusive = [tool.name for tool in pipeline.registry if tool.exclusive is not None]
    if exclusive:
        parts.append(Part(f"exclusive ({_some(exclusive)})", "each"))
    for name, of in _OF_EACH:
        bound = [tool.name for tool in pipeline.registry if _has(pipeline, tool.name, of)]
        if bound:
            parts.append(Part(f"{name} ({_some(bound)})", "each"))
    return parts


def _has(pipeline: Pipeline, tool: str, of: Callable[[RunPolicy], object]) -> bool:
    policy: Any = pipeline.policy_of(tool)
    return policy is not None and of(policy) is not None


def _some(names: list[str]) -> str:
    more = len(names) - SHOWN
    said = ", ".join(names[:SHOWN])
    return f"{said} and {more} more" if more > 0 else said


def said_of(parts: tuple[Part, ...], workers: int) -> list[str]:
    """Say it in lines for a person."""
    places = dict.fromkeys(part.where for part in parts if part.how == "shared")
    lines = [
        f"shared by all {workers} workers{f', in {place}' if place else ''}: "
        + ", ".join(part.what for part in parts if part.how == "shared" and part.where == place)
        for place in places
    ]
    divided = [part.what for part in parts if part.how == "divided"]
    if divided:
        lines.append(
            f"divided, each worker grants 1/{workers}: {', '.join(divided)}; a Redis in [shared] of"
            " the policy makes them exact"
        )
    alone = [part.what for part in parts if part.how == "each"]
    return [*lines, f"each worker has its own: {', '.join(alone)}"]


def need_shared_state(state: State | None, workers: int) -> None:
    """Refuse workers that would not know of each other's approvals and effects."""
    if state is None or not state.durable:
        said = (
            f"{workers} workers need a state that they share, as what one is asked to approve is"
            " answered through another, and no call may run twice because it came to another: give"
            " --state sqlite:///FILE or postgresql://…"
        )
        raise ConfigurationError([Fault(said, "--workers")])
    if state.seal is None:
        said = (
            f"{workers} workers need a key for the state at {state.shown}, as without one they"
            " cannot tell that two calls are the same: set SEAWALL_STATE_KEY, for all of them"
        )
        raise ConfigurationError([Fault(said, "--workers")])
