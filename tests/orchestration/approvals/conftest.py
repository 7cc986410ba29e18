"""Pipelines whose turns wait, over each kind of store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from seawall import Annotations, ApprovalSettings, MemoryApprovals, Pipeline, State, Tool
from seawall.stores import open_state
from seawall.testing import FakeClock

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path


class Place:
    """Tools, what they did, and pipelines over one store."""

    def __init__(self, store: MemoryApprovals | None, url: str | None) -> None:
        self.clock = FakeClock()
        self.effects: list[tuple[str, Any]] = []
        self.store = store
        self.url = url
        self.states: list[State] = []
        self.pipelines: list[Pipeline] = []
        self.tools: list[Tool] = [
            self.tool("delete", annotations=Annotations.for_destroying()),
            self.tool("read", annotations=Annotations.for_reading()),
        ]

    def tool(self, name: str, run: Callable[..., Any] | None = None, **fields: Any) -> Tool:
        async def executor(arguments: dict[str, Any], context: Any) -> Any:
            self.effects.append((name, arguments))
            return f"{name} done" if run is None else await run(arguments, context)

        return Tool(
            name=name,
            description=fields.pop("description", "A tool."),
            input_schema=fields.pop("input_schema", {"type": "object"}),
            executor=executor,
            **fields,
        )

    def pipeline(self, tools: list[Tool] | None = None, **options: Any) -> Pipeline:
        """Make a pipeline of a process of its own."""
        settings = options.pop("settings", {})
        state = None
        if self.url is not None:
            state = open_state(
                self.url, clock=self.clock, key=options.pop("key", None), timeout_s=60
            )
            self.states.append(state)
        made = Pipeline(
            self.tools if tools is None else tools,
            clock=self.clock,
            state=state,
            approvals=ApprovalSettings(store=self.store, **settings),
            **options,
        )
        self.pipelines.append(made)
        return made

    async def advance(self, seconds: float) -> None:
        """Move the clock, from timer to timer and only while no store is at work.

        What a store may take is time of this clock too: moved meanwhile, it would give up a file
        that the machine was too busy to write.
        """
        end = self.clock.now() + seconds
        await self._quiet()
        while (due := self.clock.next_due()) is not None and due < end:
            await self.clock.advance(max(due - self.clock.now(), 0.0))
            await self._quiet()
        await self.clock.advance(end - self.clock.now())
        await self._quiet()

    async def _quiet(self) -> None:
        for state in self.states:
            if state.database is not None:
                await state.database.quiet()

    async def close(self) -> None:
        """End the pipelines, with what they still write, and then the states."""
        for pipeline in self.pipelines:
            await pipeline.aclose()
        for state in self.states:
            await state.aclose()


def swap(thing: Any, name: str, value: Any) -> Any:
    """Put something else in a place; what was there."""
    before = getattr(thing, name)
    setattr(thing, name, value)
    return before


@pytest.fixture(params=["memory", "sqlite", "postgresql"])
async def place(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Place]:
    if request.param == "memory":
        made = Place(MemoryApprovals(), None)
    elif request.param == "sqlite":
        made = Place(None, f"sqlite:///{tmp_path}/state.db")
    else:
        made = Place(None, request.getfixturevalue("postgres_url"))
        # Beside SQLite there is a file with a key; here it comes from the environment.
        request.getfixturevalue("monkeypatch").setenv("SEAWALL_STATE_KEY", "11" * 32)
    yield made
    await made.close()


@pytest.fixture
async def postgres(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Place]:
    """A server's state, whose key is in the environment."""
    monkeypatch.setenv("SEAWALL_STATE_KEY", "11" * 32)
    made = Place(None, postgres_url)
    yield made
    await made.close()


@pytest.fixture
async def memory() -> Place:
    """Where the kind of store does not matter."""
    return Place(MemoryApprovals(), None)
