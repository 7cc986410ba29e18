"""Questions to a person by LangGraph's interrupts: what is asked, and what the answer allows.

A step of a graph is run again from its start when an answer comes, and LangGraph gives answers out
in the order in which they are asked for. So the calls of one step are asked about together and
before the first of them runs: no answer is taken for another call's, and nothing is done twice.
"""

from __future__ import annotations

import importlib
import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from seawall.contract.result import ToolResult
from seawall.edges.adapters._bridge import MAX_SESSIONS, Bridge, denied

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig

    from seawall.pipeline.session import Session

SCRATCHPAD = "__pregel_scratchpad"
"""Where LangGraph keeps what the calls of one run of a step have in common."""

ALONE = "__pregel_push"
"""How the path of a step begins that runs one call alone, as in `create_agent`."""


class Asked(NamedTuple):
    """A call that a person may be asked about."""

    name: str
    arguments: Any
    id: str | None


class Approved(NamedTuple):
    """A person's yes, and the arguments that it is for."""

    arguments: Any


Answer = Approved | ToolResult
"""What came of a question: what may run, or the result of a call that may not."""


class _Step:
    """One run of a step of a graph: its question is asked once, for all its calls."""

    def __init__(self, scratchpad: Any) -> None:
        self.scratchpad = scratchpad  # held, so that its id is that of no other
        self.interrupt: BaseException | None = None
        self.answers: list[tuple[Asked, Answer]] | None = None
        """What is still to be taken; ids may be equal, or missing, so calls are told as a whole."""

    def take(self, call: Asked) -> Answer | None:
        """Give the answer to a call, once: the next call like it has one of its own, or none."""
        waiting = self.answers or []
        at = next((at for at, (shown, _) in enumerate(waiting) if shown == call), None)
        return None if at is None else waiting.pop(at)[1]


class Questions:
    """Asks for the calls of one pipeline."""

    def __init__(self, bridge: Bridge) -> None:
        self._bridge = bridge
        self._steps: OrderedDict[tuple[Any, ...], _Step] = OrderedDict()
        self._lock = threading.Lock()

    def before(
        self, call: Asked, runtime: Any, config: RunnableConfig, session: Session
    ) -> Answer | None:
        """Ask for a call and for those that run in the same step, if there are any.

        None if nobody is to be asked. Raises LangGraph's interrupt until there is an answer.
        """
        scratchpad = _scratchpad(config)
        together = _together(call, runtime, config)
        if not self._bridge.by_framework or scratchpad is None or len(together) < 2:
            return None
        with self._lock:
            step = self._step(scratchpad, together)
            if step.interrupt is not None:
                raise step.interrupt
            if step.answers is None:
                step.answers = self._asked(step, together, session)
            return step.take(call)

    def after(
        self, call: Asked, runtime: Any, config: RunnableConfig, result: ToolResult
    ) -> Answer:
        """Ask for a call that its pipeline refused for want of an approval, if a graph runs it."""
        if not self._bridge.asks(result) or _scratchpad(config) is None:
            return result
        if len(_together(call, runtime, config)) > 1:
            return result
        said = "" if result.failure is None else result.failure.message
        return _answers([call], _interrupted([(call, said)]))[0]

    def _step(self, scratchpad: Any, together: Sequence[Asked]) -> _Step:
        key = (id(scratchpad), *(one.id for one in together))
        step = self._steps.setdefault(key, _Step(scratchpad))
        if len(self._steps) > MAX_SESSIONS:
            self._steps.popitem(last=False)
        return step

    def _asked(
        self, step: _Step, together: Sequence[Asked], session: Session
    ) -> list[tuple[Asked, Answer]]:
        told = [(one, self._bridge.question(one.name, one.arguments, session)) for one in together]
        wanted = [(one, said) for one, said in told if said is not None]
        if not wanted:
            return []
        try:
            answer = _interrupted(wanted)
        except importlib.import_module("langgraph.errors").GraphInterrupt as interrupt:
            step.interrupt = interrupt
            raise
        calls = [one for one, _ in wanted]
        return list(zip(calls, _answers(calls, answer), strict=True))


def _scratchpad(config: RunnableConfig) -> Any:
    return (config.get("configurable") or {}).get(SCRATCHPAD)


def _together(call: Asked, runtime: Any, config: RunnableConfig) -> list[Asked]:
    """The calls that run in the same step, as the message says that asks for them."""
    path = (config.get("metadata") or {}).get("langgraph_path") or ()
    if next(iter(path), None) == ALONE:
        return [call]
    for messages in _lists(getattr(runtime, "state", None)):
        calls = next((found for one in reversed(messages) if (found := _calls(one))), [])
        if any(one.id == call.id for one in calls):
            return calls
    return [call]


def _lists(state: Any) -> Iterator[Sequence[Any]]:
    held: Iterable[Any] = [state]
    if isinstance(state, Mapping):
        held = state.values()
    elif not isinstance(state, list):
        held = getattr(state, "__dict__", {}).values()
    return (one for one in held if isinstance(one, list))


def _calls(message: Any) -> list[Asked]:
    found = getattr(message, "tool_calls", None) or ()
    return [Asked(one["name"], one["args"], one["id"]) for one in found]


def _interrupted(wanted: Sequence[tuple[Asked, str]]) -> Any:
    """Interrupt the graph as LangChain's `HumanInTheLoopMiddleware` does.

    When the graph goes on after the interrupt, this gives the answer instead of raising.
    """
    allowed: list[Literal["approve", "edit", "reject"]] = ["approve", "edit", "reject"]
    interrupt = importlib.import_module("langgraph.types").interrupt
    return interrupt(
        {
            "action_requests": [
                {"name": one.name, "args": one.arguments, "description": said}
                for one, said in wanted
            ],
            "review_configs": [
                {"action_name": name, "allowed_decisions": allowed}
                for name in dict.fromkeys(one.name for one, _ in wanted)
            ],
        }
    )


def _answers(calls: Sequence[Asked], answer: Any) -> list[Answer]:
    """Read an answer: that middleware's `decisions`, a single one of them alone, or plain True."""
    decisions = answer.get("decisions") if isinstance(answer, Mapping) else None
    if not isinstance(decisions, list):
        decisions = [answer] * len(calls) if answer is True or len(calls) == 1 else []
    if len(decisions) == len(calls):
        return [_decided(one, given) for one, given in zip(calls, decisions, strict=True)]
    said = "" if len(calls) == 1 else f"{len(calls)} calls need one decision each"
    return [_denied(one, said) for one in calls]


def _decided(call: Asked, decision: Any) -> Answer:
    if decision is True:
        return Approved(call.arguments)
    if not isinstance(decision, Mapping):
        return _denied(call)
    if decision.get("type") == "approve":
        return Approved(call.arguments)
    edited = decision.get("edited_action")
    if decision.get("type") == "edit" and isinstance(edited, Mapping):
        if edited.get("name", call.name) == call.name:
            return Approved(dict(edited.get("args") or {}))
        return _denied(call, "another tool was put in its place")
    return _denied(call, str(decision.get("message") or ""))


def _denied(call: Asked, message: str = "") -> ToolResult:
    return denied(call.id or "", call.name, message)
