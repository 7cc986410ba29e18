"""Answers to calls of names that cannot be called: nothing is run and nothing is spent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from seawall.contract.failure import FailureCode
from seawall.contract.result import ToolResult
from seawall.pipeline.foreign import masked

if TYPE_CHECKING:
    from collections.abc import Callable

    from seawall.registry.registry import Registry

MAX_SHOWN = 80
MAX_CATEGORIES = 20


def no_such_tool(
    registry: Registry, name: Any, call_id: str, *, allowed: Callable[[str], bool] | None = None
) -> ToolResult:
    """Say which names are near, or which categories there are; never the whole list.

    A name for which `allowed` says no is never a hint.
    """
    asked = name if isinstance(name, str) else ""
    hints = registry.suggest(asked, allowed=allowed)
    count = len(registry)
    there_are = {0: "there are no tools", 1: "there is 1 tool"}.get(
        count, f"there are {count} tools"
    )
    if hints:
        near = ", ".join(hints)
        guidance = (
            f"Nothing was run. Near names: {near}. Call one of them only if it is what you meant."
        )
    elif count:
        kinds = registry.categories()
        more = ", …" if len(kinds) > MAX_CATEGORIES else ""
        guidance = (
            f"Nothing was run. No name is near; the tools there are belong to:"
            f" {', '.join(kinds[:MAX_CATEGORIES])}{more}. Do not guess names."
        )
    else:
        guidance = "Nothing was run. Go on without tools."
    return ToolResult.failed(
        FailureCode.NOT_FOUND,
        f"no tool has the name {shown(asked)}; {there_are}"
        if asked
        else f"the call names no tool; {there_are}",
        call_id=call_id,
        tool=asked[:MAX_SHOWN],
        reason="tool_not_found",
        guidance=guidance,
        layer="registry",
        hints=hints,
        may_have_run=False,
    )


def quarantined(name: str, reason: str, call_id: str) -> ToolResult:
    """Say that a tool is set aside, and why."""
    return ToolResult.failed(
        FailureCode.UNSUPPORTED,
        f"{name} is set aside, as its declaration is faulty: {reason[:300]}",
        call_id=call_id,
        tool=name,
        reason="tool_quarantined",
        layer="registry",
        may_have_run=False,
    )


def shown(name: str) -> str:
    """Quote a name that a model made up: bounded, printable, masked."""
    head = masked(name[:MAX_SHOWN])
    printable = "".join(char if char.isprintable() else "?" for char in head)
    printable = printable.encode("utf-8", "replace").decode()
    return f'"{printable}…"' if len(name) > MAX_SHOWN else f'"{printable}"'
