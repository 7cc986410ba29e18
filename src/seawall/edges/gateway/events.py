"""What happens, told live to whoever looks: spans, what they change of tools, and approvals."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from seawall.contract.failure import FailureCode
from seawall.edges.gateway.answers import refusal
from seawall.edges.gateway.asked import Refused
from seawall.edges.gateway.changes import Changes
from seawall.edges.gateway.stream import Stream, event_of
from seawall.edges.gateway.views import span_body

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from seawall.contract.span import Span
    from seawall.edges.gateway.asked import Asked
    from seawall.edges.gateway.tokens import Client
    from seawall.edges.gateway.views import Views
    from seawall.orchestration.pipeline import Pipeline

MAX_VIEWERS = 100


class Events:
    """Everybody who looks, each with a bounded queue of its own."""

    def __init__(
        self, pipeline: Pipeline, views: Views, hello: dict[str, Any] | None = None
    ) -> None:
        self._hello = hello or {}
        self.meanwhile: Callable[[], Coroutine[Any, Any, None]] | None = None
        """What is done as long as somebody looks."""
        self._doing: asyncio.Future[None] | None = None
        self._clock = pipeline.clock
        self._trace = pipeline.trace
        self._streams: dict[Stream, Client] = {}
        self._changes = Changes(pipeline, views, self._on_change)

    async def serve(self, asked: Asked) -> None:
        """Stream to one viewer until it goes, or the gateway stops."""
        if len(self._streams) >= MAX_VIEWERS:
            said = f"{MAX_VIEWERS} viewers look already"
            raise Refused(refusal(FailureCode.RATE_LIMITED, "overloaded", said, retry_after_s=5.0))
        stream = Stream(asked, self._clock)
        await stream.begin()
        if not self._streams:
            self._trace.listen(self._on_span)
            self._doing = (
                None if self.meanwhile is None else asyncio.ensure_future(self.meanwhile())
            )
            self._changes.begin()
        self._streams[stream] = asked.client
        stream.put("hello", self._hello)
        try:
            await stream.drain_until_gone()
        finally:
            del self._streams[stream]
            if not self._streams:
                self._trace.unlisten(self._on_span)
                if self._doing is not None:
                    self._doing.cancel()
                self._changes.end()

    def tell(self, event: str, data: Any, caller: str) -> None:
        """Tell an approval, or what came of one, to its caller and to who may approve."""
        written = event_of(event, data)
        for stream, client in self._streams.items():
            if client.name == caller or client.may("approve"):
                stream.put_written(written)

    def touched(self, tool: str) -> None:
        """Tell how a tool looks now."""
        if self._streams:
            self._changes.touched(tool)

    def close(self) -> None:
        """End all streams, so that a gateway that stops need not wait for viewers."""
        for stream in self._streams:
            stream.end()

    def _on_span(self, span: Span) -> None:
        self._put_to_callers(event_of("span", span_body(span)))
        self._changes.touched(span.tool)

    def _on_change(self, changes: Any) -> None:
        self._put_to_callers(event_of("tools", changes))

    def _put_to_callers(self, written: bytes) -> None:
        """What was called, and what can be, is for those who may call."""
        for stream, client in self._streams.items():
            if client.may("call"):
                stream.put_written(written)
