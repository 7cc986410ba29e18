"""What `seawall mcp` does: look at servers, and at the definitions of their tools."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

import msgspec

from seawall.contract.errors import ConfigurationError, Fault
from seawall.edges.cli.exits import Exit
from seawall.edges.cli.mcp_sources import connected
from seawall.edges.mcp.pins import Pins
from seawall.registry.registry import Registry

if TYPE_CHECKING:
    from seawall.edges.cli.mcp_sources import McpChoice
    from seawall.edges.cli.paper import Paper
    from seawall.edges.mcp.pins import Change
    from seawall.edges.mcp.server import ServerState

COLUMNS = ("server", "state", "transport", "revision", "trusted", "tools", "set aside")


def servers(mcp: McpChoice, paper: Paper, errors: Paper, *, as_json: bool) -> Exit:
    """Connect, say how the servers do, and leave."""
    if not mcp:
        raise ConfigurationError(
            [Fault("is missing; give the file that names the servers", "--mcp-config")]
        )

    async def look() -> tuple[list[ServerState], set[str]]:
        async with connected(mcp, errors, Registry()) as found:
            return found.states(), set(found.registry.quarantined())

    states, aside = asyncio.run(look())
    if as_json:
        paper.text(json.dumps([msgspec.to_builtins(state) for state in states]))
    elif not states:
        errors.line(f"{', '.join(mcp.files)} names no server.")
    else:
        paper.table(COLUMNS, [_row(state, aside) for state in states])
    wanted = [state for state in states if state.state != "idle"]
    return Exit.OK if all(state.state == "up" for state in wanted) else Exit.TOOL_FAILED


def _row(state: ServerState, aside: set[str]) -> tuple[str, ...]:
    held = len(aside.intersection(state.tools))
    return (
        state.name,
        state.why if state.state == "idle" else state.state,
        state.transport,
        state.version,
        "yes" if state.trusted else "no",
        str(len(state.tools)),
        str(held) if held else "",
    )


def show(mcp: McpChoice, paper: Paper, *, as_json: bool) -> Exit:
    """Show the changes that wait, each with the command that accepts it."""
    pins = _pins(mcp)
    changes = pins.changes()
    if as_json:
        paper.text(json.dumps({"file": str(_path(mcp)), "changes": list(map(_data, changes))}))
    elif changes:
        for change in changes:
            _show(change, paper)
    else:
        held = pins.counts()
        tools = _count(sum(held.values()), "definition")
        paper.text(f"{tools} of {_count(len(held), 'server')} are accepted; none has changed.")
    return Exit.TOOL_FAILED if changes else Exit.OK


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def accept(mcp: McpChoice, named: tuple[str, str, str], paper: Paper) -> None:
    """Accept one change."""
    change = _pins(mcp).accept(*named)
    paper.text(f"{change.server} {change.tool}: accepted {change.digest}.")


def _path(mcp: McpChoice) -> object:
    if not mcp and mcp.pins is None:
        said = "says where accepted definitions are kept; give it, or --mcp-config"
        raise ConfigurationError([Fault(said, "--pins")])
    return mcp.pins_path


def _pins(mcp: McpChoice) -> Pins:
    _path(mcp)
    return Pins(mcp.pins_path)


def _data(change: Change) -> dict[str, object]:
    return {**msgspec.to_builtins(change), "digest": change.digest, "fields": list(change.fields)}


def _show(change: Change, paper: Paper) -> None:
    paper.line((f"{change.server} {change.tool}", "bold"), f"  {', '.join(change.fields)} changed")
    for line in change.difference():
        paper.line((line, {"+": "green", "-": "red"}.get(line[0], "dim")), lead="  ")
    paper.line(f"Accept it: {change.command}")
    paper.line("")
