"""The newest spans, in the order they ended: to look at, to export, to listen to.

A span has sizes, times and verdicts, so nothing here can show what a tool was given or gave.
Spans are kept from one event loop; reading is safe from any thread.
"""

from __future__ import annotations

import inspect
import json
from collections import deque
from collections.abc import Callable
from itertools import islice
from typing import TYPE_CHECKING, Any

import msgspec

from seawall.contract.errors import ConfigurationError, Fault
from seawall.contract.span import Digest, Outcome, Span
from seawall.pipeline.clock import SystemClock
from seawall.pipeline.digest import Digester
from seawall.pipeline.foreign import told
from seawall.pipeline.recorder import ToolRecorder
from seawall.recording.shown import moment, one_line, slug

if TYPE_CHECKING:
    from seawall.pipeline.clock import Clock

SpanListener = Callable[[Span], Any]

MAX_CAPACITY = 1_000_000

_SHORT = {"success": "ok", "failed": "fail"}
_EMPTY = Digest(0, 0, "")


class TraceRecorder:
    """A ring of the newest `capacity` spans; older ones are dropped and counted."""

    def __init__(
        self,
        capacity: int = 300,
        *,
        clock: Clock | None = None,
        digester: Digester | None = None,
    ) -> None:
        self._spans: deque[Span] = deque(maxlen=_checked(capacity))
        self._seen = 0
        # Replaced, never changed: a listener may come or go while the others are told.
        self._listeners: tuple[SpanListener, ...] = ()
        self._clock = SystemClock() if clock is None else clock
        self._digester = Digester() if digester is None else digester
        self._start = self._clock.now()

    def for_tool(self, tool: str) -> ToolRecorder:  # noqa: ARG002  # one ring holds all tools
        """Give the function that keeps a span."""
        return ToolRecorder(on_attempt=self._keep, on_success=self._keep_success)

    def unknown(self) -> None:
        """Keep nothing: a name that is not registered has no span."""

    def begin(
        self, tool: str, *, call_id: str = "", attempt: int = 1, arguments: Any = None
    ) -> SpanHandle:
        """Begin a span of your own. Of `arguments` (text or value) only a digest is kept."""
        now = self._clock.now()
        draft = Span(
            call_id=call_id,
            tool=tool,
            attempt=attempt,
            started=self._clock.wall(),
            duration_ms=0.0,
            outcome=Outcome.SKIPPED,
            digest=self._digest(tool, arguments),
            offset_s=now - self._start,
        )
        return SpanHandle(draft, now, self._clock.now, self._keep)

    def listen(self, callback: SpanListener) -> None:
        """Tell `callback` each span that ends from now on. Adding it again changes nothing."""
        if not callable(callback) or inspect.iscoroutinefunction(callback):
            raise ConfigurationError(
                f"a listener of spans is a plain function that takes a span; {callback!r} is not: "
                "let a function start the task, or put the span into a queue"
            )
        if callback not in self._listeners:
            self._listeners = (*self._listeners, callback)

    def unlisten(self, callback: SpanListener) -> None:
        """Stop telling `callback`; nothing happens if it does not listen."""
        self._listeners = tuple(one for one in self._listeners if one != callback)

    @property
    def capacity(self) -> int:
        """How many spans are kept at most."""
        return self._spans.maxlen or 0

    @property
    def dropped(self) -> int:
        """How many spans were not kept, or not for so long."""
        return self._seen - len(self._spans)

    def __len__(self) -> int:
        return len(self._spans)

    def spans(
        self, limit: int | None = None, *, tool: str | None = None, call_id: str | None = None
    ) -> list[Span]:
        """Kept spans, newest first; of one tool or of one call if asked."""
        found = (
            span
            for span in reversed(self._spans.copy())
            if tool in (None, span.tool) and call_id in (None, span.call_id)
        )
        return list(islice(found, None if limit is None else max(limit, 0)))

    def histogram(self) -> dict[str, int]:
        """How the kept spans ended, in short: `ok`, `fail`, `denied`, `skipped`."""
        return {_SHORT.get(word, word): count for word, count in self.outcomes().items()}

    def outcomes(self) -> dict[str, int]:
        """How the kept spans ended, in the words of spans: `success`, `failed`, `denied`, …."""
        counts = {outcome.value: 0 for outcome in Outcome}
        for span in self._spans.copy():
            counts[span.outcome.value] += 1
        return counts

    def export(self, limit: int = 200) -> list[dict[str, Any]]:
        """Kept spans as JSON-able values, newest first; of arguments their digests only."""
        return [_exported(span) for span in self.spans(limit)]

    def export_json(self, limit: int = 200, *, indent: int | None = None) -> str:
        """Write what `export` gives as JSON text in ASCII."""
        return json.dumps(self.export(limit), indent=indent)

    def report(self, limit: int = 40) -> str:
        """For people: how the kept spans ended, then the newest, a line each."""
        head = ", ".join(f"{word} {count}" for word, count in self.outcomes().items())
        return "\n".join([head, *map(_line, self.spans(limit))])

    def _keep(self, span: Span) -> None:
        self._spans.append(span)
        self._seen += 1
        if self._listeners:
            told(self._listeners, span)

    def _keep_success(self, span: Span, _: float) -> None:  # as `_keep`, a frame less
        self._spans.append(span)
        self._seen += 1
        if self._listeners:
            told(self._listeners, span)

    def _digest(self, tool: str, arguments: Any) -> Digest:
        if isinstance(arguments, str):
            arguments = _value_of(arguments.strip())
        return _EMPTY if arguments is None else self._digester.of(tool, arguments)


