"""Make a registry from whatever the user already has, without importing what it is not made of."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any, Protocol, cast

import msgspec

from seawall.contract.errors import ConfigurationError, Fault
from seawall.contract.tool import Tool
from seawall.pipeline.extras import imported, version_of
from seawall.registry.function import tool as make_tool
from seawall.registry.registry import Registry
from seawall.registry.tool_dicts import Dispatch, tools_of_dicts

if TYPE_CHECKING:
    from seawall.contract.annotations import Annotations


class Adapter(Protocol):
    """A module that knows the tools of one framework."""

    def tools_of(self, source: Any) -> Iterable[Tool] | None:
        """Make tools of a tool, a toolset or a server; None for what is none of its kind."""
        ...


ADAPTERS = {
    "agents": "seawall.edges.adapters.openai_agents",
    "fastmcp": "seawall.edges.adapters.fastmcp",
    "langchain_core": "seawall.edges.adapters.langchain",
    "mcp": "seawall.edges.mcp.adapter",
    "pydantic_ai": "seawall.edges.adapters.pydantic_ai",
    "seawall": "seawall.edges.mcp.adapter",
}
"""Who is asked about objects whose classes come from a package; imported when one is seen. What of
ours is a tool already was looked at before."""

EXTRAS = {
    "agents": "openai-agents",
    "langchain_core": "langchain",
    "pydantic_ai": "pydantic-ai",
}
"""The extra of a package, where it is called otherwise."""

DISTRIBUTIONS = {"langchain": "langchain-core", "pydantic-ai": "pydantic-ai-slim"}
"""What an extra installs, where it is called otherwise."""


_SERVERS = (
    "names MCP servers, which have to be connected: servers = await connect(configuration), from"
    " seawall.edges.mcp; their tools are servers.registry"
)


def wrap(
    source: Any,
    *,
    dispatch: Dispatch | None = None,
    annotations: Mapping[str, Annotations] | None = None,
) -> Registry:
    """Make a `Registry` of what holds tools: your own functions, or a framework's tools.

    That is a registry, a tool, a function, a module, a list of them or a mapping by name; a tool or
    a toolset of LangChain, Pydantic AI, OpenAI Agents or a FastMCP server; or, with `dispatch`, the
    dictionaries that OpenAI and Anthropic take. `dispatch` is a function of name and arguments, or
    a mapping of functions. `annotations` says by name what a tool does, where its framework has no
    words for it: only what is known to be safe is tried again.

    Sessions and servers of MCP have to be asked for their tools, which `wrap` cannot wait for: the
    error says how it is done. Anything else is a `ConfigurationError` too. A framework's tool whose
    schema is no good is quarantined.
    """
    if isinstance(source, Registry) and not annotations:
        return source
    tools = tools_of_dicts(source, dispatch) if dispatch is not None else _tools(source)
    registry = Registry()
    faults: list[Fault] = []
    for tool in _annotated(tools, annotations or {}):
        try:
            registry.register(tool, on_invalid="quarantine" if tool.imported else "refuse")
        except ConfigurationError as error:
            faults.extend(error.faults)
    if faults:
        raise ConfigurationError(faults)
    return registry


def _tools(source: Any) -> list[Tool]:
    if isinstance(source, (Registry, ModuleType)):
        items = source if isinstance(source, Registry) else vars(source).values()
        return [item for item in items if isinstance(item, Tool)]
    found = _tools_of(source)
    if found is not None:
        return found
    if isinstance(source, Mapping):
        if isinstance(source.get("mcpServers"), Mapping):
            raise ConfigurationError(_SERVERS)
        return _each(((str(name), item) for name, item in source.items()), _named)
    if isinstance(source, Iterable) and not isinstance(source, (str, bytes)):
        return _each(((f"[{n}]", item) for n, item in enumerate(source)), lambda tools, _: tools)
    raise ConfigurationError(
        f"cannot make a registry of {type(source).__name__}: give a Registry, tools, functions, a"
        " list or a mapping of them, or the tools of a framework"
    )


def _tools_of(thing: Any) -> list[Tool] | None:
    """The tools that one thing is; None if it is none."""
    if isinstance(thing, Tool):
        return [thing]
    for adapter in _adapters(thing):
        found = adapter.tools_of(thing)
        if found is not None:
            return list(found)
    if callable(thing) and not isinstance(thing, type):
        return [make_tool(thing)]
    return None


def _adapters(thing: Any) -> Iterator[Adapter]:
    packages = dict.fromkeys(kind.__module__.partition(".")[0] for kind in type(thing).__mro__)
    for package in packages:
        adapter = _adapter(package) if package in ADAPTERS else None
        if adapter is not None:
            yield adapter


def _adapter(package: str) -> Adapter | None:
    """Who knows a framework; None for somebody's own package of that name, such as `agents`."""
    extra = EXTRAS.get(package, package)
    distribution = DISTRIBUTIONS.get(extra, extra)
    try:
        return cast("Adapter", imported(ADAPTERS[package], extra, distribution))
    except ConfigurationError:
        if version_of(distribution) is None:
            return None
        raise


def _each(
    items: Iterable[tuple[str, Any]], called: Callable[[list[Tool], str], list[Tool]]
) -> list[Tool]:
    found: list[Tool] = []
    faults: list[Fault] = []
    for where, item in items:
        tools = _tools_of(item)
        if tools is not None:
            found += called(tools, where)
        elif isinstance(item, Mapping):
            said = "is a dictionary; give `dispatch`, which runs what dictionaries declare"
            faults.append(Fault(said, where))
        else:
            faults.append(
                Fault(f"is {type(item).__name__}, no tool or function; give one of those", where)
            )
    if faults:
        raise ConfigurationError(faults)
    return found


def _named(tools: list[Tool], name: str) -> list[Tool]:
    """Call a tool what the mapping calls it; a toolset keeps the names of its tools."""
    if len(tools) != 1 or tools[0].name == name:
        return tools
    return [msgspec.structs.replace(tools[0], name=name)]


def _annotated(tools: Iterable[Tool], annotations: Mapping[str, Annotations]) -> list[Tool]:
    found = [
        msgspec.structs.replace(tool, annotations=annotations[tool.name])
        if tool.name in annotations
        else tool
        for tool in tools
    ]
    unknown = sorted(set(annotations) - {tool.name for tool in found})
    if unknown:
        said = "is no tool here; name one of those that are wrapped"
        raise ConfigurationError([Fault(said, f"annotations.{n}") for n in unknown])
    return found
