"""Whatever an executor gives becomes a bounded, valid result; whatever it raises, a failure."""

from __future__ import annotations

import base64
import itertools
import json
import math
import re
from collections.abc import Iterable, Iterator
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import msgspec

from seawall.contract.content import (
    AudioContent,
    Content,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
)
from seawall.contract.failure import GUIDANCE, Failure, FailureCode, Issue, ToolFailed
from seawall.contract.result import ToolResult
from seawall.pipeline.extent import MAX_CHARACTERS, MAX_ITEMS, Extent, extent_of
from seawall.pipeline.foreign import account_of, attempted, leaves, without
from seawall.pipeline.plain import Plain, base_of

if TYPE_CHECKING:
    from seawall.contract.tool import Tool
    from seawall.pipeline.invocation import Invocation

MAX_MESSAGE = 2_000
MAX_GUIDANCE = 1_000
MAX_PARTS = 64
"""Hints, issues and causes kept of a failure that a tool made itself."""

# Before Python 3.12 it takes longer to ask the class for one of its members than to compare it.
_EXECUTION_FAILED = FailureCode.EXECUTION_FAILED
_TIMEOUT = FailureCode.TIMEOUT

_NOTHING_WAS_RUN = "Nothing was run."

_SLUG = re.compile(r"[a-z][a-z0-9_]{0,63}")

_BLOCKS = (TextContent, ImageContent, AudioContent, EmbeddedResource, ResourceLink)

_DATA = frozenset((int, float, bool, dict))

_FILE_ERRORS = (FileNotFoundError, FileExistsError, IsADirectoryError, NotADirectoryError)
"""Answers about what was asked for, not about the health of the tool."""

_ASKED = (ToolFailed, BaseExceptionGroup, *_FILE_ERRORS)
"""Few are of these types: of all others it need not be asked what they chose, hold or mean."""


def result_of(value: Any, call: Invocation) -> ToolResult:
    """Make the result of what an executor returned, of which `settled` has made sure."""
    if isinstance(value, ToolResult):
        return _own_result(value, call)
    # Of most it need not be asked what else they might be.
    content, structured = _of_data(value) if type(value) in _DATA else _parts(value)
    return ToolResult(
        call_id=call.call_id,
        tool=call.tool.name,
        content=content,
        structured_content=structured,
        duration_ms=None if call.executed_s is None else call.executed_s * 1000.0,
        attempts=call.attempt,
    )


def result_of_text(text: str, call: Invocation, structured: int | None) -> ToolResult:
    """Make the result of a plain text, as most are, or of a number that was written as one."""
    return ToolResult(
        call_id=call.call_id,
        tool=call.tool.name,
        content=(TextContent(text=text if text.isascii() else _valid(text)),),
        structured_content=structured,
        duration_ms=None if call.executed_s is None else call.executed_s * 1000.0,
        attempts=call.attempt,
    )


def failed_result(failure: Failure, call: Invocation) -> ToolResult:
    """Make the result of a failure that `failure_of` gave."""
    return ToolResult(
        call_id=call.call_id,
        tool=call.tool.name,
        content=(TextContent(text=_valid(failure.render())),),
        is_error=True,
        failure=failure,
        duration_ms=None if call.executed_s is None else call.executed_s * 1000,
        attempts=call.attempt,
    )


def _own_result(value: ToolResult, call: Invocation) -> ToolResult:
    content, structured, failure = value.content, value.structured_content, value.failure
    if not (isinstance(content, tuple) and all(isinstance(block, _BLOCKS) for block in content)):
        content = parts_of(content)[0] if content else ()
    else:
        content = tuple(map(_sound, content))
    if structured is not None:
        structured = _of_data(structured)[1]
    if failure is not None:
        found = _sound_failure(failure)
        failure = counted(_owned(found, of_another=bool(value.call_id)), failure, call)
        if failure.may_have_run is not found.may_have_run:
            content = _said_anew(content, found, failure)
    elif value.is_error:
        failure = Failure(
            code=FailureCode.EXECUTION_FAILED,
            layer="executor",
            message=_shortened(content) or "the tool reported an error without a text",
        )
    if failure is not None:
        failure = at_most_once(failure, changing=may_change(call.tool))
    return msgspec.structs.replace(
        value,
        call_id=call.call_id,
        tool=call.tool.name,
        content=content,
        structured_content=structured,
        failure=failure,
        is_error=failure is not None,
        duration_ms=None if call.executed_s is None else call.executed_s * 1000,
        attempts=call.attempt,
    )


