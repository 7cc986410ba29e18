"""Notice a model that repeats itself, tell it, and stop it.

What counts is the call together with what it gave: the same call with a new result is progress. A
call counts once however often it was tried, and its progress reports do not count; calls that
tools make are not the model's. Outside of hooks and layers: what is refused here reaches nothing.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

import msgspec

from seawall.contract.result import ToolResult
from seawall.orchestration.loop_judge import LoopQuestion, judged
from seawall.orchestration.loop_patterns import repeated, rounds
from seawall.orchestration.loop_policy import (
    LAYER,
    MAX_REASON,
    LoopFinding,
    cycle,
    refusal_of,
    repeat,
    warned,
)
from seawall.pipeline.digest import canonical_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from seawall.contract.span import Digest
    from seawall.contract.tool import Tool, ToolCall
    from seawall.orchestration.loop_policy import LoopPolicy
    from seawall.pipeline.clock import Clock
    from seawall.pipeline.invocation import Invocation
    from seawall.pipeline.session import Session

CYCLES = (2, 3)
"""Lengths of the cycles that are looked for."""


def _uncounted(layer: str, event: str) -> None:
    """Nobody counts."""


class _Window:
    """The last calls of one session: fingerprints of calls together with their results."""

    __slots__ = ("at", "free_at", "hot", "keys", "signatures", "turns")

    def __init__(self, kept: int) -> None:
        self.keys: deque[int] = deque(maxlen=kept)
        self.signatures: dict[int, str] = {}
        """Fingerprints of the calls alone, for keys that came more than once."""
        self.hot: dict[str, LoopFinding] = {}
        """Calls that would be one too many, by their fingerprint."""
        self.at = -math.inf
        """When the last call ended, but for what stood around its executor."""
        self.free_at = math.inf
        """When the last call may be made again, if it was told to wait."""
        self.turns = 0

    def clear(self) -> None:
        self.keys.clear()
        self.signatures.clear()
        self.hot = {}


class LoopDetector:
    """Watches sessions; what it remembers of one is kept with the session, and bounded."""

    def __init__(
        self, policy: LoopPolicy, clock: Clock, stopped: Callable[[str], None] | None = None
    ) -> None:
        self.policy = policy
        self._stopped = stopped
        self._clock = clock
        self._now = clock.now
        self._exempt = policy.exempt
        self._tags = frozenset(policy.exempt_tags)
        self._pause_s = math.inf if policy.pause_s is None else policy.pause_s
        self._window = policy.window or policy.threshold
        self._shadow = policy.mode == "shadow"
        self._kept = max(self._window, max(CYCLES) * (policy.cycle_rounds or 0))

    def reset(self, session: Session) -> None:
        """Begin anew, as when a user has said something new."""
        session.recent = None

    def refusal(
        self,
        call: Invocation,
        digest: Callable[[Invocation], Digest],
        count: Callable[[str, str], None] = _uncounted,
    ) -> ToolResult | None:
        """Refuse a call that would be one too many; None lets it go on. In shadow it is counted."""
        window = call.session.recent
        if window is None or not window.hot or self._is_exempt(call.tool):
            return None
        if self._is_patient(window, call.arrived):
            window.clear()
            return None
        call.prepared()
        finding = window.hot.get(digest(call).mac)
        if finding is None:
            return None
        if self._shadow:
            count(LAYER, "shadow_refused")
            call.note(f"{LAYER}:would_refuse:loop_detected")
            return None
        return self.refused(call, finding)

    def refused(self, call: Invocation, finding: LoopFinding) -> ToolResult:
        """Build the refusal that says what was found."""
        self._counted(finding)
        result = call.refuse(**refusal_of(call.tool.name, finding))
        return msgspec.structs.replace(result, metadata=finding.metadata)

    def seen(self, call: Invocation, result: ToolResult, digest: Digest) -> ToolResult:
        """Take a call that ended into account; its result, with a warning if it is a loop."""
        window = call.session.recent
        if (
            window is None
            or result.failure is not None
            or result.structured_content is not None
            or call.aside is not None
            or call.tool.tags
            or self._exempt
            or window.keys.maxlen != self._kept
        ):
            return self._seen(call, result, digest)
        # The same as there, for the plainest of calls.
        if call.arrived - window.at > self._pause_s:
            window.clear()
        window.at = call.arrived + (call.executed_s or 0.0)
        try:
            key = hash((digest.mac, result.content))
        except TypeError:
            return self._seen(call, result, digest)
        if key in window.keys or window.hot:
            return self._look_back(window, key, digest.mac, result)
        window.keys.append(key)
        return result

    def _seen(self, call: Invocation, result: ToolResult, digest: Digest) -> ToolResult:
        aside = call.aside
        if self._is_exempt(call.tool):
            return result
        window = self._window_of(call.session)
        if call.arrived - window.at > self._pause_s:
            window.clear()
        window.at = call.arrived + (call.executed_s or 0.0)
        signature = digest.mac
        if aside is not None and aside.signature is not None:
            signature = aside.signature.mac
        key = _key(signature, result)
        if aside is not None:
            aside.seen = key
        return self._look_back(window, key, signature, result)

    def unknown(
        self, session: Session, name: str, digest: Digest, refusal: ToolResult
    ) -> ToolResult:
        """Take a call of a name that nobody registered into account."""
        window, now = session.recent, self._now()
        if window is not None and window.hot and not self._is_patient(window, now):
            finding = window.hot.get(digest.mac)
            if finding is not None and not self._shadow:
                self._counted(finding)
                result = ToolResult.failed(
                    **refusal_of(name, finding),
                    call_id=refusal.call_id,
                    tool=refusal.tool,
                    may_have_run=False,
                )
                return msgspec.structs.replace(result, metadata=finding.metadata)
        window = self._window_of(session)
        if now - window.at > self._pause_s:
            window.clear()
        window.at = now
        return self._look_back(window, _key(digest.mac, refusal), digest.mac, refusal)

    def settle(self, session: Session, seen: Iterable[int | None]) -> None:
        """Put the calls of a turn that just ended into the order of the calls.

        They ended in any order, and the same calls in another order are the same round of a cycle.
        """
        window = session.recent
        ours = [key for key in seen if key is not None]
        if window is None or len(ours) < 2:
            return
        kept = list(window.keys)
        others = kept[: max(len(kept) - len(ours), 0)]
        if Counter(kept[len(others) :]) <= Counter(ours):
            # Else calls that are not of this turn came between them.
            window.keys.clear()
            window.keys.extend([*others, *ours])
            self._look(window)

    async def judged(self, session: Session, calls: tuple[ToolCall, ...]) -> LoopFinding | None:
        """Count a turn that begins, and ask the judge if it is time."""
        policy, window = self.policy, self._window_of(session)
        turns, window.turns = window.turns, window.turns + 1
        if policy.judge is None or turns < max(policy.judge_after, 1):
            return None
        if (turns - policy.judge_after) % policy.judge_every:
            return None
        question = LoopQuestion(session, turns, calls)
        verdict = await judged(policy.judge, question, self._clock, policy.judge_within_s)
        if verdict is None or not verdict.is_loop:
            return None
        if self._shadow or not verdict.confidence >= policy.judge_confidence:
            return None
        said = f"this conversation goes in circles: {verdict.reason[:MAX_REASON] or 'no progress'}"
        return LoopFinding("judge", turns, said)

    def _counted(self, finding: LoopFinding) -> None:
        if self._stopped is not None:
            self._stopped(finding.detector)

    def _look_back(
        self, window: _Window, key: int, signature: str, result: ToolResult
    ) -> ToolResult:
        """Keep a call, and look whether it is one of a loop; its result, with a warning then."""
        is_new = key not in window.keys
        window.keys.append(key)
        window.signatures[key] = signature
        if len(window.signatures) > self._kept:
            window.signatures = {
                key: known for key, known in window.signatures.items() if key in window.keys
            }
        wait_s = None if result.failure is None else result.failure.retry_after_s
        window.free_at = math.inf if wait_s is None else self._now() + wait_s
        finding = None if is_new and not window.hot else self._look(window)
        return result if finding is None or self._shadow else warned(result, finding)

    def _window_of(self, session: Session) -> _Window:
        window: _Window | None = session.recent
        if window is None or window.keys.maxlen != self._kept:
            before, window = window, _Window(self._kept)
            session.recent = window
            if before is not None:  # under a policy that kept more calls, or fewer
                window.keys.extend(before.keys)
                window.signatures.update(before.signatures)
                window.at, window.free_at, window.turns = before.at, before.free_at, before.turns
        return window

    def _look(self, window: _Window) -> LoopFinding | None:
        """Work out what would be one too many, and what the last call is part of."""
        keys, signatures = list(window.keys), window.signatures
        found: LoopFinding | None = None
        hot: dict[str, LoopFinding] = {}
        for key, count in repeated(keys, self._window, self.policy.threshold).items():
            finding = repeat(count)
            hot[signatures.get(key, "")] = finding
            found = finding if key == keys[-1] else found
        for length in CYCLES if self.policy.cycle_rounds else ():
            count = rounds(keys, length)
            if count >= (self.policy.cycle_rounds or 0):
                finding = cycle(length, count)
                hot.setdefault(signatures.get(keys[-length], ""), finding)
                found = found or finding
        window.hot = hot
        return found

    def _is_exempt(self, tool: Tool) -> bool:
        if not self._tags.isdisjoint(tool.tags):
            return True
        return any(fnmatchcase(tool.name, pattern) for pattern in self._exempt)

    def _is_patient(self, window: _Window, now: float) -> bool:
        """Whether the model waited, as it was told or long enough: no loop is so slow."""
        return now - window.at > self._pause_s or now >= window.free_at


def _key(signature: str, result: ToolResult) -> int:
    """Fingerprint of a call with its result."""
    failure, content = result.failure, result.content
    if failure is not None:
        # A layer's message may name the seconds left, which change; what it means does not.
        said = failure.message if failure.layer == "executor" else ""
        return hash((signature, failure.code, failure.reason, said))
    try:
        key = hash((signature, content))
    except TypeError:  # a block that holds a mapping
        key = hash((signature, canonical_text(msgspec.to_builtins(content))))
    if result.structured_content is None or _is_said(result):
        return key
    return hash((key, canonical_text(result.structured_content)))


def _is_said(result: ToolResult) -> bool:
    """Whether the text is the structured content, as it is where a tool gives a plain value."""
    return result.text[:1] in ("{", "[")
