"""Which tools there are, checked when they come in.

A registry may change while calls run: a call goes on with the tool it began with. Registering is
safe from any thread; listeners are told in the thread that registers.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, Protocol, TypeVar, overload

from seawall.contract.annotations import Risk
from seawall.contract.errors import ConfigurationError, Fault
from seawall.contract.sentences import joined
from seawall.contract.tool import Tool
from seawall.pipeline.schemas import Schemas, schemas_of
from seawall.registry.declarations import SHAPES, Shape, declaration
from seawall.registry.function import tool as make_tool
from seawall.registry.provider_names import Names
from seawall.registry.suggester import Suggester

F = TypeVar("F", bound=Callable[..., Any])

MAX_NAME = 128
MAX_HINTS = 3

OnDuplicate = Literal["error", "replace", "keep"]
OnInvalid = Literal["refuse", "quarantine"]


class Watcher(Protocol):
    """Something that composes chains: told before a tool comes in and after one went."""

    def tool_added(self, tool: Tool) -> None:
        """A tool is about to be callable; raising `ConfigurationError` keeps it out."""
        ...

    def tool_removed(self, name: str) -> None:
        """A tool is gone."""
        ...


class Registry:
    """Tools by name, in the order they came."""

    def __init__(self, tools: Iterable[Tool | Callable[..., Any]] = ()) -> None:
        self._tools: dict[str, Tool] = {}
        self._quarantined: dict[str, str] = {}
        self._schemas: dict[str, tuple[Tool, Schemas]] = {}
        self._suggester = Suggester()
        self._categories: tuple[str, ...] | None = None
        self._watchers: weakref.WeakSet[Watcher] = weakref.WeakSet()
        self._lock = threading.RLock()
        self._provider_names = Names()
        self._register_all(tools)

    @property
    def provider_names(self) -> Names:
        """The names under which providers know the tools, and the way back.

        Others may be put in their place, such as those of an earlier run; raises
        `ConfigurationError` if one of them would be another tool's own name.
        """
        return self._provider_names

    @provider_names.setter
    def provider_names(self, names: Names) -> None:
        with self._lock:
            faults = [fault for name in self._tools for fault in _declared_faults(name, names)]
            if faults:
                raise ConfigurationError(faults)
            self._provider_names = names

    def _register_all(self, tools: Iterable[Tool | Callable[..., Any]]) -> None:
        faults: list[Fault] = []
        for item in tools:
            try:
                self.register(item)
            except ConfigurationError as error:
                faults.extend(error.faults)
        if faults:
            raise ConfigurationError(faults)

    def register(
        self,
        tool: Tool | Callable[..., Any],
        *,
        on_duplicate: OnDuplicate = "error",
        on_invalid: OnInvalid = "refuse",
        aside: str | None = None,
    ) -> Tool:
        """Add a tool; a plain function becomes one by its signature.

        Name, duplicate and schemas are checked, and all faults are told in one
        `ConfigurationError`. With `on_invalid="quarantine"` a tool whose schema is no good is kept
        visible with the reason, and calls of it are refused. `aside` is a reason for which it is
        set aside in any case. Gives the tool that now has the name.
        """
        if not isinstance(tool, Tool):
            tool = make_tool(tool)
        with self._lock:
            known = self._tools.get(tool.name)
            if known is not None and on_duplicate == "keep":
                return known
            faults = name_faults(tool.name) or _declared_faults(tool.name, self._provider_names)
            if known is not None and on_duplicate == "error":
                faults.append(
                    Fault("is registered already; pass on_duplicate='replace' or 'keep'", tool.name)
                )
            executor: Any = tool.executor
            if not callable(executor):
                faults.append(
                    Fault(
                        "has no callable executor; give the function that does the work",
                        f"{tool.name}.executor",
                    )
                )
            schemas, broken = _compiled(tool)
            if faults or (broken and on_invalid == "refuse"):
                raise ConfigurationError([*faults, *broken])
            if aside is not None:
                schemas, broken = None, [*broken, Fault(aside)]
            self._take_in(tool, schemas, broken)
            return tool

    def schemas(self, tool: Tool) -> Schemas | None:
        """What the schemas of a tool compiled to when it came in; None if it is not here.

        While a tool is coming in, its watchers find it here already.
        """
        known, schemas = self._schemas.get(tool.name, (None, None))
        return schemas if known is tool else None

    def _take_in(self, tool: Tool, schemas: Schemas | None, broken: Sequence[Fault]) -> None:
        # Before anything is changed: a chain that cannot be composed keeps the tool out.
        if schemas is None:
            self._tell_removed(tool.name)
            self._quarantined[tool.name] = joined(str(fault) for fault in broken)[:1_000]
            self._schemas.pop(tool.name, None)
        else:
            self._admit(tool, schemas)
            self._quarantined.pop(tool.name, None)
        self._suggester.add(tool.name)
        self._tools[tool.name] = tool
        self._categories = None

    def _admit(self, tool: Tool, schemas: Schemas) -> None:
        before = self._schemas.get(tool.name)
        self._schemas[tool.name] = (tool, schemas)
        try:
            self._tell_added(tool)
        except BaseException:
            if before is None:
                del self._schemas[tool.name]
            else:
                self._schemas[tool.name] = before
            raise

    def _tell_added(self, tool: Tool) -> None:
        known = None if tool.name in self._quarantined else self._tools.get(tool.name)
        told: list[Watcher] = []
        try:
            for watcher in tuple(self._watchers):
                watcher.tool_added(tool)
                told.append(watcher)
        except BaseException:
            for watcher in told:
                if known is None:
                    watcher.tool_removed(tool.name)
                else:
                    watcher.tool_added(known)
            raise

    def _tell_removed(self, name: str) -> None:
        if name in self._tools and name not in self._quarantined:
            for watcher in tuple(self._watchers):
                watcher.tool_removed(name)

    @overload
    def tool(self, function: F) -> F: ...

    @overload
    def tool(self, **fields: Any) -> Callable[[F], F]: ...

    def tool(self, function: F | None = None, **fields: Any) -> F | Callable[[F], F]:
        """Register a function, as a decorator; gives the function back unchanged."""

        def decorate(function: F) -> F:
            self.register(make_tool(function, **fields))
            return function

        return decorate if function is None else decorate(function)

    def unregister(self, name: str) -> Tool | None:
        """Remove a tool; calls that run go on. Gives it, or None if there was none."""
        with self._lock:
            self._tell_removed(name)
            tool = self._tools.pop(name, None)
            self._quarantined.pop(name, None)
            self._schemas.pop(name, None)
            if tool is not None:
                self._suggester.remove(name)
                self._categories = None
            return tool

    def get(self, name: str) -> Tool | None:
        """The tool of exactly this name."""
        return self._tools.get(name)

    def own_name(self, name: str) -> str | None:
        """The name of the tool that a model means: its own, or what `declarations` called it.

        None if no tool that is here is meant. A name that was declared for one tool never means
        another: none can be registered under it.
        """
        if name in self._tools:
            return name
        original = self._provider_names.original(name)
        return original if original in self._tools else None

    def names(self) -> tuple[str, ...]:
        """All names, in the order they came."""
        return tuple(self._tools)

    def quarantined(self) -> Mapping[str, str]:
        """Tools that are set aside, each with the reason."""
        return dict(self._quarantined)

    def quarantine_reason(self, name: str) -> str | None:
        """Why a tool is set aside, or None."""
        return self._quarantined.get(name) if self._quarantined else None

    def copy(self, *, excluding: Iterable[str] = (), into: Registry | None = None) -> Registry:
        """Copy all tools but `excluding`, for a sub-agent that must not call its own caller.

        A name in `excluding` that is not registered is an error: it may be misspelt.
        """
        left_out = set(excluding)
        missing = sorted(left_out - set(self._tools))
        if missing:
            raise ConfigurationError(
                [
                    Fault("is not registered, so it cannot be excluded; name one that is", name)
                    for name in missing
                ]
            )
        target = Registry() if into is None else into
        for name, tool in tuple(self._tools.items()):
            if name not in left_out:
                reason = self._quarantined.get(name)
                how: OnInvalid = "refuse" if reason is None else "quarantine"
                target.register(tool, on_duplicate="error", on_invalid=how, aside=reason)
        return target

    def declarations(self, shape: Shape = "mcp") -> list[dict[str, Any]]:
        """What a model API is told of the tools; quarantined ones are left out.

        In the shapes of providers tools have the names of `provider_names`, under which they are
        called back.
        """
        if shape not in SHAPES:
            raise ConfigurationError(f"shape {shape!r} is not known; use {', '.join(SHAPES)}")
        if shape == "mcp":
            return [declaration(tool) for tool in self._declared()]
        return [declaration(tool, shape, name) for name, tool in self.declared().items()]

    def declared(self) -> dict[str, Tool]:
        """The tools by the names under which `declarations` shows them to providers."""
        with self._lock:
            tools = self._declared()
            names = self._provider_names.export(tool.name for tool in tools)
        return dict(zip(names, tools, strict=True))

    def _declared(self) -> list[Tool]:
        return [tool for name, tool in tuple(self._tools.items()) if name not in self._quarantined]

    def overview(self, by: str = "category") -> str:
        """A short list for a prompt, grouped by `category`, `family` or `risk`."""
        if by not in ("category", "family", "risk"):
            said = f"an overview is by one of category, family and risk, not by {by!r}"
            raise ConfigurationError(said)
        groups: dict[str, list[Tool]] = {}
        for name, tool in tuple(self._tools.items()):
            if name not in self._quarantined:
                groups.setdefault(_group(tool, by), []).append(tool)
        lines: list[str] = []
        for group in sorted(groups):
            lines.append(f"{group}:")
            lines.extend(
                f"  {tool.name}: {_first_line(tool.description)}" for tool in groups[group]
            )
        return "\n".join(lines)

    def categories(self) -> tuple[str, ...]:
        """The categories there are, sorted."""
        with self._lock:
            if self._categories is None:
                self._categories = tuple(sorted({tool.category for tool in self._tools.values()}))
            return self._categories

    def suggest(
        self, name: str, *, allowed: Callable[[str], bool] | None = None
    ) -> tuple[str, ...]:
        """At most three names near an unknown one; never one the caller may not use."""
        with self._lock:
            return self._suggester.suggest(name, limit=MAX_HINTS, allowed=allowed)

    def watch(self, watcher: Watcher) -> None:
        """Tell `watcher` of tools that come and go, for as long as it lives."""
        self._watchers.add(watcher)

    def __len__(self) -> int:
        return len(self._tools)

    def __iter__(self) -> Iterator[Tool]:
        return iter(tuple(self._tools.values()))

    def __contains__(self, name: object) -> bool:
        return name in self._tools


def name_faults(name: Any) -> list[Fault]:
    """Say what is wrong with a tool's name: a text, 1 to 128 printable characters, not padded."""
    if not isinstance(name, str):
        return [Fault(f"a tool's name must be a text, not {type(name).__name__}", "name")]
    shown = name[:40]
    if not name.strip():
        return [Fault("a tool's name must not be blank", "name")]
    faults = []
    if len(name) > MAX_NAME:
        faults.append(Fault(f"the name has {len(name)} characters, {MAX_NAME} at most", shown))
    if name != name.strip() or not name.isprintable():
        faults.append(Fault("the name has blanks around it or unprintable characters", shown))
    return faults


def _declared_faults(name: str, names: Names) -> list[Fault]:
    """Say if a model would mean another tool by this name."""
    original = names.original(name)
    if original in (None, name):
        return []
    said = (
        f"was declared to a provider as the name of {original!r}, so a model that calls it means"
        " that one; give this tool another name"
    )
    return [Fault(said, name)]


def _compiled(tool: Tool) -> tuple[Schemas | None, Sequence[Fault]]:
    """Compile a tool's schemas, or say what is wrong with them."""
    try:
        return schemas_of(tool), ()
    except ConfigurationError as error:
        return None, error.faults


def _group(tool: Tool, by: str) -> str:
    if by == "risk":
        return Risk(tool.effective_risk).name
    return tool.category if by == "category" else tool.family or "none"


def _first_line(text: str) -> str:
    line = text.strip().split("\n", 1)[0]
    return line if len(line) <= 120 else line[:119] + "…"