def with_effect(result: ToolResult, *, may_have_run: bool | None) -> ToolResult:
    """Have a failed result say something else of whether an effect is possible."""
    failure = result.failure
    if failure is None or failure.may_have_run is may_have_run:
        return result
    corrected = _of_effect(failure, may_have_run=may_have_run)
    content = _said_anew(result.content, failure, corrected)
    return msgspec.structs.replace(result, failure=corrected, content=content)


def may_change(tool: Tool) -> bool:
    """Whether a second call of a tool may have a second effect."""
    return not (tool.retry_safe or tool.annotations.is_read_only)


def may_be_repeated(call: Invocation) -> bool:
    """Whether a call that is given up now may be made again: it cannot take effect twice."""
    return not (call.started and may_change(call.tool))


def at_most_once(failure: Failure, *, changing: bool) -> Failure:
    """Take back that a call may be made again, where it may then take effect twice.

    `changing` is whether its tool may change something. What a tool says of an answer that it got
    itself, as that it is asked too often, counts: unless it may have done something before.
    """
    if not (changing and failure.retryable) or failure.may_have_run is False:
        return failure
    if failure.may_have_run is None and failure.code not in _IN_DOUBT:
        return failure
    return msgspec.structs.replace(failure, retryable=False)


_IN_DOUBT = frozenset((FailureCode.EXECUTION_FAILED, FailureCode.TIMEOUT))
"""Codes of failures that may have come after the effect."""


def _said_anew(
    content: tuple[Content, ...], failure: Failure, corrected: Failure
) -> tuple[Content, ...]:
    """Have content that says a failure say it as it is now."""
    said, text = _valid(failure.render()), _valid(corrected.render())
    return tuple(
        TextContent(text=text) if isinstance(block, TextContent) and block.text == said else block
        for block in content
    )


def _of_effect(failure: Failure, *, may_have_run: bool | None) -> Failure:
    # What a guidance says of it too would speak against it.
    guidance = failure.guidance.replace(_NOTHING_WAS_RUN, "").strip()
    return msgspec.structs.replace(failure, guidance=guidance, may_have_run=may_have_run)


def _shortened(content: tuple[Content, ...]) -> str:
    text = next((block.text for block in content if isinstance(block, TextContent)), "")
    line = text.strip().split("\n", 1)[0]
    return line if len(line) <= 500 else line[:499] + "…"


def _sound(block: Content) -> Content:
    """Give a block that a tool built as JSON can say it; nearly always it is itself."""
    if type(block) is TextContent and block.annotations is None and block.meta is None:
        text = block.text
        if type(text) is str:
            return block if _valid(text) is text else TextContent(text=_valid(text))
        return parts_of(text)[0][0] if text is not None else TextContent(text="")
    return _as_json(block) or _of_odd_block(block)


def _as_json(block: Content) -> Content | None:
    try:
        found: Content = msgspec.json.decode(_encode(block), type=type(block))
    except (TypeError, ValueError, OverflowError, RecursionError, msgspec.MsgspecError):
        return None
    return found


def _of_odd_block(block: Content) -> Content:
    """Say a block as plain data, in its own form if that fits, else as text."""
    plain = _PlainData().of(msgspec.structs.asdict(block))
    return _as_json(type(block)(**plain)) or _of_data(plain)[0][0]


def settled(value: Any) -> Any:
    """Give a value itself, or its beginning in plain data if it would be too much."""
    if isinstance(value, ToolResult):
        structured = settled(value.structured_content)
        if structured is not value.structured_content:
            value = msgspec.structs.replace(value, structured_content=structured)
        content = settled(value.content)
        if content is not value.content:
            value = msgspec.structs.replace(value, content=_of_odd_data(content)[0])
        return value
    return _PlainData().of(value) if extent_of(value) is Extent.EXCESSIVE else value


def parts_of(value: Any) -> tuple[tuple[Content, ...], Any]:
    """Content blocks and structured content of any value."""
    return _parts(settled(value))


def data_of(value: Any) -> Any:
    """Give a value as JSON can say it, for structured content."""
    return _of_data(settled(value))[1]


def _parts(value: Any) -> tuple[tuple[Content, ...], Any]:
    if isinstance(value, str):
        return (TextContent(text=_valid(base_of(value))),), None
    if value is None:
        return (), None
    if isinstance(value, _BLOCKS):
        return (_sound(value),), None
    if isinstance(value, (bytes, bytearray, memoryview)):
        return (_of_bytes(bytes(memoryview(value))),), None
    if isinstance(value, Iterator):
        value = _taken(value)
    if isinstance(value, (list, tuple)) and value and all(isinstance(v, _BLOCKS) for v in value):
        return tuple(map(_sound, value)), None
    return _of_data(value)


