"""The gateway as an ASGI application: routes, the guard before them, and what they answer."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from starlette.exceptions import HTTPException
from starlette.routing import Route, Router

from seawall.contract.failure import FailureCode
from seawall.edges.gateway.answers import Answer, answer_of, json_answer, refusal, stops
from seawall.edges.gateway.approvals import ApprovalDesk
from seawall.edges.gateway.asked import Asked, Refused, bad_request
from seawall.edges.gateway.calls import Calls
from seawall.edges.gateway.console import console_answer
from seawall.edges.gateway.events import Events
from seawall.edges.gateway.guard import Guard
from seawall.edges.gateway.openapi import document
from seawall.edges.gateway.settings import GatewaySettings
from seawall.edges.gateway.sharing import sharing
from seawall.edges.gateway.tokens import SCOPES
from seawall.edges.gateway.views import MAX_SPANS, Views
from seawall.edges.requests import Gone
from seawall.orchestration.unknown import no_such_tool

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from seawall.edges.gateway.pulse import Pulse
    from seawall.edges.requests import Message, Receive, Send
    from seawall.orchestration.pipeline import Pipeline
    from seawall.pipeline.clock import Timer

    Answering = Callable[[Asked], Answer | Awaitable[Answer]]
    Serving = Callable[[Asked], Awaitable[None]]

OPEN = frozenset({"/healthz", "/readyz"})
"""Paths that are answered under any name and without a token: a load balancer asks for them."""

CALL = "/tools/call"
EVENTS = "/events"

WIND_UP_S = 5.0
"""What a call that is broken off at the end gets for its cleanup, and to be recorded."""


class Gateway:
    """A pipeline over HTTP. Give it to any ASGI server, or run it by `seawall serve`."""

    def __init__(
        self,
        pipeline: Pipeline,
        settings: GatewaySettings | None = None,
        pulse: Pulse | None = None,
    ) -> None:
        settings = settings or GatewaySettings()
        self.pipeline = pipeline
        self.settings = settings
        self.pulse = pulse
        """Where the workers say that they are there, if it is one of them."""
        self.calls = Calls(pipeline, settings)
        self.views = Views(pipeline, settings.console_allow, _whose(settings))
        self.events = Events(pipeline, self.views, _whose(settings))
        store = None if pipeline.shared is None else pipeline.shared.buckets
        self._guard = Guard(settings, pipeline.clock.now, store)
        self.approvals = ApprovalDesk(
            pipeline, self._guard, self.events.tell, settings.max_body_bytes
        )
        if pipeline.approvals.enabled and pipeline.state is not None and pipeline.state.durable:
            self.events.meanwhile = self.approvals.watch
        self._in_flight = 0
        self._stopping = False
        self._over = asyncio.Event()
        """Set once it stops and no request is left."""
        self._end_by = 0.0
        self._breaking: Timer | None = None
        self._router = Router(self._routes(), redirect_slashes=False, lifespan=self._lifespan)

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._router(scope, receive, send)
            return
        asked = Asked(scope, receive, send)
        self._in_flight += 1
        try:
            if asked.path not in OPEN:
                self._admit(asked)
            if asked.path == CALL and asked.method == "POST":
                # Past the router, which takes as long as all layers together.
                self._guard.demand(asked, "call")
                await self._call(asked)
            else:
                scope["seawall.asked"] = asked
                scope["app"] = self  # makes the router raise what it would answer as plain text
                await self._router(scope, receive, send)
        except Refused as refused:
            await asked.answer(refused.answer)
        except HTTPException as error:
            await asked.answer(_of_router(error, asked))
        except Gone:
            pass
        finally:
            self._in_flight -= 1
            if self._stopping and not self._in_flight:
                self._over.set()

    def beat(self) -> None:
        """Say to whoever watches that the event loop goes round; about once a second."""
        if self.pulse is not None and not self._stopping:
            self.pulse.beat(self.settings.worker)

    def stop(self) -> None:
        """Refuse what would begin something, say so at `/readyz`, and end the streams of viewers.

        Calls that have not ended `drain_s` later are broken off, detached ones too.
        """
        if self._stopping:
            return
        self._stopping = True
        if self.pulse is not None:
            self.pulse.rest(self.settings.worker)
        self.calls.stopping = True
        self.approvals.stop()
        self.events.close()
        clock, drain_s = self.pipeline.clock, self.settings.drain_s
        self._end_by = clock.now() + drain_s + WIND_UP_S
        self._breaking = clock.call_later(drain_s, self._break_off)

    def is_to_listen(self) -> bool:
        """Whether it is to answer new connections although it stops, to say that it does.

        So it is while calls go on. Of several workers one that stops alone leaves them to the
        others.
        """
        if self.pulse is not None and not self.pulse.all_end:
            return False
        is_busy = self._in_flight or self.calls.is_busy or self.approvals.is_busy
        return bool(is_busy) and self.left_s > 0

    @property
    def left_s(self) -> float:
        """How long it may still take to end, once it stops."""
        return max(self._end_by - self.pipeline.clock.now(), 0.0)

    def _break_off(self) -> None:
        self.calls.break_off()
        self.approvals.break_off()

    async def _drained(self) -> None:
        """Wait until all calls have ended or were broken off, and their books are closed."""
        with self.pipeline.clock.limit(self.left_s):
            await self.calls.drained()
            await self.approvals.drained()
            if self._in_flight:
                await self._over.wait()

    def _admit(self, asked: Asked) -> None:
        self._guard.admit(asked)
        if self._stopping and (asked.method == "POST" or asked.path == EVENTS):
            raise Refused(stops())
        if self._in_flight > self.settings.max_in_flight:
            said = f"the gateway serves {self.settings.max_in_flight} requests at once"
            raise Refused(refusal(FailureCode.RATE_LIMITED, "overloaded", said, retry_after_s=1.0))

    @asynccontextmanager
    async def _lifespan(self, _: Any) -> AsyncIterator[None]:
        async with self.pipeline:
            self.approvals.start()
            yield
            self.stop()
            await self._drained()
            if self._breaking is not None:
                self._breaking.cancel()

    def _routes(self) -> list[Route]:
        serving, answering = self._serving, self._answering
        routes = [
            Route(CALL, serving("call", self._call), methods=["POST"]),
            _get("/client", answering(None, _client)),
            _get("/tools", answering("call", self._tools)),
            _get("/tools/{name}", answering("call", self._tool)),
            _get("/traces", answering("call", self._traces)),
            _get("/usage", answering("call", lambda _: json_answer(self.views.usage()))),
            _get("/breakers", answering("call", lambda _: json_answer(self.views.breakers()))),
            _get("/workers", answering("call", lambda _: json_answer(self._workers()))),
            Route("/breakers/{name}", answering("admin", self._breaker), methods=["POST"]),
            _get("/approvals", answering("approve", self.approvals.listed)),
            # One route for both, so that `Allow` names both.
            Route("/approvals/{id}", answering(None, self._approval), methods=["GET", "POST"]),
            _get(EVENTS, serving(None, self._events)),
            _get("/metrics", answering("call", self._metrics)),
            _get("/healthz", answering(None, lambda _: json_answer({"status": "ok"}))),
            _get("/readyz", answering(None, self._ready)),
            _get("/openapi.json", answering(None, lambda _: json_answer(document()))),
        ]
        if self.settings.console:
            routes += [
                Route("/console/call", serving("call", self._console_call), methods=["POST"]),
                _get("/", answering(None, console_answer)),
                _get("/assets/{file}", answering(None, console_answer)),
            ]
        return routes

    def _serving(self, scope: str | None, serve: Serving) -> _Endpoint:
        return _Endpoint(self._guard, scope, serve)

    def _answering(self, scope: str | None, answer: Answering) -> _Endpoint:
        async def serve(asked: Asked) -> None:
            found = answer(asked)
            if not isinstance(found, Answer):
                found = await found
            await asked.answer(found)

        return _Endpoint(self._guard, scope, serve)

    async def _call(self, asked: Asked) -> None:
        if self._guard.limits(asked.client):
            await self._guard.count(asked.client)
        await self.calls.serve(asked)

    async def _console_call(self, asked: Asked) -> None:
        if self._guard.limits(asked.client):
            await self._guard.count(asked.client)
        await self.calls.serve(asked, released=self.views.released)

    async def _events(self, asked: Asked) -> None:
        if not asked.client.may("approve"):
            self._guard.demand(asked, "call")
        await self.events.serve(asked)

    async def _tools(self, asked: Asked) -> Answer:
        view = asked.query().get("view", "full")
        if view not in ("full", "brief"):
            raise Refused(bad_request("view must be full or brief"))
        return json_answer(await self.views.tools(brief=view == "brief"))

    def _tool(self, asked: Asked) -> Answer:
        name = asked.part("name")
        tool = self.pipeline.registry.get(name)
        if tool is None:
            return answer_of(no_such_tool(self.pipeline.registry, name, ""))
        return json_answer(self.views.tool(tool))

    def _traces(self, asked: Asked) -> Answer:
        query = asked.query()
        limit = query.get("limit", "100")
        if not limit.isascii() or not limit.isdigit() or int(limit[:9]) > MAX_SPANS:
            raise Refused(bad_request(f"limit must be a whole number from 0 to {MAX_SPANS}"))
        tool, request_id = query.get("tool") or None, query.get("requestId") or None
        return json_answer(self.views.spans(int(limit), tool, request_id))

    async def _breaker(self, asked: Asked) -> Answer:
        change = await asked.json(self.settings.max_body_bytes, _read_change)
        name, breakers = asked.part("name"), self.pipeline.breakers
        if breakers.find_state(name) is None:
            said = (
                f"{name[:200]!r} has no circuit: no tool has this name, or its policy gives it none"
            )
            raise Refused(refusal(FailureCode.NOT_FOUND, "not_found", said))
        if self.settings.workers > 1 and self.pipeline.shared is None:
            raise Refused(_one_worker_alone(name, self.settings.workers))
        change_it = {"open": breakers.open, "close": breakers.close, "reset": breakers.reset}
        change_it[change.action](name)
        self.events.touched(name)
        return json_answer({"tool": name, "state": breakers.state(name)})

    def _workers(self) -> dict[str, Any]:
        parts = sharing(self.pipeline, self.settings)
        return {
            "worker": self.settings.worker,
            "workers": self.settings.workers,
            "pulse": [] if self.pulse is None else self.pulse.shown(),
            "sharing": [msgspec.to_builtins(part) for part in parts],
        }

    async def _approval(self, asked: Asked) -> Answer:
        answer = self.approvals.decided if asked.method == "POST" else self.approvals.shown
        return await answer(asked)

    def _metrics(self, asked: Asked) -> Answer:
        text, media = self.pipeline.metrics.exposition(asked.header(b"accept"))
        return Answer(200, text, media=media.encode())

    def _ready(self, _: Asked) -> Answer:
        if self._stopping:
            return json_answer({"status": "stopping"}, 503)
        return json_answer({"status": "ready", "tools": len(self.pipeline.registry)})


def _whose(settings: GatewaySettings) -> dict[str, Any]:
    """Say whose view is given, where there are several workers."""
    if settings.workers == 1:
        return {}
    return {"worker": settings.worker, "workers": settings.workers}


def _one_worker_alone(name: str, workers: int) -> Answer:
    return refusal(
        FailureCode.UNSUPPORTED,
        "not_shared",
        f"the circuit of {name} was not changed: it would change in one of {workers} workers alone",
        guidance="Have the operator name a Redis under [shared] in the policy, or serve with one"
        " worker.",
    )


def _get(path: str, endpoint: _Endpoint) -> Route:
    return Route(path, endpoint, methods=["GET"])


class _BreakerBody(msgspec.Struct, frozen=True):
    """What is to be done to a circuit."""

    action: Literal["open", "close", "reset"]


_read_change = msgspec.json.Decoder(_BreakerBody).decode


class _Endpoint:
    """One route, for who has its scope."""

    def __init__(self, guard: Guard, scope: str | None, serve: Serving) -> None:
        self._guard = guard
        self._scope = scope
        self._serve = serve

    async def __call__(self, scope: Message, *_: Any) -> None:
        asked: Asked = scope["seawall.asked"]
        if self._scope is not None:
            self._guard.demand(asked, self._scope)
        await self._serve(asked)


def _client(asked: Asked) -> Answer:
    """Say who asks, and what that client may do."""
    client = asked.client
    return json_answer({"name": client.name, "may": {one: client.may(one) for one in SCOPES}})


def _of_router(error: HTTPException, asked: Asked) -> Answer:
    """Say in our shape what the router found wrong."""
    if error.status_code == 405:
        allowed = (error.headers or {}).get("Allow", "")
        return refusal(
            FailureCode.UNSUPPORTED,
            "method_not_allowed",
            f"{asked.method[:20]} is not answered here; use {allowed}",
            headers=((b"allow", allowed.encode()),),
        )
    said = f"there is nothing at {asked.path[:200]}"
    return refusal(
        FailureCode.NOT_FOUND, "not_found", said, guidance="See /openapi.json for what there is."
    )
