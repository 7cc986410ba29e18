"""Sees what the layers really did during the demo, by what any recorder of a pipeline is told."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Protocol

from seawall.contract.span import Outcome
from seawall.pipeline.recorder import ToolRecorder

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from seawall.contract.span import Span
    from seawall.pipeline.recorder import Finished

DEEDS: Mapping[str, tuple[str, ...]] = {
    "environment_gate": ("refused",),
    "risk_gate": ("asked", "allowed", "refused"),
    "argument_check": ("mended", "refused"),
    "rate_limit": ("refused",),
    "retry": ("tried again", "recovered"),
    "breaker": ("opened", "refused", "probed", "closed"),
    "timeout": ("cancelled",),
}
"""What each layer must have been seen doing, all of it, to have acted."""

_EVENTS = {
    ("risk_gate", "asked"): "asked",
    ("retry", "retried"): "tried again",
    ("breaker", "open"): "opened",
    ("breaker", "half_open"): "probed",
    ("breaker", "closed"): "closed",
    ("timeout", "expired"): "cancelled",
}


class Audience(Protocol):
    """Whoever is shown what happens."""

    def show(self, event: str, **fields: object) -> None:
        """Show one thing."""
        ...


class Witness:
    """A recorder that tells the audience live, and keeps count of each layer's deeds."""

    def __init__(self, audience: Audience) -> None:
        self._audience = audience
        self._ended_ms: dict[str, float] = {}
        self._asked: set[str] = set()
        self.deeds: dict[str, Counter[str]] = {layer: Counter() for layer in DEEDS}

    def for_tool(self, tool: str) -> ToolRecorder:
        """Watch one tool."""
        return ToolRecorder(self._on_attempt, self._on_call, self._on_event(tool))

    def unknown(self) -> None:
        """Do nothing: the answer to an unknown name is shown as any other."""

    def asked(self, call_id: str) -> None:
        """Remember that a person was asked about a call."""
        self._asked.add(call_id)

    def missing(self) -> dict[str, list[str]]:
        """Give the layers that did not do all that they should have, with what is missing."""
        found = {
            layer: [deed for deed in wanted if not self.deeds[layer][deed]]
            for layer, wanted in DEEDS.items()
        }
        return {layer: deeds for layer, deeds in found.items() if deeds}

    def _on_attempt(self, span: Span) -> None:
        if span.attempt == 0:
            return
        if span.attempt == 1 and span.mended:
            self.deeds["argument_check"]["mended"] += 1
            if span.call_id not in self._asked:  # else shown with the question already
                self._audience.show("mended", call=span.call_id, mended=list(span.mended))
        before_ms = self._ended_ms.get(span.call_id, 0.0)
        self._ended_ms[span.call_id] = span.queue_ms + span.duration_ms
        self._audience.show(
            "attempt",
            call=span.call_id,
            tool=span.tool,
            attempt=span.attempt,
            outcome=span.outcome.value,
            reason=span.reason,
            duration_ms=round(span.duration_ms, 3),
            # Before the first attempt lie the gates; before all others only the wait.
            waited_ms=round(span.queue_ms - before_ms, 3) if span.attempt > 1 else None,
        )

    def _on_call(self, finished: Finished) -> None:
        self._ended_ms.pop(finished.call_id, None)
        if finished.call_id in self._asked and finished.attempts:
            self.deeds["risk_gate"]["allowed"] += 1
        if finished.outcome is Outcome.DENIED and finished.layer in self.deeds:
            self.deeds[finished.layer]["refused"] += 1
        if finished.outcome is Outcome.SUCCESS and finished.attempts > 1:
            self.deeds["retry"]["recovered"] += 1

    def _on_event(self, tool: str) -> Callable[[str, str], None]:
        def on_event(layer: str, event: str) -> None:
            deed = _EVENTS.get((layer, event))
            if deed is not None:
                self.deeds[layer][deed] += 1
            self._audience.show("layer", tool=tool, layer=layer, did=event)

        return on_event
