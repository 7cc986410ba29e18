"""Keep the text of a result that is cut, to be read on with `result_read`.

Belongs to the session whose call it was. A store that does not answer costs the rest of the text
and nothing else: the result is cut as without it, and a line says so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from seawall.contract.content import Content, EmbeddedResource, ResourceLink, TextContent
from seawall.contract.ownership import owner_key
from seawall.contract.spill import MAX_SPILL_BYTES, SpillPart
from seawall.layers.result_sizes import json_text, says_failure
from seawall.pipeline.foreign import guarded_async

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seawall.contract.result import ToolResult
    from seawall.pipeline.layer import LayerContext
    from seawall.pipeline.session import Session

RESULT_READ = "result_read"
"""The tool with which a model reads on; what it gives is never kept again."""

LAYER = "result_limit"
"""It counts under the name of the layer whose part it is."""

NOTE_BYTES = 192
"""Kept free for the line that says how to read on, and for the one below each page."""

NOT_KEPT = "[What was cut could not be kept, so it cannot be read on.]"

_OWNER = "result_spill"


class SpillStore(Protocol):
    """Keeps texts for a while, each for one owner; the oldest give way where room is short."""

    async def keep(
        self, spill_id: str, owner: str, data: bytes, page_bytes: int, keep_s: float
    ) -> None:
        """Keep a text; raises `StoreUnavailable` if that is not possible."""

    async def part(self, spill_id: str, owner: str, start: int, size: int) -> SpillPart | None:
        """Give some bytes of a text; None if it is gone, or somebody else's."""


class Spill:
    """Keeps what one tool's results lose."""

    def __init__(self, context: LayerContext, store: SpillStore, max_bytes: int) -> None:
        self._store = store
        self._chance = context.chance
        self._count = context.count
        self._keep_s = context.policy.spill_keep_s
        self._page_bytes = page_bytes(max_bytes)

    @classmethod
    def for_tool(cls, context: LayerContext, max_bytes: int) -> Spill | None:
        """Nothing to do unless the policy asks for it and there is a state that can keep it."""
        store: SpillStore | None = context.part(SpillStore)  # type: ignore[type-abstract]  # a key, not made
        if store is None or not context.policy.spill or context.tool.name == RESULT_READ:
            return None
        return cls(context, store, max_bytes)

    async def kept(self, session: Session, result: ToolResult) -> str:
        """Keep the text of a result; gives the line that says how to read it, or that it is lost.

        Cancelled, it may be kept, but nobody knows how it is called.
        """
        whole = whole_text(result).encode("utf-8", "replace")
        spill_id, data = self._chance.token(12), whole[:MAX_SPILL_BYTES]
        done = await guarded_async(
            "what a result limit cut could not be kept",
            lambda: self._keep(spill_id, owner_of(session, self._chance.token), data),
            lambda _: False,
        )
        if not done:
            self._count(LAYER, "store_not_kept")
            return NOT_KEPT
        self._count(LAYER, "spilled")
        return self._note(spill_id, len(whole))

    async def _keep(self, spill_id: str, owner: str, data: bytes) -> bool:
        await self._store.keep(spill_id, owner, data, self._page_bytes, self._keep_s)
        return True

    def _note(self, spill_id: str, size: int) -> str:
        most = MAX_SPILL_BYTES
        said = f"{size:,} bytes" if size <= most else f"the first {most:,} of {size:,} bytes"
        how = f'{RESULT_READ} {{"id": "{spill_id}", "page": 1}}'
        return f"[Its whole text, {said}, is kept for {_time(self._keep_s)}; read it with {how}]"


def with_note(result: ToolResult, note: str) -> ToolResult:
    """Add a line to what the model reads."""
    content = (*result.content, TextContent(text=note))
    return msgspec.structs.replace(result, content=content)


def page_bytes(max_bytes: int) -> int:
    """How long a page may be where a result has a bound: there is a line below each."""
    return max(max_bytes - NOTE_BYTES, max_bytes // 4)


def owner_of(session: Session, token: Any) -> str:
    """Who may read what a session's calls gave: who has its id and caller, or without them it."""
    if session.id or session.caller:
        return owner_key(session.caller, session.id)
    drawn = session.memory.get(_OWNER)
    if drawn is None:
        drawn = session.memory[_OWNER] = token(16)
    return f"nameless:{drawn}"


def whole_text(result: ToolResult) -> str:
    """Write what a result says, in the order in which a model would have read it.

    Pictures, sounds and other bytes are not text, and left out.
    """
    return "\n".join(_texts(result))


def _texts(result: ToolResult) -> Iterator[str]:
    failure = result.failure
    if failure is not None and not says_failure(result, failure):
        yield failure.render()
    for block in result.content:
        text = _text_of(block)
        if text:
            yield text
    if result.structured_content is not None and not _is_said(result):
        yield json_text(result.structured_content)


def _text_of(block: Content) -> str:
    if isinstance(block, TextContent):
        return block.text
    if isinstance(block, EmbeddedResource):
        text = block.resource.get("text")
        return text if isinstance(text, str) else ""
    if isinstance(block, ResourceLink):
        return f"{block.name}: {block.uri}"
    return ""


def _is_said(result: ToolResult) -> bool:
    """Whether the only text there is says the structured content already, as JSON."""
    if len(result.content) != 1 or not isinstance(result.content[0], TextContent):
        return False
    try:
        said = msgspec.json.decode(result.content[0].text.encode("utf-8", "replace"))
    except (msgspec.DecodeError, RecursionError):
        return False
    return bool(said == result.structured_content)


def _time(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} minutes"
    return f"{seconds / 3600:.0f} hours"
