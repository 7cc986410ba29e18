"""`seawall trace`: the spans of an export, listed, counted, or written again."""

from __future__ import annotations

import sys
from collections import Counter
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from seawall.contract.errors import ConfigurationError, Fault
from seawall.contract.sentences import counted
from seawall.contract.span import Outcome, Span
from seawall.edges.cli.exits import Exit
from seawall.recording.shown import moment, one_line, slug

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seawall.edges.cli.paper import Paper

MAX_BYTES = 256 * 1024 * 1024
MAX_FAULTS = 10
MAX_NAMED = 5

COLUMNS = ("started", "tool", "outcome", "reason", "attempt", "ms", "arguments", "call", "verdicts")
NARROW_COLUMNS = ("at", "tool", "outcome", "reason", "try", "ms", "call")
LEFT_OUT = "No room here for: the date, arguments, verdicts. --json has all."
WIDE = 140
"""Columns of a terminal that has room for all; times are those of the day below it."""
OUTCOMES = tuple(outcome.value for outcome in Outcome)


class TraceOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What the command line said."""

    tool: str | None = None
    call: str | None = None
    limit: int = 40
    histogram: bool = False
    suggest: bool = False
    export: str | None = None
    as_json: bool = False


def trace(file: str, options: TraceOptions, paper: Paper, errors: Paper) -> Exit:
    """Read the spans, choose from them, and write what was asked for."""
    spans = spans_from(file)
    if not spans:
        errors.line(f"no span is recorded in {file}", lead="note: ")
    chosen = [
        span
        for span in spans
        if options.tool in (None, span.tool) and options.call in (None, span.call_id)
    ]
    if not chosen and (options.tool is not None or options.call is not None):
        errors.line(
            f"None of {counted(len(spans), 'span')} in {file} is {_of_what(spans, options)}"
        )
        return Exit.NOT_FOUND
    if options.export is not None:
        code = _export(chosen, options.export)
        errors.text(f"Written to {options.export}: {len(chosen)} of {len(spans)} spans.")
        return code
    if options.suggest:
        return _suggest(chosen, paper, errors, as_json=options.as_json)
    if options.histogram:
        _histogram(chosen, paper, as_json=options.as_json)
        return Exit.OK
    if options.call is not None:
        listed = sorted(chosen, key=lambda span: (span.attempt, span.started))
    else:
        listed = sorted(chosen, key=lambda span: span.started, reverse=True)[: options.limit]
    if options.as_json:
        paper.text(msgspec.json.encode(listed).decode())
        return Exit.OK
    counts = Counter(span.outcome.value for span in chosen)
    paper.text(", ".join(f"{name} {counts[name]}" for name in OUTCOMES))
    if listed:
        _table(listed, paper)
    return Exit.OK


def _of_what(spans: Sequence[Span], options: TraceOptions) -> str:
    """Say what was looked for, and which tools there are if it was one of them."""
    if options.tool is None:
        return f"of the call {options.call!r}."
    tools = sorted({one_line(span.tool) for span in spans})
    if options.call is not None and options.tool in tools:
        return f"of the tool {options.tool!r} and the call {options.call!r}."
    near = get_close_matches(options.tool, tools, 3, 0.6) or tools[:MAX_NAMED]
    more = ", …" if len(near) == MAX_NAMED < len(tools) else ""
    there = f"; there are {', '.join(near)}{more}" if near else ""
    return f"of the tool {options.tool!r}{there}."


def spans_from(file: str) -> list[Span]:
    """Read an export: a JSON list, or a span in each line; `-` is standard input.

    Raises `ConfigurationError` for what is no span, with its line or place in the list.
    """
    text = _text(file)
    if text.lstrip()[:1] == "[":
        try:
            rows: list[Any] = msgspec.json.decode(text)
        except msgspec.DecodeError as error:
            raise ConfigurationError([Fault(f"is no JSON: {error}", file=file)]) from None
        return _spans([(None, row) for row in rows], file)
    lines = [
        (number, msgspec.Raw(line.encode()))
        for number, line in enumerate(text.split("\n"), 1)
        if line.strip() and not line.startswith(_NO_SPANS)
    ]
    if not text.endswith("\n") and lines and len(lines) > 1 and not _is_json(lines[-1][1]):
        del lines[-1]  # of a recorder that was killed
    return _spans(lines, file)


_NO_SPANS = ('{"trace":', '{"about":', '{"call":')
"""How the other lines of a recorded file begin."""


def _is_json(line: msgspec.Raw) -> bool:
    try:
        msgspec.json.decode(line)
    except msgspec.DecodeError:
        return False
    return True


def _spans(rows: Sequence[tuple[int | None, Any]], file: str) -> list[Span]:
    found: list[Span] = []
    faults: list[Fault] = []
    for place, (line, row) in enumerate(rows):
        try:
            decoded = msgspec.json.decode(row) if isinstance(row, msgspec.Raw) else row
            found.append(msgspec.convert(decoded, Span))
        except (msgspec.ValidationError, msgspec.DecodeError) as error:
            where = f"[{place}]" if line is None else ""
            faults.append(Fault(f"is no span: {error}", where, file, line))
            if len(faults) == MAX_FAULTS:
                break
    if faults:
        raise ConfigurationError(faults)
    return found


def _text(file: str) -> str:
    if file == "-":
        text = sys.stdin.read(MAX_BYTES + 1)
        if len(text) > MAX_BYTES:
            said = f"is larger than {MAX_BYTES // 1024 // 1024} MiB; cut it into parts"
            raise ConfigurationError([Fault(said, "standard input")])
        return text
    path = Path(file)
    try:
        if path.stat().st_size > MAX_BYTES:
            said = f"is larger than {MAX_BYTES // 1024 // 1024} MiB; cut it into parts"
            raise ConfigurationError([Fault(said, file=file)])
        return path.read_text(encoding="utf-8")
    except OSError as error:
        said = f"cannot be read: {error.strerror or type(error).__name__}"
        raise ConfigurationError([Fault(said, file=file)]) from None
    except UnicodeDecodeError:
        raise ConfigurationError([Fault("is no UTF-8 text; save it as that", file=file)]) from None


def _row(span: Span) -> tuple[str, ...]:
    return (
        moment(span.started),
        one_line(span.tool),
        span.outcome.value,
        slug(span.reason) or "-",
        str(span.attempt),
        f"{span.duration_ms:.1f}",
        "-" if span.digest is None else one_line(str(span.digest)),
        one_line(span.call_id) or "-",
        " ".join(map(one_line, span.verdicts)) or "-",
    )


def _table(spans: Sequence[Span], paper: Paper) -> None:
    rows = [_row(span) for span in spans]
    if not paper.is_terminal or paper.width >= WIDE:
        paper.table(COLUMNS, rows)
        return
    short = [(row[0][11:23], *row[1:6], row[7]) for row in rows]
    paper.table(NARROW_COLUMNS, short)
    paper.line((LEFT_OUT, "dim"))


def _histogram(spans: Sequence[Span], paper: Paper, *, as_json: bool) -> None:
    tools: dict[str, Counter[str]] = {}
    for span in spans:
        tools.setdefault(span.tool, Counter())[span.outcome.value] += 1
    if as_json:
        counted = {name: {one: counts[one] for one in OUTCOMES} for name, counts in tools.items()}
        paper.text(msgspec.json.encode(counted).decode())
        return
    total = sum(tools.values(), Counter[str]())
    rows = [
        (one_line(name), *(str(counts[one]) for one in OUTCOMES))
        for name, counts in sorted(tools.items(), key=lambda item: (-item[1].total(), item[0]))
    ]
    paper.table(("tool", *OUTCOMES), [*rows, ("all", *(str(total[one]) for one in OUTCOMES))])


def _suggest(spans: Sequence[Span], paper: Paper, errors: Paper, *, as_json: bool) -> Exit:
    from seawall.orchestration.mining import mine  # noqa: PLC0415  # only for --suggest

    found = mine(spans)
    if as_json:
        paper.text(msgspec.json.encode(found).decode())
        return Exit.OK
    if not found:
        errors.text("Nothing was done again and again.")
    for one in found:
        paper.text(f"{one.count} times: {' then '.join(map(one_line, one.tools))}")
        paper.text(msgspec.json.format(msgspec.json.encode(one.definition), indent=2).decode())
    return Exit.OK


def _export(spans: Sequence[Span], file: str) -> Exit:
    if Path(file).suffix == ".json":
        data = msgspec.json.encode(spans) + b"\n"
    else:
        data = b"".join(msgspec.json.encode(span) + b"\n" for span in spans)
    try:
        Path(file).write_bytes(data)
    except OSError as error:
        said = f"cannot be written: {error.strerror or type(error).__name__}"
        raise ConfigurationError([Fault(said, file=file)]) from None
    return Exit.OK