def _of_data(value: Any) -> tuple[tuple[Content, ...], Any]:
    try:
        raw = _encode(value)
        return (TextContent(text=raw.decode()),), _decode(raw)
    except (TypeError, ValueError, OverflowError, RecursionError, msgspec.MsgspecError):
        return _of_odd_data(value)


def _of_odd_data(value: Any) -> tuple[tuple[Content, ...], Any]:
    """Data that the encoder refuses: very large integers, odd keys, cycles, surrogates."""
    try:
        plain = _PlainData().of(value)
        text = json.dumps(plain, allow_nan=False)
        return (TextContent(text=text),), plain
    except (TypeError, ValueError, RecursionError):
        return (TextContent(text=f"<{type(value).__name__}>"),), None


class _PlainData(Plain):
    """What a tool gave, as JSON can say it."""

    def __init__(self) -> None:
        super().__init__()
        self._room = MAX_CHARACTERS // 10

    def scalar(self, value: Any) -> Any:
        value = base_of(value)
        if isinstance(value, str):
            self._room -= len(value)
            return _valid(value) if self._room >= 0 else "<more>"
        return None if isinstance(value, float) and not math.isfinite(value) else value

    def other(self, value: Any, depth: int) -> Any:
        if isinstance(value, (range, Iterator)):
            return self.of(_taken(iter(value)), depth)
        if isinstance(value, PurePath):
            return _valid(str(value))
        try:
            return self.of(_dumped(value), depth)
        except TypeError:
            return super().other(value, depth)


def _dumped(value: Any) -> Any:
    """Data of an object that says how: pydantic models and their like; the base of a scalar.

    Any other is refused, and then looked at by `_PlainData`: here it cannot be told whether it
    is a key of a mapping, and an iterator could not be read a second time.
    """
    base = base_of(value)
    if base is not value:
        return base
    dump = getattr(value, "model_dump", None)
    if callable(dump) and not isinstance(value, type):
        return dump(mode="json", by_alias=True)  # as its schema names the fields
    raise TypeError(f"{type(value).__name__} is no JSON")


_encode = msgspec.json.Encoder(enc_hook=_dumped).encode
_decode = msgspec.json.Decoder().decode


def _taken(items: Iterator[Any]) -> list[Any]:
    taken = list(itertools.islice(items, MAX_ITEMS))
    close = getattr(items, "close", None)
    if callable(close):
        close()
    return taken


def _valid(text: str) -> str:
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text


def _of_bytes(data: bytes) -> Content:
    try:
        return TextContent(text=data.decode())
    except UnicodeDecodeError:
        blob = base64.b64encode(data).decode()
        resource = {"uri": "data:,", "mimeType": "application/octet-stream", "blob": blob}
        return EmbeddedResource(resource=resource)


def is_answer(error: BaseException) -> bool:
    """Whether a tool chose what it raised: `ToolFailed` with a failure."""
    if not issubclass(type(error), ToolFailed):
        return False
    return attempted(lambda: hasattr(error, "failure"), otherwise=False)


def failure_of(
    error: BaseException, *, retry_after_s: float | None = None, secrets: Iterable[str] = ()
) -> Failure:
    """The failure of what an executor raised: by type, with a masked and bounded line."""
    raised = type(error)
    if issubclass(raised, _ASKED):
        if is_answer(error):
            own = _own_failure(attempted(lambda: getattr(error, "failure", None), None))
            return _discreet(own, tuple(secrets)) if secrets else own
        raised = _first_raised(error)
    code, reason, retryable = _kind(raised)
    # Whether it did something before it raised is not known, whatever the type: what cannot do one
    # thing may have done another.
    message, cause = account_of(error, secrets)
    return Failure(
        code=code,
        reason=reason,
        message=message,
        guidance=GUIDANCE[code],
        layer="executor",
        retryable=retryable,
        retry_after_s=retry_after_s,
        cause=cause,
    )


_OF_TOOLS = frozenset(("", "executor"))
"""Layers that a tool's own failure has."""


def _own_failure(own: Any) -> Failure:
    return _owned(_sound_failure(own), of_another=False)


def _owned(failure: Failure, *, of_another: bool) -> Failure:
    """Make a failure that of the tool that gave it.

    It may be of a call that the tool made: that nothing was run is said of that one then.
    """
    if failure.may_have_run is False and (of_another or failure.layer not in _OF_TOOLS):
        failure = _of_effect(failure, may_have_run=None)
    return msgspec.structs.replace(failure, layer="executor")


