"""Steps under a name of their own, with parameters: once defined, they are called as one tool.

    shortcuts = Shortcuts(pipeline)
    await shortcuts.define({
        "id": "shortcut.note_page", "name": "Note a page",
        "params": [{"name": "url", "required": True}],
        "steps": [{"tool": "fetch", "arguments": {"url": "{url}"}},
                  {"tool": "note_add", "arguments": {"text": "{0}"}}],
    })
    result = await pipeline.call("shortcut.note_page", {"url": "https://example.org"})

What a shortcut may do to the world is the worst of what its steps may do now: its tool is made anew
whenever one of them changes.
"""

from __future__ import annotations

import asyncio
import functools
from typing import TYPE_CHECKING, Any

import msgspec

from seawall.contract.annotations import Annotations, Risk
from seawall.contract.errors import ConfigurationError, Fault
from seawall.contract.failure import Failure, FailureCode, Issue
from seawall.contract.result import ToolResult
from seawall.contract.sentences import joined
from seawall.contract.shortcut import Shortcut
from seawall.contract.tool import Tool
from seawall.orchestration.batch import ANSWERS_S, DEFAULT_BUDGET_S
from seawall.orchestration.mining import Suggestion, mine
from seawall.orchestration.shortcut_definition import (
    MAX_STEPS,
    Compiled,
    as_given,
    issues_of,
    read_shortcut,
)
from seawall.orchestration.shortcut_store import MemoryShortcuts
from seawall.orchestration.shortcut_tools import DEFINE, LIST, RUN, listed
from seawall.orchestration.step_runner import StepRunner
from seawall.orchestration.steps import StepsFault

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from seawall.contract.span import Span
    from seawall.orchestration.pipeline import Pipeline
    from seawall.orchestration.shortcut_store import ShortcutStore
    from seawall.pipeline.context import ToolContext
    from seawall.pipeline.session import Session

MAX_SHORTCUTS = 200
MAX_NESTED = 4
"""How deep shortcuts may use shortcuts."""


class Defined(msgspec.Struct, frozen=True):
    """A definition that was accepted."""

    shortcut: Shortcut
    replaced: bool
    """Whether another one had its id before."""


def _kept_by(pipeline: Pipeline) -> ShortcutStore | None:
    return None if pipeline.state is None else pipeline.state.shortcuts


