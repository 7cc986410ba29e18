"""What is allowed in a policy but was probably not meant; said when it is loaded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rapidfuzz import fuzz, process

from seawall.layers.timeout import DURATION_MARGIN_S, shown_seconds
from seawall.policy.changes import Changes

if TYPE_CHECKING:
    from collections.abc import Collection

    from seawall.contract.policy import RunPolicy
    from seawall.contract.tool import Tool
    from seawall.policy.explain import Given

_CLOSE = 80
"""Of 100: a rule for a tool that is simply not there is no mistake, a misspelt one is."""


def duration_note(tool: Tool, timeout: Given) -> str | None:
    """Say that a tool's known duration does not widen the timeout that was given to it by name."""
    if timeout.value is None or tool.duration is None:
        return None
    limit = f"{timeout.rule} gives {tool.name} {shown_seconds(timeout.value)}"
    if isinstance(tool.duration, str):
        return f"{limit}; its argument {tool.duration!r}, which holds its duration, widens nothing"
    if tool.duration + DURATION_MARGIN_S <= timeout.value:
        return None
    return f"{limit}, although it takes {shown_seconds(tool.duration)} by its own word"


def default_note(default: RunPolicy | Changes | None, where: str) -> str | None:
    """Say that a default of single values leaves most tools without a timeout."""
    if not isinstance(default, Changes) or default.preset or "timeout_s" in default.values:
        return None
    return (
        f"{where} gives neither preset nor timeout_s: tools of which nothing else is said have no"
        " timeout (write timeout_s = false if that is meant)"
    )


def idle_note(where: str, name: str | None, tools: Collection[str], *, is_own: bool) -> str | None:
    """Say that what stands in a policy fits no tool, if that is probably a mistake.

    It is if a name is nearly the same; and in a file of one's own, which is written for the tools
    that there are, always. `name` is None for what chooses tools by something else.
    """
    shown = "" if name is None or name in where else f" {name!r}"
    if name is not None:
        found = process.extractOne(name, tools, scorer=fuzz.ratio, score_cutoff=_CLOSE)
        if found:
            return f"{where}{shown} fits no tool; did you mean {found[0]}?"
    return f"{where}{shown} fits no tool" if is_own else None
