# ruff: noqa: SLF001  # looks inside the pipeline, for those who have an answer already
"""Calls about which somebody else asks: a framework with its own way to a person.

What was approved is the call as it was given. If a hook rewrites its arguments after that, it is
another call, and refused with `approval_required`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from seawall.contract.decision import Action
from seawall.contract.result import ToolResult
from seawall.layers.risk_gate import APPROVED, RiskGate, verdict

if TYPE_CHECKING:
    from collections.abc import Mapping

    from seawall.contract.decision import Decision, Prepared
    from seawall.orchestration.pipeline import Pipeline
    from seawall.pipeline.invocation import Progress
    from seawall.pipeline.session import Session


def would_ask(
    pipeline: Pipeline,
    name: str,
    arguments: str | Mapping[str, Any] | None,
    *,
    session: Session | None = None,
) -> tuple[Prepared, Decision] | None:
    """Tell what a person is to be asked about a call, before it is made; None if nothing is.

    A call that is refused in any case needs no person.
    """
    session = session or pipeline._session
    policy = pipeline.policy_of(name)
    if (
        policy is None
        or policy.gate_mode != "on"
        or RiskGate not in pipeline._chains.builder.layers
    ):
        return None
    prepared = pipeline.prepare(name, arguments, session=session)
    if isinstance(prepared, ToolResult):
        return None
    decision = verdict(pipeline._deciding.gate, prepared, session.permissions, session.memory)
    if decision is None or decision.action is not Action.ASK:
        return None
    return prepared, decision


async def call_approved(
    pipeline: Pipeline,
    name: str,
    arguments: str | Mapping[str, Any] | None = None,
    *,
    call_id: str | None = None,
    session: Session | None = None,
    on_progress: Progress | None = None,
) -> ToolResult:
    """Make a call that a person has approved: it is asked about no more, and denied all the same.

    Raises what `Pipeline.call` raises.
    """
    route = pipeline._routes.get(pipeline.registry.own_name(name) or name)
    if route is None:
        return await pipeline.call(name, arguments, call_id=call_id, session=session)
    pipeline._home.enter()
    watch = pipeline._loop_of_all if session is None else pipeline.loop_detector
    call = pipeline._invocation(
        route, arguments, call_id or pipeline._new_id(), session or pipeline._session
    )
    call.on_progress = on_progress
    call.note(APPROVED)
    return await pipeline._run(route, call, None, None, watch)


def call_approved_sync(
    pipeline: Pipeline, name: str, arguments: str | Mapping[str, Any] | None, **options: Any
) -> ToolResult:
    """Make the same call from code that is not async; raises what `Pipeline.call_sync` raises."""
    return pipeline._home.run(lambda: call_approved(pipeline, name, arguments, **options))
