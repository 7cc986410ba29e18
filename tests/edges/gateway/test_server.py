"""The server of a gateway, really serving: how it begins, looks around, and ends."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import threading
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from tests.edges.gateway.serving import TOOLS, call
from tests.waiting import until, waited

from seawall import Annotations, Pipeline, tool
from seawall.contract.errors import ConfigurationError
from seawall.edges.gateway import server as module
from seawall.edges.gateway.app import Gateway
from seawall.edges.gateway.serve import bound, serve, server_of, shown
from seawall.edges.gateway.settings import GatewaySettings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from seawall.edges.gateway.pulse import Pulse


class Serving:
    """A server that runs, and a tool of it that is over when it is let go."""

    def __init__(self, pulse: Pulse | None = None, **settings: Any) -> None:
        self.let = asyncio.Event()
        self.begun = asyncio.Event()

        @tool(annotations=Annotations.for_reading())
        async def wait() -> str:
            """Wait until it is let go."""
            self.begun.set()
            await self.let.wait()
            return "waited"

        self.told: list[str] = []
        self.settings = GatewaySettings(port=0, **settings)
        self.gateway = Gateway(Pipeline([*TOOLS, wait]), self.settings, pulse)
        self.listening = bound(self.settings)
        self.base = shown(*self.listening.getsockname()[:2])
        self.server: Any = server_of(self.gateway, lambda: self.told.append("ready"))
        self.running = asyncio.ensure_future(self.server.serve(sockets=[self.listening]))

    async def ended(self) -> None:
        await asyncio.wait_for(self.running, 30)

    @asynccontextmanager
    async def calling(self) -> AsyncIterator[asyncio.Future[httpx.Response]]:
        """A call that goes on."""
        async with httpx.AsyncClient(base_url=self.base, timeout=30) as client:
            asking = asyncio.ensure_future(call(client, "wait", {}))
            await self.begun.wait()
            yield asking


@pytest.fixture
def thawed() -> Iterator[None]:
    """The collector goes through what there is again, after the test."""
    yield
    gc.unfreeze()


@asynccontextmanager
async def serving(pulse: Any = None, **settings: Any) -> AsyncIterator[Serving]:
    one = Serving(pulse, **settings)
    try:
        await until(lambda: one.told)
        yield one
    finally:
        one.let.set()
        one.server.should_exit = True
        await one.ended()
        one.listening.close()
        gc.unfreeze()


async def test_it_says_that_it_takes_calls_once_it_does(thawed: None) -> None:
    answers: list[int] = []
    settings = GatewaySettings(port=0)
    listening = bound(settings)
    base = shown(*listening.getsockname()[:2])

    def ready() -> None:
        answers.append(len(asked))

    asked: list[httpx.Response] = []
    server = server_of(Gateway(Pipeline(TOOLS), settings), ready)
    running = asyncio.ensure_future(server.serve(sockets=[listening]))
    async with httpx.AsyncClient(base_url=base) as client:
        asked.append(await client.get("/readyz"))
        server.should_exit = True
    await running

    assert answers == [0]
    assert asked[0].json()["status"] == "ready"


async def test_where_its_pipeline_cannot_be_opened_it_says_so_and_not_that_it_takes_calls() -> None:
    class Broken(Pipeline):
        async def __aenter__(self) -> Any:
            raise OSError("the disk is full")

    told: list[str] = []
    with pytest.raises(
        ConfigurationError, match="could not be opened; put right what the log says"
    ):
        await serve(Broken(TOOLS), GatewaySettings(port=0), on_ready=lambda: told.append("ready"))

    assert told == []


async def test_what_is_there_at_the_start_is_not_gone_through_by_the_collector_again() -> None:
    before = gc.get_freeze_count()
    async with serving():
        assert gc.get_freeze_count() > before + 1_000


async def test_a_request_that_does_not_come_is_ended_at_a_look(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "TICKS_OF_A_LOOK", 1)
    async with serving(read_s=0.2) as one:
        port = int(one.base.rpartition(":")[2])
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /heal")
        answer = await reader.read()
        writer.close()

    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b'"request_timeout"' in answer


class Heard:
    """In the place of a pulse: what it was told."""

    all_end = True

    def __init__(self) -> None:
        self.told: list[tuple[str, int]] = []

    def beat(self, number: int) -> None:
        self.told.append(("beat", number))

    def rest(self, number: int) -> None:
        self.told.append(("rest", number))


async def test_it_gives_signs_of_life_until_it_is_told_to_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "TICKS_OF_A_LOOK", 1)
    heard = Heard()
    async with serving(heard) as one, one.calling() as asking:
        await until(lambda: heard.told.count(("beat", 1)) > 2)
        one.server.should_exit = True
        await until(lambda: ("rest", 1) in heard.told)
        # It goes on for a while, since a call does; whoever watches expects no sign of it.
        await asyncio.sleep(0.3)  # some looks
        assert not one.running.done()
        assert heard.told[-1] == ("rest", 1)
        one.let.set()
        assert (await asking).json()["text"] == "waited"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_ends_it_in_order_and_nothing_else(number: signal.Signals) -> None:
    former = [signal.getsignal(one) for one in (signal.SIGTERM, signal.SIGINT)]
    async with serving() as one, one.calling() as asking:
        os.kill(os.getpid(), number)
        await until(lambda: one.gateway.calls.stopping)
        assert not one.running.done()
        one.let.set()
        assert (await asking).json()["text"] == "waited"
        await one.ended()
        async with httpx.AsyncClient(base_url=one.base) as client:
            with pytest.raises(httpx.ConnectError):
                await client.get("/healthz")

    # The signal is not raised again, which would have ended this process; and it is as before.
    assert [signal.getsignal(one) for one in (signal.SIGTERM, signal.SIGINT)] == former


async def test_while_a_call_goes_on_it_listens_to_say_that_it_stops() -> None:
    async with serving() as one, one.calling() as asking:
        one.server.should_exit = True
        await until(lambda: one.gateway.calls.stopping)
        async with httpx.AsyncClient(base_url=one.base) as client:
            ready = await client.get("/readyz")
            refused = await call(client, "add", {"a": 1, "b": 2})
        assert (ready.status_code, refused.status_code) == (503, 503)
        assert refused.headers["retry-after"] == "1"
        one.let.set()
        assert (await asking).json()["text"] == "waited"


async def test_a_worker_among_several_leaves_ctrl_c_to_whoever_watches_over_them() -> None:
    async with serving(workers=2) as one:
        os.kill(os.getpid(), signal.SIGINT)
        async with httpx.AsyncClient(base_url=one.base) as client:
            for _ in range(3):
                assert (await client.get("/readyz")).json()["status"] == "ready"
        assert not one.server.should_exit
        os.kill(os.getpid(), signal.SIGTERM)
        await one.ended()


async def test_ctrl_c_again_waits_for_no_call() -> None:
    async with serving(drain_s=600) as one, one.calling() as asking:
        os.kill(os.getpid(), signal.SIGTERM)
        await until(lambda: one.gateway.calls.stopping)
        os.kill(os.getpid(), signal.SIGINT)
        await one.ended()
        assert not one.let.is_set()
        asking.cancel()


async def test_viewers_are_ended_and_not_waited_for() -> None:
    async with serving(drain_s=600) as one, httpx.AsyncClient(base_url=one.base) as client:
        async with client.stream("GET", "/events") as events:
            lines = events.aiter_lines()
            assert await anext(lines) == "event: hello"
            one.server.should_exit = True
            rest = [line async for line in lines]
        await one.ended()

    assert rest == ["data: {}", ""]


@pytest.mark.parametrize(("drain_s", "at_most_s"), [(0.2, 6), (30.0, 35)])
async def test_the_end_is_given_what_is_left_of_the_time_for_it(
    drain_s: float, at_most_s: int
) -> None:
    async with serving(drain_s=drain_s) as one:
        pass

    assert 1 <= one.server.config.timeout_graceful_shutdown <= at_most_s


async def test_a_call_that_takes_longer_than_its_time_at_the_end_is_broken_off() -> None:
    async with serving(drain_s=0.2) as one, one.calling() as asking:
        one.server.should_exit = True
        answer = await asking
        await one.ended()

    assert (answer.status_code, answer.json()["failure"]["reason"]) == (502, "outcome_unknown")


def test_in_another_thread_it_leaves_the_signals_of_the_process_alone(thawed: None) -> None:
    former = [signal.getsignal(one) for one in (signal.SIGTERM, signal.SIGINT)]
    settings = GatewaySettings(port=0)
    listening = bound(settings)
    base = shown(*listening.getsockname()[:2])
    server = server_of(Gateway(Pipeline(TOOLS), settings))
    thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[listening])))
    thread.start()
    try:
        waited(lambda: server.started)
        answer = httpx.get(f"{base}/readyz")
        during = [signal.getsignal(one) for one in (signal.SIGTERM, signal.SIGINT)]
    finally:
        server.should_exit = True
        thread.join(30)
        listening.close()

    assert answer.status_code == 200
    assert during == former
    assert not thread.is_alive()


@pytest.mark.parametrize("raised", [None, KeyError])
def test_signals_are_told_only_meanwhile(raised: type[Exception] | None) -> None:
    told: list[int] = []
    former = signal.getsignal(signal.SIGTERM)

    def kill() -> None:
        with module.handled(lambda number, _: told.append(number)):
            os.kill(os.getpid(), signal.SIGTERM)
            if raised is not None:
                raise raised

    expecting(kill, raised)
    assert told == [signal.SIGTERM]
    assert signal.getsignal(signal.SIGTERM) is former


def expecting(work: Callable[[], None], raised: type[Exception] | None) -> None:
    if raised is None:
        work()
        return
    with pytest.raises(raised):
        work()
