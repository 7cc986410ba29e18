"""What every call comes back as."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from seawall.contract.content import Content, TextContent
from seawall.contract.failure import Failure, FailureCode


class ToolResult(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of a call: an answer, or a failure that the model can read and act on.

    `content`, `structured_content` and `is_error` are for the model; `details` and `metadata`
    never reach it.
    """

    call_id: str = ""
    """As it was given, or made."""
    tool: str = ""
    """The name that was called."""
    content: tuple[Content, ...] = ()
    is_error: bool = False
    failure: Failure | None = None
    """None unless it failed."""
    structured_content: Any = None
    details: Any = None
    terminate: bool = False
    """Asks for the turn to end; counts only if every result of the turn asks for it."""
    usage: Mapping[str, Any] | None = None
    """What the tool says of its own costs; for programs."""
    metadata: Mapping[str, Any] | None = None
    duration_ms: float | None = None
    """The executor's time over all attempts; None if it did not run."""
    attempts: int = 0
    """How often the executor was started; 0 if it was not."""

    @property
    def text(self) -> str:
        """All text blocks, joined by line ends."""
        if len(self.content) == 1 and isinstance(self.content[0], TextContent):
            return self.content[0].text
        return "\n".join(block.text for block in self.content if isinstance(block, TextContent))

    def render(self) -> str:
        """What a model reads: the text, or `Error: …` with guidance."""
        if self.failure is None:
            return self.text
        own = self.text
        if own.startswith("Error: "):
            return own
        # A tool that answers with an error may have said more in its content than in the message.
        said = self.failure.render()
        return said if own in said else f"{said}\n{own}"

    @classmethod
    def failed(
        cls,
        code: FailureCode,
        message: str,
        *,
        call_id: str = "",
        tool: str = "",
        **fields: Any,
    ) -> ToolResult:
        """Build a failed result; `fields` are those of `Failure`."""
        return cls.of_failure(
            Failure(code=code, message=message, **fields), call_id=call_id, tool=tool
        )

    @classmethod
    def of_failure(cls, failure: Failure, *, call_id: str = "", tool: str = "") -> ToolResult:
        """Build the result that says this failure."""
        return cls(
            call_id=call_id,
            tool=tool,
            content=(TextContent(text=failure.render()),),
            is_error=True,
            failure=failure,
        )

    @classmethod
    def of_text(cls, text: str) -> ToolResult:
        """Build a result of one text block."""
        return cls(content=(TextContent(text=text),))
