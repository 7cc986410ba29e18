"""What is counted and shown, by the names that Prometheus knows: the one list of all families.

A scrape of one process, the files of several workers and the page about metrics are made of it.
"""

from __future__ import annotations

from typing import Literal

import msgspec

Kind = Literal["counter", "gauge", "histogram"]

Across = Literal["livesum", "livemax", "livemin"]
"""How the gauges of several workers become one; those of workers that ended are left out."""

OTHER = "other"
"""The label of what came after the bound, or is none of the known."""

OTHER_TOOL = "_OTHER"
"""The label of names that nobody registered, and of tools beyond the bound."""

RETIRED_TOOL = "_RETIRED"
"""The label of unregistered tools for which there is no room of their own."""


class Family(msgspec.Struct, frozen=True):
    """One metric with all its series."""

    name: str
    """Without the `_total` of a counter."""
    kind: Kind
    labels: tuple[str, ...]
    help: str
    across: Across = "livesum"
    at_rest: float = 0.0
    """What a worker's gauge says of a tool that is there no longer."""

    @property
    def shown_as(self) -> str:
        """The name by which a query finds it."""
        return f"{self.name}_total" if self.kind == "counter" else self.name


CALLS = Family(
    "seawall_calls",
    "counter",
    ("tool", "outcome"),
    "Calls by outcome; names that nobody registered count under _OTHER.",
)
ATTEMPTS = Family(
    "seawall_attempts",
    "counter",
    ("tool", "outcome"),
    "Attempts by outcome; a call that was tried twice has two.",
)
RETRIES = Family("seawall_retries", "counter", ("tool",), "Attempts after the first of their call.")
REFUSALS = Family(
    "seawall_refusals", "counter", ("tool", "layer", "reason"), "Calls that a layer refused."
)
FAILURES = Family("seawall_failures", "counter", ("tool", "code", "reason"), "Calls that failed.")
EVENTS = Family(
    "seawall_events",
    "counter",
    ("tool", "layer", "event"),
    "What layers did, such as a breaker that opened.",
)
TRANSITIONS = Family(
    "seawall_breaker_transitions",
    "counter",
    ("tool", "state"),
    "Changes of a circuit, by the state it came to.",
)
OUTPUT_FAILURES = Family(
    "seawall_output_failures",
    "counter",
    ("tool",),
    "Results that broke the tool's own output schema.",
)
HOOK_FAILURES = Family(
    "seawall_hook_failures", "counter", ("tool",), "Hooks that raised, or gave what is no answer."
)
STORE_FALLBACKS = Family(
    "seawall_store_fallbacks",
    "counter",
    ("store", "mode"),
    "Times that a store could not be reached and something else was done.",
)
SUGGESTIONS = Family(
    "seawall_suggestions",
    "counter",
    ("near",),
    "Calls of names that nobody registered, by whether a near name could be told.",
)
LOOP_STOPS = Family(
    "seawall_loop_stops",
    "counter",
    ("detector",),
    "Calls that were refused because the model repeats itself.",
)
AUDIT_FAILURES = Family(
    "seawall_audit_failures",
    "counter",
    (),
    "Tries to write the audit log that failed, and entries dropped.",
)
CALL_DURATION = Family(
    "seawall_call_duration_seconds",
    "histogram",
    ("tool",),
    "From a call's arrival to its answer: gates, waits and attempts together.",
)
ATTEMPT_DURATION = Family(
    "seawall_attempt_duration_seconds", "histogram", ("tool",), "Duration of one attempt."
)
QUEUE_DURATION = Family(
    "seawall_queue_duration_seconds",
    "histogram",
    ("tool",),
    "From a call's arrival to the start of its first attempt: gates, questions and queues.",
)
BUILD_INFO = Family(
    "seawall_build_info",
    "gauge",
    ("version",),
    "The version that runs; always 1.",
    across="livemax",
)
APPROVALS_WAITING = Family(
    "seawall_approvals_waiting",
    "gauge",
    (),
    "Calls that wait for a person's answer.",
    across="livemax",
)
APPROVALS_OLDEST = Family(
    "seawall_approvals_oldest_age_seconds",
    "gauge",
    (),
    "How long the oldest of them has waited; 0 if none does.",
    across="livemax",
)
IN_FLIGHT = Family("seawall_in_flight", "gauge", ("tool",), "Calls that are running.")
BREAKER_STATE = Family(
    "seawall_breaker_state",
    "gauge",
    ("tool", "state"),
    "1 for the state a circuit is in.",
    across="livemax",
)
TOKENS = Family(
    "seawall_limiter_tokens",
    "gauge",
    ("tool",),
    "Calls that would be granted now.",
    across="livemin",
)
CONCURRENCY_LIMIT = Family(
    "seawall_concurrency_limit",
    "gauge",
    ("tool",),
    "Calls that an adaptive limit would let through at once.",
    across="livesum",
)
TOKENS_RATIO = Family(
    "seawall_limiter_tokens_ratio",
    "gauge",
    ("tool",),
    "Share of the bucket that is left, from 0 to 1.",
    across="livemin",
    at_rest=1.0,
)
ABANDONED = Family(
    "seawall_abandoned_threads",
    "gauge",
    (),
    "Threads still at work for calls that were already answered.",
)
TOOL_INFO = Family(
    "seawall_tool_info",
    "gauge",
    ("tool", "family"),
    "The tools there are, each with its family; always 1.",
    across="livemax",
)

COUNTED: tuple[Family, ...] = (
    CALLS,
    ATTEMPTS,
    CALL_DURATION,
    ATTEMPT_DURATION,
    QUEUE_DURATION,
    REFUSALS,
    FAILURES,
    RETRIES,
    EVENTS,
    TRANSITIONS,
    OUTPUT_FAILURES,
    HOOK_FAILURES,
    STORE_FALLBACKS,
    SUGGESTIONS,
    LOOP_STOPS,
    AUDIT_FAILURES,
    APPROVALS_WAITING,
    APPROVALS_OLDEST,
    BUILD_INFO,
)
"""What a `Metrics` knows by itself."""

WATCHED: tuple[Family, ...] = (
    IN_FLIGHT,
    BREAKER_STATE,
    TOKENS,
    TOKENS_RATIO,
    CONCURRENCY_LIMIT,
    ABANDONED,
    TOOL_INFO,
)
"""What is read of a pipeline at a scrape."""
