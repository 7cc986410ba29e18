"""What a policy asks for that a replay cannot do, by tool, so that nobody takes it for done."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from seawall.contract.policy import RunPolicy
    from seawall.contract.tool import Tool
    from seawall.recording.trace_file import About, Trace

_DECIDED_AGAIN = ("gate_mode", "check_mode", "coercion", "output")


def unplayed(
    trace: Trace,
    tools: Mapping[str, Tool],
    candidate: Mapping[str, RunPolicy],
    live: Mapping[str, RunPolicy] | None = None,
) -> dict[str, tuple[str, ...]]:
    """Tell for each tool what has no effect in a replay; tools of which all is played are left out.

    `live` are the policies that were recorded under, where they are known.
    """
    effects = {call.tool for call in trace.calls if call.layer == "ledger"}
    found = {}
    for name, tool in tools.items():
        policy = candidate[name]
        said = [*_of_policy(tool, policy), *_of_tool(trace.tools.get(name), tool)]
        if name in effects:
            said.append("ledger: idempotency keys are not in a trace")
        if live is not None:
            changed = [key for key in _DECIDED_AGAIN if _differs(key, policy, live[name])]
            said += [f"{key}: what was let through or refused stays so" for key in changed]
        if said:
            found[name] = tuple(said)
    return found


def _differs(key: str, one: RunPolicy, other: RunPolicy) -> bool:
    return bool(getattr(one, key) != getattr(other, key))


def _of_policy(tool: Tool, policy: RunPolicy) -> Iterator[str]:
    if policy.idle_timeout_s is not None:
        yield "idle_timeout_s: when a tool reported is not in a trace; what was idle stays so"
    if policy.breaker is not None and policy.breaker.ignore:
        yield "breaker.ignore: types of errors are not in a trace"
    fallback = policy.fallback
    if fallback is not None and fallback.tool not in (None, tool.name):
        yield f"fallback.tool: {fallback.tool} answers as it did, within no limits of its own"


def _of_tool(about: About | None, tool: Tool) -> Iterator[str]:
    key = tool.exclusive or (None if about is None else about.exclusive)
    if key is not None and key.startswith("$"):
        yield f"exclusive: the argument {key[1:]} is not in a trace"
    if isinstance(tool.duration, str):
        yield f"duration: the argument {tool.duration} is not in a trace"
