"""Answer by another tool, or by a fixed result, when a tool has failed.

Only for the kinds of failure that the policy lists, never for a refusal by a person or a policy,
and only if nothing can have been done: a tool that changes something is not replaced once it may
have run. The other tool is called through all of its own layers, so its risk and its approvals
hold. What comes back is marked; if the fallback fails too, the tool's own failure is the answer,
and says if the other tool may have done something.

What is done once under an idempotency key is the call with its fallback: the ledger stands around
both, and the other tool has a key that follows from the call's.
"""

from __future__ import annotations

from contextvars import ContextVar
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import msgspec

from seawall.contract.content import TextContent
from seawall.contract.optional_policies import NEVER_REPLACED
from seawall.contract.result import ToolResult
from seawall.pipeline.convert import with_effect
from seawall.pipeline.copying import copied

if TYPE_CHECKING:
    from seawall.contract.failure import Failure
    from seawall.contract.optional_policies import FallbackPolicy
    from seawall.pipeline.invocation import Handler, Invocation
    from seawall.pipeline.layer import LayerContext

# Tools whose fallback is under way here: two that stand in for each other do not go round.
_failing: ContextVar[frozenset[str]] = ContextVar("seawall_fallback", default=frozenset())


class Fallback:
    """Puts another answer in place of a failure."""

    name = "fallback"

    def __init__(self, context: LayerContext, policy: FallbackPolicy) -> None:
        self._tool = policy.tool
        self._fixed = None if policy.tool is not None else _fixed(policy)
        self._on = frozenset(policy.on)
        self._tells = policy.tell
        self._read_only = context.tool.annotations.is_read_only
        self._count = context.count

    @classmethod
    def for_tool(cls, context: LayerContext) -> Fallback | None:
        """Nothing to do without a policy, or for the very tool that a rule for many names."""
        policy = context.policy.fallback
        if policy is None or policy.tool == context.tool.name:
            return None
        return cls(context, policy)

    async def __call__(self, call: Invocation, proceed: Handler) -> ToolResult:
        """Proceed; if that fails, answer otherwise."""
        result = await proceed(call)
        failure = result.failure
        if failure is None or not self._is_for(call, failure):
            return result
        # The attempt was what it was, whatever the call comes to.
        call.close_attempt(call, result)
        instead = self._fixed if self._tool is None else await self._called(call, self._tool)
        if instead is None or instead.failure is not None:
            self._count(self.name, "failed")
            call.note(f"{self.name}:failed")
            return _of_both(result, failure, None if instead is None else instead.failure)
        self._count(self.name, "served")
        call.note(f"{self.name}:served")
        return self._marked(call, instead, failure)

    def _is_for(self, call: Invocation, failure: Failure) -> bool:
        if failure.code in NEVER_REPLACED or call.tool.name in _failing.get():
            return False
        if failure.code.value not in self._on and failure.reason not in self._on:
            return False
        return self._read_only or failure.may_have_run is False

    async def _called(self, call: Invocation, tool: str) -> ToolResult | None:
        """Call the other tool. Once it may have done something, so may the call."""
        if call.prepared() is not None:
            return None
        if call.aside is not None:
            call.aside.handed_on = True
        outer = _failing.set(_failing.get() | {call.tool.name})
        started, call.started = call.started, True
        try:
            found: ToolResult = await call.pipeline.call_nested(
                call, tool, copied(call.arguments), _key_from(call)
            )
        finally:
            _failing.reset(outer)
        if _did_nothing(found):
            call.started = started
        return found

    def _marked(self, call: Invocation, instead: ToolResult, failure: Failure) -> ToolResult:
        by = self._tool or "fixed"
        said = {"for": call.tool.name, "by": by, "reason": failure.reason}
        content = instead.content
        if self._tells:
            content = (*content, TextContent(text=_told(call.tool.name, self._tool, failure)))
        structured: Any = instead.structured_content
        return msgspec.structs.replace(
            instead,
            call_id=call.call_id,
            tool=call.tool.name,
            content=content,
            structured_content=copied(structured) if isinstance(structured, dict) else structured,
            metadata={**(instead.metadata or {}), "fallback": said},
        )


def _of_both(result: ToolResult, failure: Failure, other: Failure | None) -> ToolResult:
    """Have the failure of the call say what the other tool may have done."""
    if other is None or other.may_have_run is False:
        return result
    if failure.retryable and not other.retryable:
        # The same call again would end at the same other tool.
        result = msgspec.structs.replace(
            result, failure=msgspec.structs.replace(failure, retryable=False)
        )
    return with_effect(result, may_have_run=True)


def _did_nothing(found: ToolResult) -> bool:
    return found.failure is not None and found.failure.may_have_run is False


def _key_from(call: Invocation) -> str | None:
    """Make the other tool's key of the call's: the same whenever the call is made again."""
    key = call.idempotency_key
    if not isinstance(key, str):
        return None
    text = f"{len(call.tool.name)}:{call.tool.name}{key}"
    made = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=20).hexdigest()
    return f"fallback:{made}"


def _fixed(policy: FallbackPolicy) -> ToolResult:
    """Build the answer that is always the same."""
    structured = policy.structured_content
    plain = None if structured is None else dict(structured)
    text = policy.text
    if text is None:
        text = msgspec.json.encode(plain).decode()
    return ToolResult(content=(TextContent(text=text),), structured_content=plain)


def _told(name: str, by: str | None, failure: Failure) -> str:
    why = failure.reason.replace("_", " ")
    if by is None:
        return f"[{name} failed ({why}); this is a fixed answer.]"
    return f"[{name} failed ({why}); this is the answer of {by}.]"
