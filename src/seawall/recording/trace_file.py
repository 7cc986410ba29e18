"""Every span of a pipeline in a file, as JSON lines, to replay, tune or look at later.

    {"trace": 1, "started": …}                      a recorder began; several may follow in one file
    {"about": "search", "hints": {…}, …}            what policies choose a tool by
    {"call_id": "…", "tool": "search", …}           a span: times, verdicts, digests
    {"call": "…", "tool": "search", …}              a call ended

Fingerprints and digests only, never what a tool was given or gave. Lines wait at most `flush_s`
seconds, or until there are 64 KiB of them; a process that is killed loses no more than those.
"""

from __future__ import annotations

import logging
import os
from bisect import insort
from contextlib import contextmanager, suppress
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import msgspec

from seawall.contract.errors import ConfigurationError, Fault
from seawall.contract.span import Instants, Outcome, Span
from seawall.pipeline.clock import SystemClock
from seawall.pipeline.digest import Digester
from seawall.pipeline.recorder import Finished, ToolRecorder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from seawall.contract.tool import Tool
    from seawall.pipeline.clock import Clock, Timer

logger = logging.getLogger("seawall")

MAX_BUFFER = 64 * 1024
"""Bytes that wait to be written."""

VERSION = 1


class Head(msgspec.Struct, frozen=True):
    """The line with which a recorder begins."""

    trace: int
    started: float
    """Seconds since the epoch; offsets of the lines that follow count from here."""


class About(msgspec.Struct, frozen=True, omit_defaults=True):
    """What policies choose a tool by."""

    about: str
    hints: dict[str, bool] = {}
    imported: bool = False
    family: str | None = None
    category: str = ""
    tags: tuple[str, ...] = ()
    duration: float | None = None
    exclusive: str | None = None
    """The key, or `$` and the argument that holds it."""


class SpanLine(Span, frozen=True, omit_defaults=True, gc=False):
    """A span in a file: those of its fields that say nothing are left out."""


