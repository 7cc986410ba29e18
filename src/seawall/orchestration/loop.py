"""Notice a model that repeats itself, tell it, and stop it.

What counts is the call together with what it gave: the same call with a new result is progress. A
call counts once however often it was tried, and its progress reports do not count; calls that
tools make are not the model's. Outside of hooks and layers: what is refused here reaches nothing.
"""

from __future__ import annotations

import math
from collections import deque
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from seawall.contract.content import TextContent
from seawall.contract.errors import ConfigurationError, Fault
from seawall.contract.failure import FailureCode
from seawall.contract.result import ToolResult
from seawall.orchestration.loop_judge import Judge, LoopQuestion, judged
from seawall.orchestration.loop_patterns import repeated, rounds
from seawall.pipeline.digest import canonical_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from seawall.contract.span import Digest
    from seawall.contract.tool import Tool, ToolCall
    from seawall.pipeline.clock import Clock
    from seawall.pipeline.invocation import Invocation
    from seawall.pipeline.session import Session

LAYER = "loop_detector"

CYCLES = (2, 3)
"""Lengths of the cycles that are looked for."""

MAX_WINDOW = 1_000
MAX_REASON = 300

GUIDANCE = (
    "Do not repeat it. Use what you have, try something else, or tell the user what stands in the"
    " way."
)


class LoopPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """When a model is taken to go in circles."""

    threshold: int = 5
    """Calls with the same arguments and the same result; the next is refused."""
    window: int | None = None
    """The last calls of a session among which they are counted; None: as many, all in a row."""
    cycle_rounds: int | None = 3
    """Rounds of the same two or three calls with the same results; None looks for no cycles."""
    pause_s: float | None = 300.0
    """A session that calls nothing for so long begins anew; None: it never does."""
    exempt: tuple[str, ...] = ()
    """Names of tools that may repeat, with `*`, `?` and `[…]`."""
    exempt_tags: tuple[str, ...] = ("polling",)
    """Tools with one of these tags may repeat, too."""
    scope: Literal["all", "sessions"] = "all"
    """`sessions` leaves out calls that bring no session, unless they are made in a turn."""
    judge: Judge | None = None
    """Asked whether the conversation goes in circles; see `LoopQuestion` and `LoopVerdict`."""
    judge_after: int = 30
    """Turns of a session before the judge is asked."""
    judge_every: int = 10
    """Turns from one question to the next."""
    judge_confidence: float = 0.8
    """Verdicts below this stop nobody."""
    judge_within_s: float = 30.0
    """What comes later is no verdict."""

    def __post_init__(self) -> None:
        faults = [
            Fault(f"must be {said} (got {getattr(self, key)!r})", key=f"loop.{key}")
            for key, said, fine in self._bounds()
            if not fine
        ]
        if faults:
            raise ConfigurationError(faults)

    def _bounds(self) -> tuple[tuple[str, str, bool], ...]:
        most = MAX_WINDOW if self.window is None else self.window
        return (
            ("threshold", "from 2 to the window", 2 <= self.threshold <= most),
            ("window", f"at most {MAX_WINDOW}", most <= MAX_WINDOW),
            ("cycle_rounds", "from 2 to 100, or None", 2 <= (self.cycle_rounds or 2) <= 100),
            ("pause_s", "above 0, or None", self.pause_s is None or self.pause_s > 0),
            ("scope", "all or sessions", self.scope in ("all", "sessions")),
            ("judge_after", "at least 0", self.judge_after >= 0),
            ("judge_every", "at least 1", self.judge_every >= 1),
            ("judge_confidence", "from 0 to 1", 0 <= self.judge_confidence <= 1),
            ("judge_within_s", "above 0", 0 < self.judge_within_s < math.inf),
        )


BY_SESSION = LoopPolicy(scope="sessions")
"""What holds where nothing else is said: calls of nobody in particular may repeat."""


class LoopFinding(msgspec.Struct, frozen=True):
    """Which detector fired, and how often it had seen what it looks for."""

    detector: Literal["repeat", "cycle_2", "cycle_3", "judge"]
    count: int
    """Equal calls, rounds of a cycle, or turns before a verdict."""
    said: str
    """For the model."""

    @property
    def metadata(self) -> dict[str, Any]:
        """What a result carries about it, under `loop`."""
        return {"loop": {"detector": self.detector, "count": self.count}}


class _Window:
    """The last calls of one session: fingerprints of calls, and of calls with their results."""

    __slots__ = ("at", "free_at", "hot", "keys", "signatures", "turns")

    def __init__(self, kept: int) -> None:
        self.keys: deque[int] = deque(maxlen=kept)
        self.signatures: deque[str] = deque(maxlen=kept)
        self.hot: dict[str, LoopFinding] = {}
        """Calls that would be one too many, by their fingerprint."""
        self.at = -math.inf
        """When the last call ended."""
        self.free_at = math.inf
        """When the last call may be made again, if it was told to wait."""
        self.turns = 0

    def clear(self) -> None:
        self.keys.clear()
        self.signatures.clear()
        self.hot = {}


