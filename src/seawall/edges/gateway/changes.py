"""Which tools look different by now, told together a few times a second while somebody looks.

A page that had to ask for all tools again after each call would, with thousands of them, do nothing
else. So it is told what became of those that changed, and asks for all only where most did.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from seawall.contract.tool import Tool
    from seawall.edges.gateway.views import Views
    from seawall.orchestration.pipeline import Pipeline
    from seawall.pipeline.clock import Timer

GATHER_S = 0.4
MOST = 200
"""Tools that are told one by one; of more it is told that all have to be looked at."""


class Changes:
    """Gathers names, and tells what is to be seen under them now. Watches the registry."""

    def __init__(self, pipeline: Pipeline, views: Views, tell: Callable[[Any], None]) -> None:
        self._pipeline = pipeline
        self._views = views
        self._tell = tell
        self._policies = pipeline.policies
        self._touched: set[str] = set()
        self._defined: set[str] = set()
        self._timer: Timer | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        pipeline.registry.watch(self)

    def begin(self) -> None:
        """Somebody looks, in this loop."""
        self._loop = asyncio.get_running_loop()
        self._policies = self._pipeline.policies

    def end(self) -> None:
        """Nobody looks any more."""
        self._loop = None
        self._touched.clear()
        self._defined.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def touched(self, name: str) -> None:
        """A tool was called, or its circuit was set."""
        self._touched.add(name)
        if self._timer is None:
            self._timer = self._pipeline.clock.call_later(GATHER_S, self._flush)

    def tool_added(self, tool: Tool) -> None:
        """A tool comes in, from whichever thread."""
        self._redefined(tool.name)

    def tool_removed(self, name: str) -> None:
        """A tool is gone."""
        self._redefined(name)

    def _redefined(self, name: str) -> None:
        loop = self._loop
        if loop is not None:
            with suppress(RuntimeError):  # closed: nobody is there to hear
                loop.call_soon_threadsafe(self._note, name)

    def _note(self, name: str) -> None:
        if self._loop is not None:
            self._defined.add(name)
            self.touched(name)

    def _flush(self) -> None:
        self._timer = None
        touched, self._touched = self._touched, set()
        defined, self._defined = self._defined, set()
        policies, self._policies = self._policies, self._pipeline.policies
        if len(touched) > MOST or policies is not self._policies:
            self._tell({"all": True, "tools": [], "defined": [], "gone": []})
            return
        found = {name: self._pipeline.registry.get(name) for name in sorted(touched)}
        told = {
            "all": False,
            "tools": [self._views.brief(tool) for tool in found.values() if tool is not None],
            "defined": [name for name in defined if found[name] is not None],
            "gone": [name for name in defined if found[name] is None],
        }
        if told["tools"] or told["gone"]:
            self._tell(told)
