"""Find what is done again and again: two tools, one right after the other, each time with success.

What is found is a suggestion to edit, not a shortcut. Spans have no arguments, so params are made
of what the tools require.
"""

from __future__ import annotations

import re
from collections import Counter
from hashlib import blake2b
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import msgspec

from seawall.contract.span import Outcome
from seawall.orchestration.shortcut_definition import MAX_NAME, MAX_PARAMS, PREFIX
from seawall.orchestration.steps import BATCH_RUN, SHORTCUT_DEFINE, SHORTCUT_LIST, SHORTCUT_RUN

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from seawall.contract.span import Span
    from seawall.registry.registry import Registry

AT_LEAST = 3
WINDOW_S = 60.0
MOST = 20

_LONGEST = 40
_OWN = (BATCH_RUN, SHORTCUT_DEFINE, SHORTCUT_LIST, SHORTCUT_RUN)
_TYPES = ("string", "integer", "number", "boolean", "array", "object")
_PARAM = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,28}")


class Suggestion(msgspec.Struct, frozen=True):
    """Two tools that were used one after the other, and a definition to begin with."""

    tools: tuple[str, str]
    count: int
    """How often."""
    definition: dict[str, Any]
    """Accepted as it is by `define`; made to be edited."""


class _Call(msgspec.Struct):
    """All attempts of one call."""

    tool: str
    begun: float
    ended: float
    succeeded: bool
    attempt: int


def mine(
    spans: Iterable[Span],
    *,
    registry: Registry | None = None,
    known: Collection[tuple[str, ...]] = (),
    at_least: int = AT_LEAST,
    window_s: float = WINDOW_S,
    most: int = MOST,
) -> tuple[Suggestion, ...]:
    """Give pairs that occurred `at_least` times, the most frequent first.

    Spans may come in any order. Two calls are a pair if both succeeded in the end, nothing lies
    between them, the second began after the first had ended, and within `window_s`. A failure or
    a refusal ends the chain. `known` are the steps of shortcuts that exist.
    """
    counts = Counter(
        (first.tool, second.tool)
        for first, second in pairwise(_calls(spans))
        if _is_pair(first, second, window_s)
    )
    found = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    often = [item for item in found if item[1] >= max(at_least, 1) and item[0] not in known]
    return tuple(
        Suggestion(tools, count, skeleton(tools, registry))
        for tools, count in often[: max(most, 0)]
    )


def _calls(spans: Iterable[Span]) -> list[_Call]:
    """Join attempts to calls, in the order they began; what runs other calls is seen through."""
    calls: dict[tuple[str, str] | int, _Call] = {}
    for number, span in enumerate(spans):
        if span.tool in _OWN or span.tool.startswith(PREFIX):
            continue
        ended = span.started + span.duration_ms / 1000
        succeeded = span.outcome is Outcome.SUCCESS
        key = (span.call_id, span.tool) if span.call_id else number
        call = calls.get(key)
        if call is None:
            calls[key] = _Call(span.tool, span.started, ended, succeeded, span.attempt)
            continue
        call.begun = min(call.begun, span.started)
        if span.attempt >= call.attempt:
            call.ended, call.succeeded, call.attempt = ended, succeeded, span.attempt
    return sorted(calls.values(), key=lambda call: call.begun)


def _is_pair(first: _Call, second: _Call, window_s: float) -> bool:
    between_s = second.begun - first.ended
    return (
        first.succeeded
        and second.succeeded
        and first.tool != second.tool
        # Spans have wall times in whole digits of a float: a little less than nothing is nothing.
        and -0.001 <= between_s <= window_s
    )


def skeleton(tools: Sequence[str], registry: Registry | None = None) -> dict[str, Any]:
    """A definition for these tools that obeys all rules, with a param for what each requires."""
    params: dict[str, dict[str, Any]] = {}
    steps = []
    for tool in tools:
        arguments: dict[str, str] = {}
        for name, kind in _required(tool, registry):
            param = _place(params, name, kind)
            if param is not None:
                arguments[name] = param
        members = ", ".join(f'"{name}": {{{param}}}' for name, param in arguments.items())
        steps.append({"tool": tool, "arguments": f"{{{members}}}"})
    return {
        "id": skeleton_id(tools),
        "name": " then ".join(tools)[:MAX_NAME],
        "description": f"Suggested: {' and '.join(tools)} were used one after the other.",
        "params": list(params.values()),
        "steps": steps,
    }


def skeleton_id(tools: Sequence[str]) -> str:
    """An id of these tools; what is too long is cut, and told apart by a hash."""
    plain = re.sub(r"[^a-z0-9]+", "_", "_then_".join(tools).lower()).strip("_")
    if len(plain) > _LONGEST or len(plain) < 2:
        mark = blake2b("\0".join(tools).encode("utf-8", "replace"), digest_size=4).hexdigest()
        plain = f"{plain[: _LONGEST - len(mark) - 1].rstrip('_')}_{mark}"
    return PREFIX + plain


def _required(tool: str, registry: Registry | None) -> list[tuple[str, str]]:
    found = None if registry is None else registry.get(tool)
    schema = {} if found is None else found.input_schema
    required, properties = schema.get("required"), schema.get("properties")
    if not isinstance(required, (list, tuple)) or not isinstance(properties, dict):
        return []
    names = [name for name in required if isinstance(name, str) and _PARAM.fullmatch(name)]
    return [(name, _type_of(properties.get(name))) for name in dict.fromkeys(names)]


def _type_of(schema: Any) -> str:
    kind = schema.get("type") if isinstance(schema, dict) else None
    return kind if isinstance(kind, str) and kind in _TYPES else "string"


def _place(params: dict[str, dict[str, Any]], name: str, kind: str) -> str | None:
    """The param for an argument: one of its name, a second one, or none if all are taken."""
    for wanted in (name, f"{name}_2"):
        known = params.get(wanted)
        if known is None and len(params) < MAX_PARAMS:
            params[wanted] = {"name": wanted, "type": kind, "required": True}
            return wanted
    return None
