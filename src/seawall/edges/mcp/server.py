"""One server, kept connected: opened, listed, opened again after it has ended.

A call waits while a connection is being opened, as long as its policy lets it; while the next
attempt is only being waited for, calls fail at once. A call is never sent a second time by itself,
but for one that the server said it has not looked at.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections import deque
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from mcp.shared.exceptions import MCPError

from seawall.edges.mcp import answers
from seawall.edges.mcp.codes import CONNECTION_CLOSED, SESSION_GONE, result_of_error
from seawall.edges.mcp.link import Link
from seawall.edges.mcp.stdio import NotStarted
from seawall.pipeline.foreign import described, first_line, guarded_async, leaves

if TYPE_CHECKING:
    from collections.abc import Callable

    from seawall.contract.result import ToolResult
    from seawall.edges.mcp.config import ServerConfig
    from seawall.edges.mcp.listing import Listing
    from seawall.edges.mcp.options import McpOptions
    from seawall.pipeline.chance import Chance
    from seawall.pipeline.clock import Clock
    from seawall.pipeline.context import ToolContext

State = Literal["idle", "connecting", "up", "waiting", "closed"]

_EXPECTED = (NotStarted, MCPError, OSError)

GOODBYE_S = 6.0
"""For a server to end, and its process, before it is only killed."""
REFRESH_S = 0.2
"""Between two lists, or longer, however often a server says that its tools have changed."""


class Down(Exception):  # noqa: N818  # it is told as what is the case
    """There is no connection now; nothing was sent."""

    def __init__(self, why: str, retry_after_s: float | None = None) -> None:
        super().__init__(why)
        self.why = why
        self.retry_after_s = retry_after_s


class Server:
    """One server of a configuration. It belongs to the event loop in which it was started."""

    def __init__(
        self,
        config: ServerConfig,
        options: McpOptions,
        clock: Clock,
        chance: Chance,
        listing: Listing,
        note: Callable[[str], None],
    ) -> None:
        self.config = config
        self._options = options
        self._clock = clock
        self._chance = chance
        self._note = note
        self._listing = listing
        self.state: State = "idle"
        self.why = ""
        """Why it is not up."""
        self._link: Link | None = None
        self._next_at = math.inf
        self._starts: deque[float] = deque(maxlen=options.max_restarts + 1)
        self._keeper: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stale = asyncio.Event()
        self._closing = asyncio.Event()

    @property
    def version(self) -> str:
        """The revision that is spoken, if it is up."""
        return "" if self._link is None else self._link.version

    async def start(self) -> None:
        """Begin to keep it connected; comes back after the first attempt."""
        if self._keeper is None:
            self._loop = asyncio.get_running_loop()
            self._moved: asyncio.Future[None] = self._loop.create_future()
            self._keeper = asyncio.create_task(self._keep())
        while self.state in ("idle", "connecting"):
            await asyncio.shield(self._moved)

    def refresh(self) -> None:
        """List its tools again, at the next opportunity."""
        self._stale.set()

    async def close(self) -> None:
        """End the connection, and the process behind it."""
        self._closing.set()
        if self._link is not None:
            self._link.leave()
        if self._keeper is not None:
            if self.state == "connecting":
                self._keeper.cancel()
            await asyncio.wait({self._keeper})

    async def call(self, remote: str, arguments: dict[str, Any], context: ToolContext) -> Any:
        """Call one of its tools; every failure of the way is a result."""
        here = asyncio.get_running_loop()
        loop = self._loop
        if loop is here:
            return await self._call(remote, arguments, context, context.progress)
        if loop is None or not loop.is_running():
            return self._down(Down("the event loop in which it was connected does not run"))

        def progress(*report: Any) -> None:
            here.call_soon_threadsafe(context.progress, *report)

        work = self._call(remote, arguments, context, progress)
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, loop))

    async def _call(
        self,
        remote: str,
        arguments: dict[str, Any],
        context: ToolContext,
        progress: Callable[..., None],
    ) -> ToolResult:
        meta = self._options.meta
        said = {} if meta is None else dict(meta(context))

        def report(done: float, total: float | None, message: str | None) -> None:
            share = f"{done:g}" if total is None else f"{done:g} of {total:g}"
            progress(message or share, done, total)

        tries = 2
        while True:
            tries -= 1
            try:
                link = await self._connected()
                answer = await link.call(
                    remote, arguments, report, said, lambda: context.cancelled.reason
                )
                return answers.result_of_answer(self.config.name, answer)
            except Down as down:
                return self._down(down)
            except MCPError as error:
                if error.code == SESSION_GONE:
                    link.leave(broken=True)
                    if tries:
                        continue
                return self._failed(link, error)

    async def _connected(self) -> Link:
        """Give the connection; waits while one is being opened."""
        while True:
            link = self._link
            if link is not None and link.alive:
                return link
            if self.state == "closed" or self._closing.is_set():
                raise Down(self.why or "it was closed")
            if self.state == "waiting":
                left_s = max(self._next_at - self._clock.now(), 0.0)
                raise Down(self.why, left_s)
            await asyncio.shield(self._moved)

    def _down(self, down: Down) -> ToolResult:
        return answers.down(self.config.name, down.why, down.retry_after_s)

    def _failed(self, link: Link, error: Any) -> ToolResult:
        said = error.message
        if error.code == CONNECTION_CLOSED and not link.alive:
            said = self._ended(link, "the connection ended before the answer came")
        return result_of_error(self.config.name, error.code, said, error.data)

    def _ended(self, link: Link, said: str) -> str:
        said = link.fault or said
        last = link.tail.text()
        return f"{said}; it last said: {last}" if last else said

    # The keeper: one task that opens the connection and opens it again.

    async def _keep(self) -> None:
        try:
            await self._kept()
        finally:
            # However it ends: nobody is left waiting for a connection that will not come.
            self._link = None
            self.why = self.why or "it was closed"
            self._move("closed")

    async def _kept(self) -> None:
        failures = 0
        while not self._closing.is_set():
            self._move("connecting")
            self._starts.append(self._clock.now())
            link = Link(self.config, self._options, self._clock, self._stale.set)
            served = await self._serve(link)
            self._link = None
            if self._closing.is_set():
                break
            # One that was of use is opened again at once; how often is bounded below.
            failures = 0 if served else failures + 1
            now = self._clock.now()
            wait_s = self._wait_s(failures, now)
            if wait_s > 0:
                self._next_at = now + wait_s
                self._move("waiting")
                await self._rest(wait_s)

    def _wait_s(self, failures: int, now: float) -> float:
        """Seconds to the next attempt: jittered, and longer if there were too many of late."""
        options = self._options
        ceiling = min(
            options.base_delay_s * 2.0 ** min(max(failures - 1, 0), 30), options.max_delay_s
        )
        wait_s = self._chance.uniform(0.0, ceiling) if failures else 0.0
        recent = [one for one in self._starts if now - one < options.restart_window_s]
        if len(recent) > options.max_restarts:
            wait_s = max(wait_s, recent[0] + options.restart_window_s - now)
            self.why += (
                f"; it was started {len(recent)} times within {options.restart_window_s:g} s and is"
                " left alone for a while"
            )
        return wait_s

    async def _rest(self, seconds: float) -> None:
        with self._clock.limit(seconds):
            await self._closing.wait()

    def _move(self, state: State) -> None:
        self.state = state
        moved, self._moved = self._moved, asyncio.get_running_loop().create_future()
        if not moved.done():
            moved.set_result(None)

    async def _serve(self, link: Link) -> bool:
        """Open a connection and stay until it ends; whether it was ever of use."""
        ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        serving = asyncio.create_task(self._guarded(link, ready))
        try:
            with (limit := self._clock.limit(self._options.connect_s)):
                either: set[asyncio.Future[Any]] = {serving, ready}
                await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
                up = ready.done() and await self._listed(link)
            if limit.expired:
                self.why = self._ended(
                    link, f"it was not ready within {self._options.connect_s:g} s"
                )
                return False
            if not up:
                if serving.done():
                    self.why = self._ended(
                        link, serving.result() or "it ended while it was started"
                    )
                return False
            self._link = link
            self.why = ""
            self._move("up")
            await self._stay(link, serving)
            self.why = self._ended(link, (serving.result() if serving.done() else "") or "it ended")
            return True
        finally:
            link.leave()
            if not serving.done():
                await self._end(serving, gently=ready.done())

    async def _end(self, serving: asyncio.Task[str], *, gently: bool) -> None:
        """End a connection: by itself, as long as that may take, if it was ever ready."""
        if gently:
            with self._clock.limit(GOODBYE_S):
                await asyncio.wait({serving})
        serving.cancel()
        await asyncio.wait({serving}, timeout=1)

    async def _guarded(self, link: Link, ready: asyncio.Future[None]) -> str:
        """Serve, and give what ended it in words."""
        what = f"the connection to MCP server {self.config.name!r} failed"
        return str(await guarded_async(what, lambda: _served(link, ready), described))

    async def _listed(self, link: Link) -> bool:
        """Bring the registry up to date; false, with the reason kept, if that was not possible."""
        self._stale.clear()

        def failed(error: BaseException) -> bool:
            self.why = self._ended(link, f"its tools cannot be listed: {described(error)}")
            return False

        async def listed() -> bool:
            try:
                declared = await link.tools()
            except _EXPECTED as error:
                return failed(error)  # no news for the log
            self._listing.apply(declared)
            for dropped in link.dropped:
                self._note(dropped)
            return True

        return bool(await guarded_async(f"listing {self.config.name!r} failed", listed, failed))

    async def _stay(self, link: Link, serving: asyncio.Task[str]) -> None:
        """List again when the server says that something changed, until the connection ends."""
        wait_s = REFRESH_S
        while not serving.done():
            stale = asyncio.create_task(self._stale.wait())
            since = self._clock.now()
            try:
                await asyncio.wait({serving, stale}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                stale.cancel()
            if serving.done() or not link.alive:
                break
            # One that never stops to tell of changes is asked ever less often.
            quiet = self._clock.now() - since > wait_s
            wait_s = REFRESH_S if quiet else min(2 * wait_s, self._options.max_delay_s)
            with self._clock.limit(wait_s):
                await asyncio.wait({serving})
            if serving.done():
                break
            with (limit := self._clock.limit(self._options.connect_s)):
                if not await self._listed(link):
                    self._note(self.why)
            if limit.expired:
                self._note("it did not list its tools again in time")
        with contextlib.suppress(asyncio.InvalidStateError):
            serving.exception()


async def _served(link: Link, ready: asyncio.Future[None]) -> str:
    """Serve; what a server or its absence may cause is no news for the log."""
    try:
        await link.serve(ready)
    except _EXPECTED as error:
        return first_line(error)
    except BaseExceptionGroup as group:
        found = leaves(group)
        if not all(isinstance(one, _EXPECTED) for one in found):
            raise
        return first_line(found[0])
    return ""


class ServerState(msgspec.Struct, frozen=True, kw_only=True):
    """How a server does."""

    name: str
    state: State
    transport: Literal["stdio", "http"]
    version: str = ""
    """The revision that is spoken."""
    tools: tuple[str, ...] = ()
    trusted: bool = False
    why: str = ""
    """Why it is not up."""
