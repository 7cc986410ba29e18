"""What the gateway shows: tools with their policies, spans, usage, circuits."""

from __future__ import annotations

import fnmatch
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import msgspec

from seawall.contract.annotations import Risk
from seawall.contract.decision import Action
from seawall.layers.rate_limit.strategies import parse_rate
from seawall.recording.shown import slug
from seawall.registry.declarations import declaration

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from seawall.contract.span import Span
    from seawall.contract.tool import Tool
    from seawall.orchestration.pipeline import Pipeline
    from seawall.recording.usage import Usage

MAX_SPANS = 1_000
"""Spans in one answer."""
AT_ONCE = 100
"""Tools that are described before somebody else has a turn."""


class Views:
    """Reads a pipeline, and changes nothing."""

    def __init__(
        self,
        pipeline: Pipeline,
        console_allow: tuple[str, ...] | None,
        whose: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        self._pipeline = pipeline
        self._whose = whose
        """Said with what is one worker's view."""
        self._console_allow = console_allow

    def released(self, tool: str) -> bool:
        """Whether the console's page may run a tool."""
        allowed = self._console_allow
        return allowed is None or any(fnmatch.fnmatchcase(tool, pattern) for pattern in allowed)

    async def tools(self, *, brief: bool = False) -> dict[str, Any]:
        """List all tools. However many they are, calls go on meanwhile."""
        view = self.brief if brief else self.tool
        listed: list[dict[str, Any]] = []
        for tool in tuple(self._pipeline.registry):
            listed.append(view(tool))
            if len(listed) % AT_ONCE == 0:
                await self._pipeline.clock.sleep(0)
        return {"tools": listed, "counts": _counts(listed)}

    def tool(self, tool: Tool) -> dict[str, Any]:
        """Everything that a caller may want to know of one tool."""
        policy = self._pipeline.policy_of(tool.name)
        declared = declaration(tool)
        return {
            **self.brief(tool),
            "inputSchema": declared["inputSchema"],
            "outputSchema": declared.get("outputSchema"),
            "annotations": tool.annotations.to_mcp(),
            "tags": list(tool.tags),
            "retrySafe": tool.retry_safe,
            "policy": None if policy is None else msgspec.to_builtins(policy),
            "example": _example(tool),
        }

    def brief(self, tool: Tool) -> dict[str, Any]:
        """What a list of tools shows of one."""
        pipeline = self._pipeline
        action = pipeline.decision_for(tool).action
        quarantined = pipeline.registry.quarantine_reason(tool.name)
        return {
            "name": tool.name,
            "title": tool.title,
            "description": tool.description,
            "riskLevel": Risk(tool.effective_risk).name.lower(),
            "needConfirm": action is Action.ASK,
            "state": self._state(tool.name, action, quarantined),
            "quarantined": quarantined,
            "family": tool.family,
            "category": tool.category,
            "breaker": pipeline.breakers.find_state(tool.name),
            "rate": self._rate(tool.name),
        }

    def spans(self, limit: int, tool: str | None, call_id: str | None) -> dict[str, Any]:
        """Give the newest spans, how all kept ones ended, and how many are gone."""
        trace = self._pipeline.trace
        found = trace.spans(limit, tool=tool, call_id=call_id)
        return {
            "spans": [span_body(span) for span in found],
            "histogram": trace.outcomes(),
            "dropped": trace.dropped,
            **self._whose,
        }

    def usage(self) -> dict[str, Any]:
        """Give the numbers of each tool."""
        found = [_usage(one) for one in self._pipeline.usage.snapshot().values()]
        return {"tools": found, **self._whose}

    def breakers(self) -> dict[str, Any]:
        """Give the state of each circuit."""
        found = self._pipeline.breakers.snapshot()
        shown = [{"tool": tool, "state": state} for tool, state in found.items()]
        return {"breakers": shown, **(self._whose if self._pipeline.shared is None else {})}

    def _state(self, name: str, action: Action, quarantined: str | None) -> str:
        """Say in a word whether the console's page may run it."""
        if quarantined is not None or action is Action.DENY:
            return "blocked"
        if not self.released(name):
            return "not_released"
        return "locked" if action is Action.ASK else "runnable"

    def _rate(self, name: str) -> dict[str, Any] | None:
        policy = self._pipeline.policy_of(name)
        if policy is None or policy.rate is None:
            return None
        slots = self._pipeline.states.find(name)
        level: Callable[[], float] | None = None if slots is None else slots.find("tokens_left")
        if slots is not None and slots.find("tokens_most") != parse_rate(policy.rate).amount:
            level = None  # a part of the rate says nothing of the whole
        return {"limit": policy.rate, "left": None if level is None else int(level())}


def span_body(span: Span) -> dict[str, Any]:
    """Write a span with names as HTTP has them."""
    return {
        "requestId": span.call_id,
        "tool": span.tool,
        "attempt": span.attempt,
        "started": span.started,
        "durationMs": round(span.duration_ms, 3),
        "queueMs": round(span.queue_ms, 3),
        "outcome": span.outcome.value,
        "reason": slug(span.reason),
        "digest": None if span.digest is None else str(span.digest),
        "mended": list(span.mended),
        "verdicts": list(span.verdicts),
    }


def _usage(usage: Usage) -> dict[str, Any]:
    return {
        "tool": usage.tool,
        "invocations": usage.invocations,
        "successes": usage.successes,
        "failures": usage.failures,
        "refusals": usage.refusals,
        "runs": usage.runs,
        "totalS": usage.total_s,
        "meanS": usage.mean_s,
        "successRate": usage.success_rate,
        "lastError": usage.last_error or None,
        "lastUsed": usage.last_used,
    }


def _counts(listed: list[dict[str, Any]]) -> dict[str, int]:
    states = [tool["state"] for tool in listed]
    return {
        "all": len(listed),
        "runnable": states.count("runnable"),
        "needsApproval": sum(tool["needConfirm"] for tool in listed),
        "notReleased": states.count("not_released"),
        "blocked": states.count("blocked"),
    }


def _example(tool: Tool) -> dict[str, Any] | None:
    if not tool.examples:
        return None
    arguments, result = tool.examples[0]
    return {"arguments": arguments, "result": result}