class CallLine(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """The end of a call."""

    call: str
    tool: str
    outcome: Outcome
    reason: str = ""
    layer: str = ""
    elapsed_ms: float = 0.0
    attempts: int = 0
    caller: str = ""
    """Fingerprints, to give each caller and session a budget of its own in a replay."""
    session: str = ""
    instants: Instants | None = None


class TraceFile:
    """A recorder that appends to a file, made readable for its owner alone.

        with TraceFile("day.jsonl", tools=registry) as recorder:
            pipeline = Pipeline(registry, recorders=[recorder])

    `tools` tells what policies choose by; without it a replay has to be given the tools. What
    cannot be written is counted in `lost` and logged once; it harms no call.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        tools: Mapping[str, Tool] | Any = None,
        clock: Clock | None = None,
        digester: Digester | None = None,
        flush_s: float = 0.2,
    ) -> None:
        self.path = Path(path)
        self.lost = 0
        """Lines that could not be written."""
        self._tools = tools
        self._clock = SystemClock() if clock is None else clock
        self._digester = Digester() if digester is None else digester
        self._flush_s = flush_s
        self._encode = msgspec.json.Encoder().encode
        self._buffer = bytearray()
        self._lines = 0
        self._due = 0.0
        self._timer: Timer | None = None
        self._told: dict[str, About] = {}
        self._prints: dict[str, str] = {}
        self._file: int | None = _opened(self.path)
        self._put(Head(VERSION, self._clock.wall()))
        self.flush()

    def for_tool(self, tool: str) -> ToolRecorder:
        """Give the functions that write spans and ends of calls; says what the tool is like."""
        found = None if self._tools is None else self._tools.get(tool)
        if found is not None and self._told.get(tool) != (about := about_tool(found)):
            self._told[tool] = about
            self._put(about)
        return ToolRecorder(on_attempt=self._span, on_call=self._call)

    def unknown(self) -> None:
        """Write nothing: a name that is not registered has no span."""

    def flush(self) -> None:
        """Write what waits."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        data, lines = bytes(self._buffer), self._lines
        self._buffer.clear()
        self._lines = 0
        if self._file is None:
            self.lost += lines
            return
        try:
            while data:
                data = data[os.write(self._file, data) :]
        except OSError as error:
            if not self.lost:
                logger.warning("%s: spans cannot be written: %s", self.path, error.strerror)
            self.lost += lines

    def close(self) -> None:
        """Write what waits and close the file; spans that still come are counted as lost."""
        self.flush()
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def _span(self, span: Span) -> None:
        self._put(SpanLine(*(getattr(span, name) for name in _FIELDS)))

    def _call(self, finished: Finished) -> None:
        self._put(
            CallLine(
                finished.call_id,
                finished.tool,
                finished.outcome,
                finished.reason,
                finished.layer,
                finished.elapsed_s * 1000,
                finished.attempts,
                self._print(finished.caller),
                self._print(finished.session_id),
                finished.instants,
            )
        )

    def _print(self, name: str) -> str:
        """Fingerprint a caller or session; most come again."""
        if not name:
            return ""
        found = self._prints.get(name)
        if found is None:
            if len(self._prints) >= _MAX_PRINTS:
                self._prints.clear()
            found = self._prints[name] = self._digester.text(name)
        return found

    def _put(self, line: msgspec.Struct) -> None:
        buffer = self._buffer
        buffer += self._encode(line)
        buffer += b"\n"
        self._lines += 1
        now = self._clock.now()
        if self._lines == 1:
            self._due = now + self._flush_s
            # Outside of a loop, as when a pipeline is made, the next line looks at the time.
            with suppress(RuntimeError):
                self._timer = self._clock.call_later(self._flush_s, self.flush)
        elif len(buffer) >= MAX_BUFFER or now >= self._due:
            self.flush()


_FIELDS = SpanLine.__struct_fields__
_MAX_PRINTS = 4_096


def about_tool(tool: Tool) -> About:
    """Tell what policies choose a tool by."""
    hints = {
        name: value
        for name in tool.annotations.__struct_fields__
        if (value := getattr(tool.annotations, name)) is not None
    }
    duration = tool.duration if isinstance(tool.duration, (int, float)) else None
    return About(
        tool.name,
        hints,
        tool.imported,
        tool.family,
        tool.category,
        tuple(tool.tags),
        duration,
        tool.exclusive,
    )


def _opened(path: Path) -> int:
    try:
        file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
    except OSError as error:
        said = f"cannot be written: {error.strerror or type(error).__name__}"
        raise ConfigurationError([Fault(said, file=str(path))]) from None
    size = os.fstat(file).st_size
    if size and os.pread(file, 1, size - 1) != b"\n":
        os.write(file, b"\n")  # the last line of a recorder that was killed
    return file


class Recorded(msgspec.Struct, kw_only=True):
    """A call as it was recorded: its spans in order, and how it ended."""

    tool: str
    call_id: str
    arrival_s: float
    spans: list[Span] = []
    end: CallLine | None = None

    @property
    def attempts(self) -> int:
        """How often it was tried."""
        if self.end is not None:
            return self.end.attempts
        return self.spans[-1].attempt if self.spans else 0

    @property
    def outcome(self) -> Outcome:
        """How it ended."""
        return self.end.outcome if self.end else self.spans[-1].outcome

    @property
    def reason(self) -> str:
        """Why; empty for success."""
        return self.end.reason if self.end else self.spans[-1].reason

    @property
    def layer(self) -> str:
        """Who refused or failed it; empty if that was not written."""
        return self.end.layer if self.end else ""


class Trace(msgspec.Struct, kw_only=True):
    """What a file holds."""

    tools: dict[str, About] = {}
    calls: list[Recorded] = []
    """In the order of their arrival."""
    broken: int = 0
    """Lines that a killed recorder left unfinished."""


def read_trace(path: str | Path, *more: str | Path) -> Trace:
    """Read a file of `TraceFile`, or spans as JSON lines; several, as workers write, are one trace.

    Their order does not matter: each says when it was begun. The last line of each recorder may be
    unfinished: then it was killed. Anything else that is no such line raises `ConfigurationError`,
    with its number.
    """
    reader = _Reader()
    for one in sorted((path, *more), key=_begun) if more else (path,):  # a pipe opens only once
        with _told_if_unreadable(one), Path(one).open("rb") as lines:
            reader.begin(str(one))
            for number, line in enumerate(lines, 1):
                reader.line(number, line)
        reader.end()
    return reader.trace()


def _begun(path: str | Path) -> float:
    """Say when a file's first recorder was begun: the first file's is what times count from."""
    with _told_if_unreadable(path), Path(path).open("rb") as lines:
        first = lines.readline()
    try:
        return msgspec.json.decode(first, type=Head).started
    except (msgspec.DecodeError, msgspec.ValidationError):
        return 0.0


@contextmanager
def _told_if_unreadable(path: str | Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        said = f"cannot be read: {error.strerror or type(error).__name__}"
        raise ConfigurationError([Fault(said, file=str(path))]) from None


_attempt = attrgetter("attempt")


class _Reader:
    def __init__(self) -> None:
        self._file = ""
        self._has_lines = False
        self._trace = Trace()
        self._first: float | None = None
        self._base = 0.0
        self._unfinished: Fault | None = None
        self._open: dict[tuple[str, str], Recorded] = {}
        self._kinds: tuple[tuple[bytes, Callable[[bytes], None]], ...] = (
            (b'{"call_id"', self._span),
            (b'{"call"', self._end),
            (b'{"about"', self._about),
            (b'{"trace"', self._head),
        )
        self._spans = msgspec.json.Decoder(Span)
        self._ends = msgspec.json.Decoder(CallLine)
        self._abouts = msgspec.json.Decoder(About)
        self._heads = msgspec.json.Decoder(Head)

    def begin(self, file: str) -> None:
        """Begin a file, which goes on with nothing of the one before."""
        self._file, self._has_lines, self._base = file, False, 0.0
        self._unfinished = None
        self._open.clear()

    def end(self) -> None:
        """Refuse a file of which no line could be read."""
        if self._unfinished is not None and not self._has_lines:
            raise ConfigurationError([self._unfinished])

    def line(self, number: int, line: bytes) -> None:
        """Take one line."""
        if not line.strip():
            return
        if self._unfinished is not None:
            if not line.startswith(b'{"trace"'):
                raise ConfigurationError([self._unfinished])
            self._unfinished = None
        read = next((read for begin, read in self._kinds if line.startswith(begin)), self._span)
        try:
            read(line)
            self._has_lines = True
        except (msgspec.DecodeError, msgspec.ValidationError) as error:
            self._unfinished = Fault(f"is no line of a trace: {error}", "", self._file, number)
            self._trace.broken += 1

    def trace(self) -> Trace:
        """Give what was read."""
        self._trace.calls.sort(key=lambda call: call.arrival_s)
        return self._trace

    def _head(self, line: bytes) -> None:
        head = self._heads.decode(line)
        if self._first is None:
            self._first = head.started
        self._base = max(head.started - self._first, 0.0)
        self._open.clear()

    def _about(self, line: bytes) -> None:
        about = self._abouts.decode(line)
        self._trace.tools[about.about] = about

    def _span(self, line: bytes) -> None:
        span = self._spans.decode(line)
        key, arrival_s = (span.tool, span.call_id), self._base + span.offset_s
        call = self._open.get(key)
        if call is None or call.arrival_s != arrival_s:
            call = Recorded(tool=span.tool, call_id=span.call_id, arrival_s=arrival_s, spans=[])
            self._open[key] = call
            self._trace.calls.append(call)
        if call.end is not None and len(call.spans) + 1 >= call.end.attempts:
            del self._open[key]
        insort(call.spans, span, key=_attempt)

    def _end(self, line: bytes) -> None:
        end = self._ends.decode(line)
        key = (end.tool, end.call)
        call = self._open.get(key)
        if call is None:
            return
        call.end = end
        # Attempts that lost a race may still be ending.
        if len(call.spans) >= end.attempts:
            del self._open[key]