class LoopDetector:
    """Watches sessions; what it remembers of one is kept with the session, and bounded."""

    def __init__(self, policy: LoopPolicy, clock: Clock) -> None:
        self.policy = policy
        self._clock = clock
        self._now = clock.now
        self._exempt = policy.exempt
        self._tags = frozenset(policy.exempt_tags)
        self._pause_s = math.inf if policy.pause_s is None else policy.pause_s
        self._window = policy.window or policy.threshold
        self._kept = max(self._window, max(CYCLES) * (policy.cycle_rounds or 0))

    def reset(self, session: Session) -> None:
        """Begin anew, as when a user has said something new."""
        session.recent = None

    def refusal(
        self, call: Invocation, digest: Callable[[Invocation], Digest]
    ) -> ToolResult | None:
        """Refuse a call that would be one too many; None lets it go on."""
        window = call.session.recent
        if window is None or not window.hot or self._is_exempt(call.tool):
            return None
        if self._is_patient(window, call.arrived):
            window.clear()
            return None
        call.prepared()
        finding = window.hot.get(digest(call).mac)
        return None if finding is None else self.refused(call, finding)

    def refused(self, call: Invocation, finding: LoopFinding) -> ToolResult:
        """Build the refusal that says what was found."""
        result = call.refuse(**_refusal(call.tool.name, finding))
        return msgspec.structs.replace(result, metadata=finding.metadata)

    def seen(self, call: Invocation, result: ToolResult, digest: Digest) -> ToolResult:
        """Take a call that ended into account; its result, with a warning if it is a loop."""
        tool, aside = call.tool, call.aside
        if (tool.tags or self._exempt) and self._is_exempt(tool):
            return result
        window = call.session.recent or self._window_of(call.session)
        signature = digest.mac
        if aside is not None and aside.signature is not None:
            signature = aside.signature.mac
        if call.arrived - window.at > self._pause_s:
            window.clear()
        window.at = call.arrived + (call.executed_s or 0.0)
        content = result.content
        if len(content) == 1 and content[0].__class__ is TextContent and result.failure is None:
            # As `_key` does it, one call less; the text of a plain value says all of it.
            key = hash((signature, content))
        else:
            key = _key(signature, result)
        if aside is not None:
            aside.seen = key, signature
        is_new = key not in window.keys
        window.keys.append(key)
        window.signatures.append(signature)
        if result.failure is not None or window.hot or not is_new:
            return self._warned(window, result)
        return result

    def unknown(
        self, session: Session, name: str, digest: Digest, refusal: ToolResult
    ) -> ToolResult:
        """Take a call of a name that nobody registered into account."""
        window, now = session.recent, self._now()
        if window is not None and window.hot and not self._is_patient(window, now):
            finding = window.hot.get(digest.mac)
            if finding is not None:
                result = ToolResult.failed(
                    **_refusal(name, finding),
                    call_id=refusal.call_id,
                    tool=refusal.tool,
                    may_have_run=False,
                )
                return msgspec.structs.replace(result, metadata=finding.metadata)
        window = window or self._window_of(session)
        if now - window.at > self._pause_s:
            window.clear()
        window.at = now
        window.keys.append(_key(digest.mac, refusal))
        window.signatures.append(digest.mac)
        return self._warned(window, refusal)

    def settle(self, session: Session, seen: Iterable[tuple[int, str] | None]) -> None:
        """Put the calls of a turn that just ended into the order of the calls.

        They ended in any order, and the same calls in another order are the same round of a cycle.
        """
        window = session.recent
        entries = [entry for entry in seen if entry is not None]
        if window is None or len(entries) < 2:
            return
        kept = list(zip(window.keys, window.signatures, strict=True))
        ours = entries[-len(kept) :]
        if sorted(kept[len(kept) - len(ours) :]) != sorted(ours):
            return  # other calls of the session came between
        kept[len(kept) - len(ours) :] = ours
        for place, (key, signature) in enumerate(kept):
            window.keys[place], window.signatures[place] = key, signature
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
        if not verdict.confidence >= policy.judge_confidence:
            return None
        said = f"this conversation goes in circles: {verdict.reason[:MAX_REASON] or 'no progress'}"
        return LoopFinding("judge", turns, said)

    def _warned(self, window: _Window, result: ToolResult) -> ToolResult:
        """Look at the window after a call; its result, with a warning if it is part of a loop."""
        failure = result.failure
        wait_s = None if failure is None else failure.retry_after_s
        window.free_at = math.inf if wait_s is None else window.at + wait_s
        finding = self._look(window)
        return result if finding is None else _warned(result, finding)

    def _window_of(self, session: Session) -> _Window:
        if session.recent is None:
            session.recent = _Window(self._kept)
        window: _Window = session.recent
        return window

    def _look(self, window: _Window) -> LoopFinding | None:
        """Work out what would be one too many, and what the last call is part of."""
        keys, signatures = list(window.keys), list(window.signatures)
        found: LoopFinding | None = None
        hot: dict[str, LoopFinding] = {}
        for key, count in repeated(keys, self._window, self.policy.threshold).items():
            finding = LoopFinding("repeat", count, _said_of_repeat(count))
            hot[signatures[keys.index(key)]] = finding
            found = finding if key == keys[-1] else found
        for length in CYCLES if self.policy.cycle_rounds else ():
            count = rounds(keys, length)
            if count >= (self.policy.cycle_rounds or 0):
                finding = _cycle(length, count)
                hot.setdefault(signatures[-length], finding)
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


def _said_of_repeat(count: int) -> str:
    return f"the same call was made {count} times with the same result"


def _cycle(length: int, count: int) -> LoopFinding:
    said = f"the same {length} calls were made {count} times in turn with the same results"
    return LoopFinding("cycle_2" if length == 2 else "cycle_3", count, said)


def _refusal(tool: str, finding: LoopFinding) -> dict[str, Any]:
    return {
        "code": FailureCode.PERMISSION_DENIED,
        "message": f"{tool} was not run, as {finding.said}",
        "reason": "loop_detected",
        "layer": LAYER,
        "guidance": GUIDANCE,
    }


def _warned(result: ToolResult, finding: LoopFinding) -> ToolResult:
    line = f"[Loop: {finding.said}. The next call that goes on so is refused. {GUIDANCE}]"
    return msgspec.structs.replace(
        result,
        content=(*result.content, TextContent(text=line)),
        metadata={**(result.metadata or {}), **finding.metadata},
    )


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
