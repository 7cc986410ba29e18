"""`seawall policy check`, `explain`, `diff` and `schema`."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from seawall.contract.errors import ConfigurationError, Fault
from seawall.edges.cli.brief import plain, write_alike, write_brief
from seawall.edges.cli.exits import Exit
from seawall.edges.cli.sources import (
    policies_from,
    policy_path,
    registry_from,
    told_of_bundled,
)
from seawall.orchestration.unknown import no_such_tool
from seawall.policy.differences import differences
from seawall.policy.model import Policies
from seawall.policy.schema import policy_schema

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from seawall.edges.cli.paper import Paper
    from seawall.policy.differences import Difference
    from seawall.registry.registry import Registry

MAX_CONFIG_BYTES = 4 * 1024 * 1024


class CheckOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What the command line said about `check`."""

    registry: str | None = None
    mcp_config: str | None = None
    strict: bool = False
    as_json: bool = False


class DiffOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What the command line said about `diff`."""

    registry: str | None = None
    exit_code: bool = False
    full: bool = False
    as_json: bool = False


class Checked(msgspec.Struct, frozen=True, kw_only=True):
    """What was found in one file."""

    file: str
    faults: tuple[Fault, ...] = ()
    notes: tuple[str, ...] = ()


def check(files: Sequence[str], options: CheckOptions, paper: Paper, errors: Paper) -> Exit:
    """Load each file; tell its faults, or else its notes."""
    registry = None if options.registry is None else registry_from(options.registry)
    servers = None if options.mcp_config is None else servers_in(Path(options.mcp_config))
    found = [_checked(file, registry, servers) for file in files]
    if options.as_json:
        paper.text(msgspec.json.encode(found).decode())
    else:
        for one in found:
            _tell(one, paper, errors)
    failed = any(one.faults or (options.strict and one.notes) for one in found)
    return Exit.USAGE if failed else Exit.OK


def _checked(file: str, registry: Registry | None, servers: Iterable[str] | None) -> Checked:
    try:
        policies = Policies.load(policy_path(file), environment=os.environ)
    except ConfigurationError as error:
        return Checked(file=file, faults=error.faults)
    notes = policies.notes(registry or ())
    if servers is not None:
        notes += policies.server_notes(servers)
    return Checked(file=file, notes=notes)


def _tell(found: Checked, paper: Paper, errors: Paper) -> None:
    for fault in found.faults:
        errors.line(str(fault), lead="error: ")
    for note in found.notes:
        errors.line(note, lead="note: ")
    if not found.faults:
        said = f", {len(found.notes)} to look at" if found.notes else ""
        paper.text(f"{found.file}: can be used{said}")


def servers_in(path: Path) -> tuple[str, ...]:
    """Name the servers of a client's configuration, under `mcpServers` or `servers`."""
    try:
        if path.stat().st_size > MAX_CONFIG_BYTES:
            said = f"has more than {MAX_CONFIG_BYTES:,} bytes; give a client's configuration"
            raise ConfigurationError([Fault(said, file=str(path))])
        config = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        said = f"cannot be read: {error.strerror or type(error).__name__}"
        raise ConfigurationError([Fault(said, file=str(path))]) from None
    except (ValueError, RecursionError) as error:
        raise ConfigurationError([Fault(f"is no JSON: {error}", file=str(path))]) from None
    for key in ("mcpServers", "servers"):
        if isinstance(config, dict) and isinstance(config.get(key), dict):
            return tuple(config[key])
    said = "has no object mcpServers or servers; give a client's configuration of servers"
    raise ConfigurationError([Fault(said, file=str(path))])


class ExplainOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What the command line said about `explain`."""

    registry: str | None = None
    policy: str | None = None
    full: bool = False
    as_json: bool = False


def explain(name: str, options: ExplainOptions, paper: Paper, errors: Paper) -> Exit:
    """Write one tool's policy by the rules that gave it; in full, a value a line."""
    registry = registry_from(options.registry)
    policies = policies_from(options.policy) or Policies.default()
    tool = registry.get(name)
    if tool is None:
        errors.line(no_such_tool(registry, name, "").render())
        told_of_bundled(errors, options.registry)
        return Exit.NOT_FOUND
    found = policies.explain(tool)
    if options.as_json:
        said = {key: {"value": given.value, "rule": given.rule} for key, given in found.items()}
        paper.text(json.dumps(said, ensure_ascii=False, default=str))
        return Exit.OK
    if options.full:
        rows = [(key, plain(given.value), given.rule) for key, given in found.items()]
        paper.table(("setting", "value", "by the rule"), rows)
    else:
        write_brief(found, lambda _, value: plain(value), paper, ": see --full")
    note = policies.duration_note(tool)
    if note:
        errors.line(note, lead="note: ")
    return Exit.OK


def diff(before: str, after: str, options: DiffOptions, paper: Paper) -> Exit:
    """Write what changes, tool by tool."""
    registry = registry_from(options.registry)
    old, new = Policies.load(policy_path(before)), Policies.load(policy_path(after))
    found = differences(old, new, registry)
    if options.as_json:
        paper.text(json.dumps(msgspec.to_builtins(found), ensure_ascii=False, default=str))
    elif not found:
        paper.text(f"No difference for {len(registry)} tools.")
    elif options.full:
        paper.table(("tool", "setting", "before", "after", "by the rule"), list(map(_row, found)))
    else:
        write_alike(found, len(registry), paper)
    return Exit.TOOL_FAILED if found and options.exit_code else Exit.OK


def _row(one: Difference) -> tuple[str, ...]:
    rule = one.rule_after
    if one.rule_before and one.rule_before != one.rule_after:
        rule = f"{one.rule_after}, before: {one.rule_before}"
    return (one.tool or "(all)", one.key, plain(one.before), plain(one.after), rule)


def schema(paper: Paper) -> None:
    """Write the JSON Schema of policy files."""
    paper.text(schema_text().rstrip("\n"))


def schema_text() -> str:
    """Give the schema as the file `policies/policy.schema.json` has it."""
    return json.dumps(policy_schema(), indent=2, ensure_ascii=False) + "\n"
