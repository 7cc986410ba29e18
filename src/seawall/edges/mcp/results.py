"""Results of tools as MCP says them, both ways, without loss.

What MCP can say and a `ToolResult` cannot is kept in the result's metadata, which no model sees,
and is said again: `_meta`, fields of later revisions, content of unknown kinds.
"""

from __future__ import annotations

import json
from collections import defaultdict, deque
from typing import TYPE_CHECKING, Any

import msgspec

from seawall.contract.content import Content, TextContent, content_from_json, content_to_json
from seawall.contract.failure import Failure, FailureCode
from seawall.contract.result import ToolResult
from seawall.pipeline.output import told_as_promised

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from seawall.contract.tool import Tool

FAILURE_KEY = "seawall/failure"
"""Where `_meta` says why a call was refused or failed: the fields of `Failure`."""

KEPT = "mcp"
"""Where a result's metadata keeps what else the server said."""

MAX_MESSAGE = 500


def result_from_mcp(said: Mapping[str, Any]) -> ToolResult:
    """Read a `CallToolResult`; raises ValueError if it is none.

    An error result is the tool's own answer: it is worth no second try. What another Seawall said
    of a failure is read back from `_meta`.
    """
    raw = said.get("content", [])
    if not isinstance(raw, list) or not all(isinstance(block, dict) for block in raw):
        raise ValueError("its content is no list of blocks")
    if all(map(_is_plain_text, raw)):
        content: tuple[Content, ...] = tuple([TextContent(text=block["text"]) for block in raw])
        blocks: list[Any] = []
    else:
        content = tuple(_block(block) for block in raw)
        blocks = raw if [content_to_json(block) for block in content] != raw else []
    is_error = said.get("isError") is True
    structured = said.get("structuredContent")
    kept: dict[str, Any] = {
        "fields": {
            key: value
            for key, value in said.items()
            if key != "content" and not (key == "structuredContent" and value is not None)
        },
        "blocks": blocks,
    }
    return ToolResult(
        content=content,
        structured_content=structured,
        is_error=is_error,
        failure=_failure(said, content) if is_error else None,
        metadata={KEPT: kept},
    )


def result_to_mcp(result: ToolResult, tool: Tool | None = None) -> dict[str, Any]:
    """Write a result as `CallToolResult`.

    A refusal or a failure is an error result. Its reason and when to try again stand in `_meta`
    under `seawall/failure`, and as structured content too, unless the tool has an output schema,
    which some clients hold error results to as well. What a server answered is said as it was; but
    a success of which the structured content is not there any more (it was too large, or a hook
    replaced it) is an error where a schema promised it, since clients raise for it otherwise.
    """
    if tool is not None and tool.output_schema is not None:
        result = told_as_promised(result, tool.name)
    kept = _kept(result)
    said: dict[str, Any] = dict(kept.get("fields", {}))
    said["content"] = _contents(result, kept.get("blocks", ()))
    if result.structured_content is not None:
        said["structuredContent"] = result.structured_content
    if result.is_error:
        said["isError"] = True
        _explain(said, result, tool, answered="fields" in kept)
    elif said.get("isError") is True:
        said["isError"] = False  # somebody replaced what the server said
    return said


def failure_to_mcp(failure: Failure) -> dict[str, Any]:
    """Write a failure as data: what it does not say is left out."""
    found = msgspec.to_builtins(failure)
    return {key: value for key, value in found.items() if value not in (None, [], (), "")}


def _explain(
    said: dict[str, Any], result: ToolResult, tool: Tool | None, *, answered: bool
) -> None:
    failure = result.failure
    if failure is None or (answered and failure.layer == "executor"):
        return  # the server's own words say it
    told = failure_to_mcp(failure)
    meta = said.get("_meta")
    said["_meta"] = {**(meta if isinstance(meta, dict) else {}), FAILURE_KEY: told}
    if result.structured_content is None and (tool is None or tool.output_schema is None):
        said["structuredContent"] = told


def _kept(result: ToolResult) -> dict[str, Any]:
    kept = (result.metadata or {}).get(KEPT)
    return kept if isinstance(kept, dict) else {}


def _is_plain_text(raw: dict[str, Any]) -> bool:
    """Whether a block is text and nothing else, as nearly all are: it needs no closer look."""
    return len(raw) == 2 and raw.get("type") == "text" and type(raw.get("text")) is str


def _block(raw: dict[str, Any]) -> Content:
    try:
        return content_from_json(raw)
    except (ValueError, msgspec.ValidationError):
        # A kind of a later revision: a model can still read it as what it is.
        return TextContent(text=json.dumps(raw, ensure_ascii=False))


def _contents(result: ToolResult, raws: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Write the blocks; those that came with more than a block can hold, as they came."""
    came: dict[bytes, deque[dict[str, Any]]] = defaultdict(deque)
    for raw in raws:
        came[msgspec.json.encode(_block(raw))].append(raw)
    if not came:
        found = [content_to_json(block) for block in result.content]
    else:
        found = [
            waiting.popleft()
            if (waiting := came.get(msgspec.json.encode(block)))
            else content_to_json(block)
            for block in result.content
        ]
    if not found and result.failure is not None and not _kept(result):
        found = [{"type": "text", "text": result.failure.render()}]
    return found


def _failure(said: Mapping[str, Any], content: tuple[Content, ...]) -> Failure:
    meta = said.get("_meta")
    told = meta.get(FAILURE_KEY) if isinstance(meta, dict) else None
    if isinstance(told, dict):
        try:
            return msgspec.convert(told, Failure)
        except (ValueError, TypeError, msgspec.ValidationError):
            pass  # of another program, or another version: then only the text counts
    return Failure(
        code=FailureCode.EXECUTION_FAILED,
        message=_first_line(content) or "the tool reported an error without a text",
        layer="executor",
        retryable=False,
    )


def _first_line(content: tuple[Content, ...]) -> str:
    text = next((block.text for block in content if isinstance(block, TextContent)), "")
    line = text.strip().split("\n", 1)[0]
    return line if len(line) <= MAX_MESSAGE else line[: MAX_MESSAGE - 1] + "…"
