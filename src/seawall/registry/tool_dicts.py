"""Tools that are declared as dictionaries, and run by a dispatcher of the user's own.

The shapes are those that OpenAI (both APIs) and Anthropic take: what a program sends to a model
already, made into tools.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from seawall.contract.annotations import Annotations
from seawall.contract.errors import ConfigurationError, Fault
from seawall.contract.tool import Executor, Tool

Dispatch = Callable[[str, dict[str, Any]], Any] | Mapping[str, Callable[..., Any]]
"""`dispatch(name, arguments)`, or functions by name that take the arguments by theirs.

Plain functions run in a worker thread.
"""


def tools_of_dicts(source: Any, dispatch: Dispatch) -> list[Tool]:
    """Make tools of dictionaries; raises `ConfigurationError` for what has none of the shapes."""
    if isinstance(source, Mapping):
        source = [source]
    if not isinstance(source, Iterable) or isinstance(source, (str, bytes)):
        kind = type(source).__name__
        raise ConfigurationError(f"`dispatch` wants dictionaries that declare tools, not {kind}")
    found: list[Tool] = []
    faults: list[Fault] = []
    for position, declared in enumerate(source):
        try:
            found.append(_tool(declared, dispatch))
        except _Shapeless as fault:
            faults.append(Fault(str(fault), f"[{position}]"))
    if faults:
        raise ConfigurationError(faults)
    return found


class _Shapeless(Exception):  # noqa: N818  # says what is wrong with a declaration
    pass


def _tool(declared: Any, dispatch: Dispatch) -> Tool:
    name, description, schema = _declaration(declared)
    if not isinstance(name, str) or not name:
        raise _Shapeless("has no `name`")
    return Tool(
        name=name,
        description=description if isinstance(description, str) else "",
        input_schema=schema if schema is not None else {"type": "object", "properties": {}},
        executor=_executor(name, dispatch),
        annotations=Annotations.from_mcp(_hints(declared)),
        examples=_examples(declared),
        imported=True,
    )


def _declaration(declared: Any) -> tuple[Any, Any, Any]:
    """Name, description and schema, in whichever shape they are."""
    if not isinstance(declared, Mapping):
        raise _Shapeless(f"is {type(declared).__name__}, no dictionary that declares a tool")
    function = declared.get("function")
    if isinstance(function, Mapping):
        return function.get("name"), function.get("description"), function.get("parameters")
    kind = declared.get("type", "custom")
    if "input_schema" in declared or "inputSchema" in declared:
        schema = declared.get("input_schema", declared.get("inputSchema"))
    elif kind == "function":
        schema = declared.get("parameters")
    else:
        raise _Shapeless(f"is of type {kind!r}: its provider runs it, and not a dispatcher")
    return declared.get("name"), declared.get("description"), schema


def _hints(declared: Mapping[str, Any]) -> Mapping[str, Any] | None:
    hints = declared.get("annotations")
    return hints if isinstance(hints, Mapping) else None


def _examples(declared: Mapping[str, Any]) -> tuple[tuple[dict[str, Any], Any], ...]:
    examples = declared.get("input_examples") or ()
    return tuple((dict(example), None) for example in examples if isinstance(example, Mapping))


def _executor(name: str, dispatch: Dispatch) -> Executor:
    if not isinstance(dispatch, Mapping):
        run = dispatch
        if _is_async(run):

            async def dispatched(arguments: dict[str, Any], _: Any) -> Any:
                return await run(name, arguments)

            return dispatched
        return lambda arguments, _: run(name, arguments)
    function = dispatch.get(name)
    if not callable(function):
        raise _Shapeless(f"declares {name!r}, for which `dispatch` has no function")
    if _is_async(function):

        async def called(arguments: dict[str, Any], _: Any) -> Any:
            return await function(**arguments)

        return called
    return lambda arguments, _: function(**arguments)


def _is_async(function: Any) -> bool:
    entry = getattr(function, "__call__", None)  # noqa: B004  # the method is looked at, not called
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(entry)
