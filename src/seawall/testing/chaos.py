"""Faults on purpose: errors, crashes, hangs, late answers and stores that are down, by a seed.

As the innermost layer it stands where the tool is, so all other layers meet its faults as they
would meet real ones: each is an attempt with a span, counts for the breaker, may be retried.
"""

from __future__ import annotations

import asyncio
import fnmatch
import inspect
from collections import Counter
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import msgspec

from seawall.contract.errors import ConfigurationError, Fault
from seawall.contract.result import ToolResult
from seawall.pipeline.chance import Chance, SystemChance
from seawall.pipeline.convert import failure_of, result_of
from seawall.pipeline.execute import executing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seawall.contract.tool import Tool
    from seawall.pipeline.clock import Clock
    from seawall.pipeline.invocation import Handler, Invocation
    from seawall.pipeline.layer import LayerContext
    from seawall.pipeline.threads import Workers

KINDS = ("errors", "crashes", "hangs", "latency")


class Chaos:
    """A recipe for `Pipeline(layers=…)`, last in the list: `[*BY_NAME, Chaos(seed=7, errors=0.1)]`.

    The numbers are shares of the attempts; each attempt has one fault at most. Faults are drawn
    from the seed and the tool's name, so the n-th attempt of a tool meets the same one in each run.
    """

    name = "chaos"

    def __init__(
        self,
        seed: int = 0,
        *,
        errors: float = 0.0,
        crashes: float = 0.0,
        hangs: float = 0.0,
        latency: float = 0.0,
        latency_s: tuple[float, float] = (0.1, 1.0),
        store_outages: float = 0.0,
        tools: Sequence[str] = ("*",),
    ) -> None:
        self._seed = seed
        self.shares = dict(zip(KINDS, (errors, crashes, hangs, latency), strict=True))
        """`errors`: nothing was done. `crashes`: it was done, and the answer is lost. `hangs`: no
        answer ever comes. `latency`: it comes late, between the two numbers of `latency_s`."""
        self.latency_s = latency_s
        self._store_outages = store_outages
        self._tools = tuple(tools)
        self._chances: dict[str, Chance] = {}
        self.store_is_down = False
        """Whether every call of a store from `store()` fails."""
        self.injected: Counter[str] = Counter()
        """How many faults there were, by kind; `store` for those of stores."""
        self._check()

    def for_tool(self, context: LayerContext) -> Faults | None:
        """Nothing to do for a tool that is not among `tools`, or without any share."""
        chosen = any(fnmatch.fnmatchcase(context.tool.name, each) for each in self._tools)
        return Faults(self, context) if chosen and any(self.shares.values()) else None

    def store(self, store: Any) -> Any:
        """Give a store whose methods raise `ConnectionError` by chance, or while it is down."""
        return _Store(self, store)

    def chance_of(self, name: str) -> Chance:
        """Draw for one tool, independently of what others draw meanwhile."""
        if name not in self._chances:
            digest = blake2b(f"{self._seed}:{name}".encode(), digest_size=8).digest()
            self._chances[name] = SystemChance(int.from_bytes(digest))
        return self._chances[name]

    def fault_of(self, tool: str) -> str | None:
        """Draw the fault of the tool's next attempt."""
        drawn = self.chance_of(f"tool {tool}").uniform(0.0, 1.0)
        for kind, share in self.shares.items():
            drawn -= share
            if drawn < 0:
                return kind
        return None

    def store_fails(self) -> bool:
        """Draw whether a store fails now."""
        drawn = self.chance_of("store").uniform(0.0, 1.0)
        return self.store_is_down or drawn < self._store_outages

    def _check(self) -> None:
        shares = {**self.shares, "store_outages": self._store_outages}
        faults = [
            Fault(f"must be a share from 0 to 1 (got {share!r})", key=key)
            for key, share in shares.items()
            if not 0 <= share <= 1
        ]
        if not faults and sum(self.shares.values()) > 1:
            faults.append(Fault(f"{', '.join(KINDS)} are more than 1 together", key="errors"))
        low, high = self.latency_s
        if not 0 <= low <= high:
            faults.append(Fault(f"must be two numbers of seconds (got {low!r}, {high!r})"))
        if faults:
            raise ConfigurationError(faults)


class Faults:
    """The faults of one tool."""

    name = "chaos"

    def __init__(self, chaos: Chaos, context: LayerContext) -> None:
        self._chaos = chaos
        self._tool = context.tool.name
        self._clock = context.clock
        self._count = context.count
        self._refused = _handler(context.tool, context.clock, _refuse)
        self._hung = _handler(context.tool, context.clock, _hang)

    async def __call__(self, call: Invocation, proceed: Handler) -> ToolResult:
        """Let the attempt meet what was drawn for it."""
        kind = self._chaos.fault_of(self._tool)
        if kind is None:
            return await proceed(call)
        self._chaos.injected[kind] += 1
        self._count(self.name, kind)
        call.note(f"{self.name}:{kind}")
        if kind == "errors":
            return await self._refused(call)
        if kind == "hangs":
            return await self._hung(call)
        result = await proceed(call)
        if kind == "crashes":
            return _lost(call)
        low, high = self._chaos.latency_s
        await self._clock.sleep(self._chaos.chance_of(f"latency {self._tool}").uniform(low, high))
        return result


class _Store:
    """A store that fails at times."""

    def __init__(self, chaos: Chaos, store: Any) -> None:
        self._chaos = chaos
        self._store = store

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._store, name)
        if not callable(found) or name.startswith("__"):
            return found
        if inspect.iscoroutinefunction(found):

            async def asked(*args: Any, **kwargs: Any) -> Any:
                self._fail(name)
                return await found(*args, **kwargs)

            return asked

        def called(*args: Any, **kwargs: Any) -> Any:
            self._fail(name)
            return found(*args, **kwargs)

        return called

    def _fail(self, name: str) -> None:
        if self._chaos.store_fails():
            self._chaos.injected["store"] += 1
            raise ConnectionError(f"chaos: the store is down ({name})")


def _handler(tool: Tool, clock: Clock, executor: Any) -> Handler:
    """Make an attempt of another executor, with all the books of a real one."""
    return executing(msgspec.structs.replace(tool, executor=executor), clock, _no_threads)


async def _refuse(arguments: Any, context: Any) -> Any:  # noqa: ARG001  # as an executor is called
    raise ConnectionRefusedError("chaos: nothing was done")


async def _hang(arguments: Any, context: Any) -> Any:  # noqa: ARG001  # as an executor is called
    await asyncio.get_running_loop().create_future()


def _lost(call: Invocation) -> ToolResult:
    call.error = ConnectionResetError("chaos: it was done, and the answer is lost")
    return result_of(ToolResult.of_failure(failure_of(call.error)), call)


def _no_threads() -> Workers:
    raise NotImplementedError("faults are coroutines, which need no thread")