class SpanHandle:
    """A span that was begun and is recorded once, when it is first completed."""

    __slots__ = ("_begun", "_draft", "_keep", "_now")

    def __init__(
        self, draft: Span, begun: float, now: Callable[[], float], keep: Callable[[Span], None]
    ) -> None:
        self._draft = draft
        self._begun = begun
        self._now = now
        self._keep: Callable[[Span], None] | None = keep

    def complete(self, outcome: Outcome | str, reason: str = "") -> bool:
        """Record how it ended; False if that was said before, then nothing is recorded.

        A `reason` that is no slug is not kept.
        """
        ended = Outcome(outcome)
        if self._keep is None:
            return False
        keep, self._keep = self._keep, None
        span = msgspec.structs.replace(
            self._draft,
            duration_ms=(self._now() - self._begun) * 1000,
            outcome=ended,
            reason="" if ended is Outcome.SUCCESS else slug(reason),
        )
        keep(span)
        return True


def _checked(capacity: int) -> int:
    whole = isinstance(capacity, int) and not isinstance(capacity, bool)
    if whole and 0 <= capacity <= MAX_CAPACITY:
        return capacity
    message = f"a trace keeps 0 to {MAX_CAPACITY} spans, not {capacity!r}; 0 keeps none"
    raise ConfigurationError([Fault(message, key="capacity")])


def _value_of(text: str) -> Any:
    """Read the text if it is JSON, so that its digest equals that of the value."""
    if not text:
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _exported(span: Span) -> dict[str, Any]:
    exported: dict[str, Any] = msgspec.to_builtins(span)
    exported.update(
        reason=slug(span.reason), mended=list(span.mended), verdicts=list(span.verdicts)
    )
    return exported


def _line(span: Span) -> str:
    parts = [
        moment(span.started),
        one_line(span.tool),
        span.outcome.value,
        slug(span.reason),
        f"attempt {span.attempt}",
        f"{span.duration_ms:.1f} ms",
        str(span.digest or _EMPTY),
        f"call {one_line(span.call_id)}" if span.call_id else "",
        *map(one_line, span.verdicts),
    ]
    return "  ".join(part for part in parts if part)
