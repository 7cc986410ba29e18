"""Make a registry from whatever the user already has, as long as it is Python's own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import ModuleType
from typing import Any

from seawall.contract.errors import ConfigurationError, Fault
from seawall.contract.tool import Tool
from seawall.registry.function import tool as make_tool
from seawall.registry.registry import Registry


def wrap(source: Any) -> Registry:
    """Make a `Registry` of a registry, a tool, a function, a list of them, or a mapping by name.

    A module gives the tools it defines. Anything else is a `ConfigurationError`.
    """
    if isinstance(source, Registry):
        return source
    if isinstance(source, (Tool,)) or _is_function(source):
        return Registry([source])
    if isinstance(source, ModuleType):
        return Registry(item for item in vars(source).values() if isinstance(item, Tool))
    if isinstance(source, Mapping):
        return Registry(_named(source))
    if isinstance(source, Iterable) and not isinstance(source, (str, bytes)):
        return Registry(_each(source))
    raise ConfigurationError(
        f"cannot make a registry of {type(source).__name__}: give a Registry, tools, functions, a"
        " list or a mapping of them"
    )


def _is_function(thing: Any) -> bool:
    return callable(thing) and not isinstance(thing, type)


def _each(items: Iterable[Any]) -> list[Tool | Callable[..., Any]]:
    found, faults = [], []
    for position, item in enumerate(items):
        if isinstance(item, Tool) or _is_function(item):
            found.append(item)
        else:
            faults.append(Fault(f"is {type(item).__name__}, no tool or function", f"[{position}]"))
    if faults:
        raise ConfigurationError(faults)
    return found


def _named(source: Mapping[Any, Any]) -> list[Tool]:
    found, faults = [], []
    for name, item in source.items():
        if isinstance(item, Tool):
            found.append(item if item.name == name else _renamed(item, name))
        elif _is_function(item):
            found.append(make_tool(item, name=name))
        else:
            faults.append(Fault(f"is {type(item).__name__}, no tool or function", str(name)))
    if faults:
        raise ConfigurationError(faults)
    return found


def _renamed(tool: Tool, name: str) -> Tool:
    import msgspec  # noqa: PLC0415  # only for mappings that rename

    return msgspec.structs.replace(tool, name=name)