def counted(failure: Failure, given: Any, call: Invocation) -> Failure:
    """Let a failure say what calls of the tool may have done, where it says that nothing was.

    `given` is the failure as the tool gave it: that of a call that it made says nothing of itself.
    """
    if failure.may_have_run is not False:
        return failure
    if call.reached:
        return _of_effect(failure, may_have_run=True)
    if any(given is handed or given == handed for handed in call.handed):
        return _of_effect(failure, may_have_run=None)
    return failure


def _sound_failure(own: Any) -> Failure:
    """Make a tool's own failure sound: nobody has checked what the tool put into it."""
    try:
        found = msgspec.convert(msgspec.to_builtins(own, enc_hook=_dumped), Failure)
    except (TypeError, ValueError, RecursionError, msgspec.MsgspecError):
        return Failure(code=FailureCode.EXECUTION_FAILED, message=_UNREADABLE, layer="executor")
    wait_s = found.retry_after_s
    return msgspec.structs.replace(
        found,
        message=_within(found.message, MAX_MESSAGE),
        guidance=_within(found.guidance, MAX_GUIDANCE),
        # A reason ends in spans and labels: free text there could be the secret itself.
        reason=found.reason if _SLUG.fullmatch(found.reason) else "",
        retry_after_s=max(wait_s, 0.0) if wait_s is not None and math.isfinite(wait_s) else None,
        hints=found.hints[:MAX_PARTS],
        issues=found.issues[:MAX_PARTS],
        cause=found.cause[:MAX_PARTS],
    )


def _discreet(failure: Failure, secrets: tuple[str, ...]) -> Failure:
    """Take secrets out of all that a model reads of a failure."""
    return msgspec.structs.replace(
        failure,
        message=without(failure.message, secrets),
        guidance=without(failure.guidance, secrets),
        hints=tuple(without(hint, secrets) for hint in failure.hints),
        issues=tuple(discreet(issue, secrets) for issue in failure.issues),
    )


def discreet(issue: Issue, secrets: Iterable[str]) -> Issue:
    """Take secrets out of an issue, and what no text can hold."""
    message = _within(without(issue.message, secrets), MAX_MESSAGE)
    return Issue(_valid(without(issue.path, secrets)), message, issue.keyword)


_UNREADABLE = "the tool failed, and said it in a form that cannot be read"


def _within(text: str, most: int) -> str:
    return _valid(text if len(text) <= most else text[: most - 1] + "…")


DEFECTS = (
    TypeError,
    AttributeError,
    NameError,
    LookupError,
    ArithmeticError,
    AssertionError,
    ImportError,
    SyntaxError,
    RecursionError,
)
"""A mistake in the tool's code: made again with the same arguments, it raises again.

Not `ValueError`: a decoder raises it for an answer that was cut off on the way.
"""

_LASTING = (*_FILE_ERRORS, *DEFECTS, SystemExit)

_KINDS: tuple[tuple[Any, FailureCode, str, bool], ...] = (
    (PermissionError, FailureCode.PERMISSION_DENIED, "permission_denied", False),
    (NotImplementedError, FailureCode.UNSUPPORTED, "unsupported", False),
    (TimeoutError, FailureCode.EXECUTION_FAILED, "tool_timeout", True),
    (_LASTING, FailureCode.EXECUTION_FAILED, "tool_failed", False),
)


_OF_A_KIND = (PermissionError, NotImplementedError, TimeoutError, *_LASTING)


def _kind(raised: type[BaseException]) -> tuple[FailureCode, str, bool]:
    if issubclass(raised, _OF_A_KIND):
        for kinds, code, reason, retryable in _KINDS:
            if issubclass(raised, kinds):
                return code, reason, retryable
    return _EXECUTION_FAILED, "tool_failed", True


def _first_raised(error: BaseException) -> type[BaseException]:
    """Give the type of an exception, or of the first one in a group."""
    raised = type(error)
    return type(leaves(error)[0]) if issubclass(raised, BaseExceptionGroup) else raised


def is_infrastructure(failure: Failure, error: BaseException | None) -> bool:
    """Whether a failure speaks of the tool's health: a timeout, I/O that broke, a crash.

    By code and type, never by text. What a tool answers, even that it cannot, is its answer.
    """
    code = failure.code
    if code is not _EXECUTION_FAILED:
        return code is _TIMEOUT
    if failure.reason in ("transport", "tool_timeout"):
        return True
    if error is None:
        return False
    if not issubclass(type(error), _ASKED):
        return True
    return not (is_answer(error) or issubclass(_first_raised(error), _FILE_ERRORS))
