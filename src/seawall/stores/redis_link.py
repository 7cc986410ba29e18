"""The way to one Redis or Valkey, on which no call ever hangs.

    new ── first asking ──▶ connecting ── an answer ──▶ up ── an error, no answer in time ──▶ down
                               │                        ▲                                      │
                               └─ none ──▶ down         └────── pinged in the background ──────┘

While it is down nobody asks: that costs nothing and takes no time. A task in the background knocks
until the server serves, at least once a second. One that takes a knock and refuses what is asked is
down for a second each time, so that it is not up and down, and said to be, with every call.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, NamedTuple

from seawall.contract.errors import MissingExtra
from seawall.pipeline.clock import Limit
from seawall.pipeline.foreign import described, guarded_async, log

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from seawall.pipeline.clock import Clock
    from seawall.stores.redis_address import RedisAddress

CONNECTIONS = 8
"""Opened at once, so that no call waits for one to be; as many askings are under way together."""

CONNECT_S = 2.0
"""How long connecting may take: in the background, no call waits for it beyond its own bound."""

_FIRST_PAUSE_S = 0.05
_LONGEST_PAUSE_S = 1.0
_LAST_SHARE = 0.1
"""Of the bound: what is left for answers that came while this process itself stood still."""


class _Failed(NamedTuple):
    """No answer, and why."""

    said: str


class RedisLink:
    """Asks scripts of one server, each within `timeout_s`; what goes wrong is None.

    It belongs to one event loop at a time. `aclose` ends all it has begun.
    """

    def __init__(
        self, address: RedisAddress, timeout_s: float, clock: Clock, prefix: str = "seawall"
    ) -> None:
        self.address = address
        self._prefix = prefix
        self._expected: tuple[type[BaseException], ...] = ()
        self._timeout_s = timeout_s
        self._clock = clock
        self._sources: dict[str, str] = {}
        self._tasks: set[asyncio.Task[Any]] = set()
        self._closed = False
        self.forget_loop()

    @property
    def is_up(self) -> bool:
        """Whether it answered when it was last asked."""
        return self._state == "up"

    def script(self, name: str, source: str) -> None:
        """Make a script known under a name."""
        self._sources[name] = source

    async def ask(self, name: str, key: str, arguments: tuple[Any, ...]) -> Any:
        """Run a script: one round trip, or three where the server does not know it yet."""
        limit = _Patient(self._clock, self._timeout_s)
        asked = False
        with limit:
            if self._state != "up" and not await self._is_reached():
                return None
            async with self._places:
                asked = True
                script = self._scripts[name]
                answer = await self._heard(lambda: script((key,), arguments))
            if not isinstance(answer, _Failed):
                return answer
            self._lost(answer.said)
            return None
        # Who only waited for others has learnt nothing of the server.
        if asked:
            self._lost(f"nothing came within {self._timeout_s:g} s")
        return None

    async def start(self) -> None:
        """Connect now and not at the first asking; wait for it, but not for long."""
        with self._clock.limit(CONNECT_S):
            await self._is_reached()

    def spawn(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Do something in the background, at most until it is closed."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def forget_loop(self) -> None:
        """Begin anew in another loop; connections of a loop that is gone are left to it."""
        self._state = "new"
        self._served_at = -_LONGEST_PAUSE_S
        self._is_fickle = False
        self._client: Any = None
        self._closers: list[Callable[[], Any]] = []
        self._scripts: dict[str, Callable[..., Any]] = {}
        self._places = asyncio.Semaphore(CONNECTIONS)
        self._was_tried = asyncio.Event()
        self._mending: asyncio.Task[Any] | None = None
        self._tasks.clear()

    async def aclose(self) -> None:
        """End what runs in the background and disconnect; asked again, it gives None."""
        self._closed = True
        self._state = "down"
        tasks = [task for task in self._tasks if not task.done()]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=1)
        closers, self._closers = self._closers, []
        for close in closers:
            with self._clock.limit(CONNECT_S):
                await self._heard(close)

    async def _is_reached(self) -> bool:
        """Whether it is up now; who comes before the first connection is there waits for it."""
        if self._closed:
            return False
        self._mend()
        if self._state == "new":
            await self._was_tried.wait()
        return self.is_up

    async def _heard(self, work: Callable[[], Any]) -> Any:
        """Give what the client does, or says to be wrong; only what it should not raise is news."""

        async def attempt() -> Any:
            try:
                return await work()
            except self._expected as error:
                return _Failed(described(error))

        return await guarded_async(
            "the client of the shared store failed",
            attempt,
            lambda error: _Failed(described(error)),
        )

    def _lost(self, said: str) -> None:
        if self._state == "up":
            self._state = "down"
            self._is_fickle = self._clock.now() - self._served_at < _LONGEST_PAUSE_S
            log.warning(
                "the shared store %s does not serve (%s); limits and circuits are this process's"
                " own until it does",
                self.address.shown,
                said,
            )
        self._mend()

    def _mend(self) -> None:
        if not self._closed and (self._mending is None or self._mending.done()):
            self._mending = self.spawn(self._knock())

    async def _knock(self) -> None:
        pause_s = _FIRST_PAUSE_S
        if self._is_fickle:
            await self._clock.sleep(_LONGEST_PAUSE_S)
        while (failed := await self._greeted()) is not None:
            if self._state == "new":
                self._state = "down"
                shown = self.address.shown
                log.warning("the shared store %s is not reached yet (%s)", shown, failed)
            self._was_tried.set()
            await self._clock.sleep(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
        if self._state == "down":
            log.warning("the shared store %s serves again", self.address.shown)
        self._state = "up"
        self._served_at = self._clock.now()
        self._was_tried.set()

    async def _greeted(self) -> str | None:
        """Knock once; what went wrong, or None."""
        if self._client is None:
            self._open()
        with self._clock.limit(CONNECT_S):
            answer = await self._heard(self._greet)
            return answer.said if isinstance(answer, _Failed) else None
        return f"nothing came within {CONNECT_S:g} s"

    async def _greet(self) -> None:
        """Open all connections, and see that it takes a write: one that is full answers pings."""
        # A cluster is asked once: what it is made of is to be found out by one, not by many.
        more = 0 if self.address.how == "cluster" else CONNECTIONS - 1
        write = self._client.set(f"{self._prefix}:knock", "1", px=1_000)
        done = await asyncio.gather(
            write, *(self._client.ping() for _ in range(more)), return_exceptions=True
        )
        for one in done:
            if isinstance(one, BaseException):
                raise one

    def _open(self) -> None:
        storage = _storage(self.address)
        self._expected = _client_errors()
        self._client = storage.bridge.get_connection()
        self._closers = _closers(storage.bridge)
        self._scripts = {
            name: self._client.register_script(source) for name, source in self._sources.items()
        }


class _Patient(Limit):
    """A limit whose last part begins when its first is over, however late that is noticed.

    A process that stood still finds its time over and the answer there, both at once; the answer
    is to count.
    """

    __slots__ = ("_is_last", "_last_s")

    def __init__(self, clock: Clock, seconds: float) -> None:
        super().__init__(clock, seconds * (1 - _LAST_SHARE))
        self._last_s = seconds * _LAST_SHARE
        self._is_last = False

    def expire(self) -> None:
        """Cancel the body at the second time."""
        if self._is_last:
            super().expire()
            return
        self._is_last = True
        self._timer = self._clock.call_later(self._last_s, self.expire)


def _closers(bridge: Any) -> list[Callable[[], Any]]:
    """Find all that holds connections: those to Sentinels, too."""
    sentinel = getattr(bridge, "sentinel", None)
    clients = [bridge.get_connection(), *(() if sentinel is None else sentinel.sentinels)]
    if sentinel is not None:
        clients.append(bridge.storage_replica)
    pools = [getattr(client, "connection_pool", None) for client in clients]
    return [*(client.aclose for client in clients), *(pool.disconnect for pool in pools if pool)]


def _client_errors() -> tuple[type[BaseException], ...]:
    from redis import RedisError  # noqa: PLC0415  # an extra

    return (RedisError, OSError)


def need_redis() -> None:
    """Load the client, so that no call waits for that; raises `MissingExtra` if there is none."""
    try:
        import limits.aio.storage.redis  # noqa: F401, PLC0415  # only where a shared store is wanted
        import redis.asyncio.cluster  # noqa: F401, PLC0415  # an extra
    except ImportError as error:
        raise MissingExtra("a store that processes share", "redis") from error


def _storage(address: RedisAddress) -> Any:
    """Make the storage of `limits`; it knows Sentinels and clusters."""
    from limits.storage import storage_from_string  # noqa: PLC0415  # loads all of limits' storages
    from redis.asyncio.retry import Retry  # noqa: PLC0415  # an extra
    from redis.backoff import NoBackoff  # noqa: PLC0415  # an extra

    options: dict[str, Any] = {
        # Once more at once, for a connection that a restarted server no longer knows; what takes
        # longer is this file's to decide, not the client's.
        "retry": Retry(NoBackoff(), 1),
        "socket_connect_timeout": CONNECT_S,
        "socket_timeout": CONNECT_S,
        "protocol": 2,
    }
    return storage_from_string(f"async+{address.url}", implementation="redispy", **options)