class Shortcuts:
    """The shortcuts of a pipeline; `tools` are what a model manages them with.

    Definitions are kept in `store`, else in the pipeline's state, in memory if there is none;
    `load` brings back what is there.
    """

    def __init__(self, pipeline: Pipeline, store: ShortcutStore | None = None) -> None:
        self._pipeline = pipeline
        self._registry = pipeline.registry
        self._runner = StepRunner.of(pipeline)
        self._store = store or _kept_by(pipeline) or MemoryShortcuts()
        self._compiled: dict[str, Compiled] = {}
        self._changing = asyncio.Lock()
        self.tools: tuple[Tool, ...] = (
            DEFINE.tool(self._define_tool),
            LIST.tool(self._list_tool),
            RUN.tool(self._run_tool),
        )
        self._registry.watch(self)

    async def define(self, definition: str | Mapping[str, Any]) -> Defined:
        """Accept a definition, inline or as JSON text; it can be called at once.

        Raises `ConfigurationError` with everything that is wrong; then nothing has changed.
        """
        try:
            return await self._define(definition)
        except StepsFault as fault:
            raise ConfigurationError(
                [Fault(issue.message, issue.path) for issue in fault.issues]
            ) from None

    async def load(self) -> None:
        """Bring back what the store has; for tools that are gone see what `list` says.

        Raises `ConfigurationError` for stored definitions that are no good; the others are there.
        """
        faults: list[Fault] = []
        for shortcut in await self._store.all():
            try:
                compiled = read_shortcut(as_given(shortcut))
                self._check_place(compiled)
                self._take_in(compiled)
            except StepsFault as fault:
                said = (Fault(one.message, f"{shortcut.id}{one.path}") for one in fault.issues)
                faults.extend(said)
        if faults:
            raise ConfigurationError(faults)

    def list(self) -> tuple[Shortcut, ...]:
        """All shortcuts, in the order they were first defined."""
        return tuple(compiled.shortcut for compiled in self._compiled.values())

    def missing(self, shortcut_id: str) -> tuple[str, ...]:
        """The tools that a shortcut needs and that cannot be called now."""
        compiled = self._compiled.get(shortcut_id)
        steps = () if compiled is None else compiled.plan
        return tuple(dict.fromkeys(step.tool for step in steps if not self._is_tool(step.tool)))

    async def run(
        self,
        shortcut_id: str,
        arguments: str | Mapping[str, Any] | None = None,
        *,
        session: Session | None = None,
    ) -> ToolResult:
        """Run a shortcut by its id, as `pipeline.call` does; `NOT_FOUND` for an unknown one."""
        if shortcut_id not in self._compiled:
            return self._not_found(shortcut_id)
        return await self._pipeline.call(shortcut_id, arguments, session=session)

    async def remove(self, shortcut_id: str) -> bool:
        """Forget a shortcut and its tool; whether there was one."""
        async with self._changing:
            await self._store.remove(shortcut_id)
            if self._compiled.pop(shortcut_id, None) is None:
                return False
            self._runner.forget(shortcut_id)
            self._registry.unregister(shortcut_id)
            return True

    def mine(self, spans: Iterable[Span] | None = None, **options: Any) -> tuple[Suggestion, ...]:
        """Suggest shortcuts from what ran one after the other; options are those of `mine`."""
        found = self._pipeline.trace.spans() if spans is None else spans
        known = [tuple(step.tool for step in one.plan) for one in self._compiled.values()]
        return mine(found, registry=self._registry, known=known, **options)

    def tool_added(self, tool: Tool) -> None:
        """Make shortcuts that use a tool anew, as it may be worse than before."""
        for compiled in self._using(tool.name):
            self._registry.register(self._tool(compiled, incoming=tool), on_duplicate="replace")

    def tool_removed(self, name: str) -> None:
        """Make shortcuts that used a tool anew; forget one that was unregistered itself."""
        if self._compiled.pop(name, None) is not None:
            self._runner.forget(name)
        for compiled in self._using(name):
            self._registry.register(self._tool(compiled), on_duplicate="replace")

    def _using(self, name: str) -> tuple[Compiled, ...]:
        return tuple(
            compiled
            for compiled in tuple(self._compiled.values())
            if any(step.tool == name for step in compiled.plan)
        )

    async def _define(self, definition: Any) -> Defined:
        compiled = read_shortcut(definition, is_tool=self._is_tool)
        shortcut = compiled.shortcut
        async with self._changing:
            self._check_place(compiled)
            before = self._compiled.get(shortcut.id)
            self._take_in(compiled)
            try:
                await self._store.save(shortcut)
            except BaseException:
                self._put_back(shortcut.id, before)
                raise
        return Defined(shortcut, before is not None)

    def _take_in(self, compiled: Compiled) -> None:
        name = compiled.shortcut.id
        before = self._compiled.get(name)
        # Known before its tool comes in: what uses it is then made anew with the new one.
        self._compiled[name] = compiled
        try:
            self._registry.register(self._tool(compiled), on_duplicate="replace")
        except ConfigurationError:
            self._compiled.pop(name, None)
            if before is not None:
                self._compiled[name] = before
            raise
        self._runner.add(name, compiled)

    def _put_back(self, name: str, before: Compiled | None) -> None:
        if before is not None:
            self._take_in(before)
            return
        self._compiled.pop(name, None)
        self._runner.forget(name)
        self._registry.unregister(name)

    def _check_place(self, compiled: Compiled) -> None:
        """Refuse an id that is taken, one too many, and what would call itself through others."""
        name = compiled.shortcut.id
        if name not in self._compiled:
            if self._registry.get(name) is not None:
                raise StepsFault(Issue("/id", f"{name} is the name of a tool that is no shortcut"))
            if len(self._compiled) >= MAX_SHORTCUTS:
                said = f"there are {MAX_SHORTCUTS} shortcuts; remove one first"
                raise StepsFault(Issue("/id", said))
        uses = {
            key: tuple(step.tool for step in one.plan)
            for key, one in {**self._compiled, name: compiled}.items()
        }
        path = cycle_through(name, uses)
        if path:
            said = f"it would call itself without end: {' → '.join(path)}"
            raise StepsFault(Issue("/steps", said))
        if max(depth_of(key, uses) for key in uses) > MAX_NESTED:
            said = f"shortcuts would use each other more than {MAX_NESTED} deep"
            raise StepsFault(Issue("/steps", said))

    def _is_tool(self, name: str) -> bool:
        return name in self._registry and self._registry.quarantine_reason(name) is None

    def _tool(self, compiled: Compiled, *, incoming: Tool | None = None) -> Tool:
        """Make the tool of a shortcut, with the worst that is known of its steps."""
        shortcut = compiled.shortcut
        present = [self._registry.get(step.tool) for step in compiled.plan]
        # A tool that comes in may be kept out after all, so the one it replaces counts too.
        if incoming is not None:
            present.append(incoming)
        return Tool(
            name=shortcut.id,
            title=shortcut.name,
            description=_description(shortcut),
            input_schema=compiled.schema,
            executor=functools.partial(self._execute, compiled),
            annotations=worst_annotations(present),
            risk=worst_risk(present),
            category="skill",
            execution=(
                "sequential"
                if any(tool is not None and tool.execution == "sequential" for tool in present)
                else "parallel"
            ),
            self_gated=True,
            duration=DEFAULT_BUDGET_S + MAX_STEPS * ANSWERS_S,
        )

    def _refresh(self, compiled: Compiled) -> None:
        """Make the tool anew if it says more or less than is true now."""
        name = compiled.shortcut.id
        before, now = self._registry.get(name), self._tool(compiled)
        if before is None or self._compiled.get(name) is not compiled:
            return
        if (before.risk, before.annotations, before.execution) != (
            now.risk,
            now.annotations,
            now.execution,
        ):
            self._registry.register(now, on_duplicate="replace")

    async def _execute(
        self, compiled: Compiled, arguments: dict[str, Any], context: ToolContext
    ) -> ToolResult:
        self._refresh(compiled)
        issues = compiled.faults(arguments)
        if issues:
            said = joined(issue.message for issue in issues)
            return _invalid(said, *issues)
        frame = self._runner.front.frame_of(context)
        outcome = await self._runner.composite(
            compiled, compiled.values(arguments), frame, budget_s=DEFAULT_BUDGET_S
        )
        return outcome.result(compiled.shortcut.id)

    async def _define_tool(self, arguments: dict[str, Any], context: ToolContext) -> ToolResult:  # noqa: ARG002  # as executors are called
        try:
            defined = await self._define(arguments.get("definition"))
        except StepsFault as fault:
            return _invalid(str(fault), *issues_of(fault))
        except ConfigurationError as error:
            return _invalid(str(error), Issue("/definition", str(error)))
        found = defined.shortcut
        said = "was replaced" if defined.replaced else "is defined"
        return ToolResult.of_text(f"{found.id} {said}. Call it by that name, or by {RUN.name}.")

    async def _list_tool(self, arguments: dict[str, Any], context: ToolContext) -> ToolResult:  # noqa: ARG002  # as executors are called
        for compiled in tuple(self._compiled.values()):
            self._refresh(compiled)
        risks = {name: self._registry.get(name) for name in self._compiled}
        return listed(
            (shortcut, risks.get(shortcut.id), self.missing(shortcut.id))
            for shortcut in self.list()
        )

    async def _run_tool(self, arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        wanted = arguments.get("id", "")
        if wanted not in self._compiled:
            return self._not_found(wanted)
        result = await self._runner.one(
            wanted, arguments.get("arguments"), self._runner.front.frame_of(context)
        )
        failure = result.failure
        if failure is None:
            return result
        # This does nothing itself, so what the failure says of an effect holds for it too.
        failure = msgspec.structs.replace(failure, layer="executor")
        result = msgspec.structs.replace(result, call_id="", failure=failure)
        if failure.code is not FailureCode.TIMEOUT:
            return result
        # The time of the shortcut says nothing about the health of what runs it.
        return msgspec.structs.replace(
            result,
            failure=msgspec.structs.replace(
                failure, code=FailureCode.EXECUTION_FAILED, reason="tool_failed"
            ),
        )

    def _not_found(self, wanted: Any) -> ToolResult:
        asked = wanted if isinstance(wanted, str) else ""
        hints = self._registry.suggest(asked, allowed=self._compiled.__contains__)
        near = f"Near ids: {', '.join(hints)}." if hints else "None is near."
        return ToolResult.failed(
            FailureCode.NOT_FOUND,
            f"no shortcut has the id {asked[:80]!r}; there are {len(self._compiled)}",
            guidance=f"Nothing was run. {near} {LIST.name} gives them all.",
            hints=hints,
            layer="executor",
            may_have_run=False,
        )


def worst_risk(tools: Iterable[Tool | None]) -> Risk:
    """The highest risk of several tools; MEDIUM if none of them is known."""
    risks = [tool.effective_risk for tool in tools if tool is not None]
    return max(risks, default=Risk.MEDIUM)


def worst_annotations(tools: Iterable[Tool | None]) -> Annotations:
    """Hints that hold for several tools together: all must be harmless for the whole to be."""
    found = [Annotations() if tool is None else tool.annotations for tool in tools]
    return Annotations(
        read_only=all(one.is_read_only for one in found),
        destructive=any(one.is_destructive for one in found),
        idempotent=all(one.retry_safe for one in found),
        open_world=any(one.is_open_world for one in found),
        sensitive=any(one.sensitive for one in found),
    )


def cycle_through(name: str, uses: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """The way from a shortcut back to itself, or nothing."""
    ways: list[tuple[str, ...]] = [(name,)]
    seen: set[str] = set()
    while ways:
        way = ways.pop()
        for used in uses.get(way[-1], ()):
            if used == name:
                return (*way, used)
            if used not in seen:
                seen.add(used)
                ways.append((*way, used))
    return ()


def depth_of(name: str, uses: Mapping[str, tuple[str, ...]]) -> int:
    """How many shortcuts deep a shortcut goes, itself included; 0 for any other tool."""
    depths: dict[str, int] = {}

    def depth(key: str) -> int:
        if key not in uses:
            return 0
        if key not in depths:
            depths[key] = 1 + max(map(depth, uses[key]), default=0)
        return depths[key]

    return depth(name)


def _description(shortcut: Shortcut) -> str:
    parts = [
        shortcut.description or shortcut.name,
        f"Precondition: {shortcut.precondition}" if shortcut.precondition else "",
        f"Runs in order: {', '.join(step.tool for step in shortcut.steps)}.",
    ]
    return "\n\n".join(part for part in parts if part)


def _invalid(message: str, *issues: Issue) -> ToolResult:
    return ToolResult.of_failure(
        Failure(
            code=FailureCode.INVALID_ARGUMENT,
            message=message[:2_000],
            layer="executor",
            issues=issues,
            may_have_run=False,
        )
    )
