"""`result_read`: the tool with which a model reads, page by page, what a result limit cut.

It takes no more than its session may see: to any other the text is not there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from seawall.contract.annotations import Annotations, Risk
from seawall.contract.content import TextContent
from seawall.contract.errors import ConfigurationError, StoreUnavailable
from seawall.contract.failure import FailureCode
from seawall.contract.result import ToolResult
from seawall.contract.spill import MAX_SPILL_BYTES
from seawall.contract.tool import Tool
from seawall.layers.result_spill import RESULT_READ, owner_of, page_bytes
from seawall.pipeline.context import call_of

if TYPE_CHECKING:
    from seawall.layers.result_spill import SpillStore
    from seawall.pipeline.context import ToolContext
    from seawall.pipeline.invocation import Invocation
    from seawall.registry.registry import Registry

_LONGEST_CHARACTER = 4
"""Bytes of UTF-8."""


def offer_result_read(registry: Registry) -> None:
    """Register the tool; raises `ConfigurationError` if another one has its name."""
    check_result_read(registry)
    if registry.get(RESULT_READ) is None:
        registry.register(TOOL)


def check_result_read(registry: Registry) -> None:
    """Raise `ConfigurationError` if another tool has the name of this one."""
    known = registry.get(RESULT_READ)
    if known is not None:
        check_reads_results(known)


def check_reads_results(tool: Tool) -> None:
    """Raise `ConfigurationError` if a tool of this one's name is another one."""
    if tool.executor is not read_result:
        raise ConfigurationError(
            f"there is a tool named {RESULT_READ} of your own, and by that name a model reads what"
            " result limits cut: give yours another name, or leave `spill` out"
        )


async def read_result(arguments: dict[str, Any], context: ToolContext) -> ToolResult:
    """Give one page."""
    call = call_of(context)
    state = call.pipeline.state
    store: SpillStore | None = None if state is None else state.spills
    if store is None:
        return _gone(arguments["id"])
    try:
        return await _page(call, store, arguments["id"], arguments.get("page", 1))
    except StoreUnavailable:
        return ToolResult.failed(
            FailureCode.EXECUTION_FAILED,
            "where the text is kept does not answer",
            reason="tool_failed",
            layer="executor",
            guidance="Try it again later, or go on with what was not cut.",
            retryable=True,
        )


async def _page(call: Invocation, store: SpillStore, spill_id: str, page: int) -> ToolResult:
    owner = owner_of(call.session, lambda _: call.pipeline.new_key())
    known = await store.part(spill_id, owner, 0, 0)
    if known is None:
        return _gone(spill_id)
    most = call.policy.max_result_bytes
    length = known.page_bytes if most is None else min(known.page_bytes, page_bytes(most))
    pages = max(-(-known.size // length), 1)
    if page > pages:
        return _no_such_page(page, pages)
    # A little more on both sides, so that a character is seen whole.
    begin = (page - 1) * length
    found = await store.part(spill_id, owner, begin, length + _LONGEST_CHARACTER)
    if found is None:
        return _gone(spill_id)
    text = _whole_characters(found.data, length).decode("utf-8", "replace")
    return ToolResult(
        content=(TextContent(text=text), TextContent(text=_line(spill_id, page, pages)))
    )


def _whole_characters(data: bytes, length: int) -> bytes:
    """Cut where characters begin: what one page leaves out at its end, the next begins with."""
    return data[_next_character(data, 0) : _next_character(data, length)]


def _next_character(data: bytes, place: int) -> int:
    while place < len(data) and data[place] & 0xC0 == 0x80:
        place += 1
    return place


def _line(spill_id: str, page: int, pages: int) -> str:
    if page == pages:
        return f"[Page {page:,} of {pages:,}, the last.]"
    following = f'{RESULT_READ} {{"id": "{spill_id}", "page": {page + 1}}}'
    return f"[Page {page:,} of {pages:,}. The next: {following}]"


def _gone(spill_id: str) -> ToolResult:
    return ToolResult.failed(
        FailureCode.NOT_FOUND,
        f"no text of a result is kept under {spill_id!r} for this session",
        layer="executor",
        guidance="It is kept for a while only. If you still need it, call the tool again that gave"
        " it, and ask for less.",
        retryable=False,
    )


def _no_such_page(page: int, pages: int) -> ToolResult:
    return ToolResult.failed(
        FailureCode.INVALID_ARGUMENT,
        f"there is no page {page:,}: there are {pages:,}",
        layer="executor",
        retryable=False,
    )


TOOL = Tool(
    name=RESULT_READ,
    title="Read a result that was cut",
    description="Read a page of the text of an earlier result of this conversation that was too"
    " long to be shown whole. The result said the id.",
    input_schema={
        "type": "object",
        "properties": {
            "id": {"type": "string", "minLength": 1, "maxLength": 64},
            "page": {
                "type": "integer",
                "minimum": 1,
                "maximum": MAX_SPILL_BYTES,
                "default": 1,
                "description": "From 1.",
            },
        },
        "required": ["id"],
        "additionalProperties": False,
    },
    executor=read_result,
    annotations=Annotations.for_reading(),
    risk=Risk.LOW,
    category="orchestration",
)
