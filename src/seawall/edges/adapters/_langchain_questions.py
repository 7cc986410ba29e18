"""Questions to a person by LangGraph's interrupts: what is asked, and what the answer allows.

A step of a graph is run again from its start when an answer comes, and LangGraph gives answers out
in the order in which they are asked for. So the calls of one step are asked about together and
before the first of them runs: no answer is taken for another call's, and nothing is done twice.
One yes is for one run.
"""

from __future__ import annotations

import importlib
import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from seawall.contract.failure import FailureCode
from seawall.contract.result import ToolResult
from seawall.edges.adapters._bridge import MAX_SESSIONS, Bridge, denied

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig

    from seawall.pipeline.session import Session

SCRATCHPAD = "__pregel_scratchpad"
"""Where LangGraph keeps what the calls of one run of a step have in common."""

TASK = "__pregel_task_id"
"""Where LangGraph names a step, alike each time that it runs the step again."""

READ = "__pregel_read"
"""Where LangGraph gives a step what reads the channels of its graph."""

SENT = "__pregel_push"
"""How the path of a step begins that a `Send` has started; the number of the `Send` follows."""

MESSAGES = "messages"
"""The channel in which a graph keeps its messages by custom."""

SENDS = "__pregel_tasks"
"""The channel with what was sent to the steps that run now."""


class Asked(NamedTuple):
    """A call that a person may be asked about."""

    name: str
    arguments: Any
    id: str | None

    def is_for(self, call: Asked) -> bool:
        """Whether a call is what was shown; a node of one's own may run it without its id."""
        same = self.name == call.name and self.arguments == call.arguments
        return same and call.id in (self.id, None)

    def may_be(self, call: Asked) -> bool:
        """Whether a call that runs is this one, or was until somebody changed it."""
        return self.is_for(call) if call.id is None else self.id == call.id


class Approved(NamedTuple):
    """A person's yes, and the arguments that it is for."""

    arguments: Any


Answer = Approved | ToolResult
"""What came of a question: what may run, or the result of a call that may not."""


class _Question:
    """What is asked about calls that run together: once, and each decision is handed out once."""

    def __init__(self) -> None:
        self.interrupt: BaseException | None = None
        self.answers: list[tuple[Asked, Answer]] | None = None

    def take(self, call: Asked) -> Answer | None:
        """Take a decision about a call as it was shown; None if there is none, or none left."""
        waiting = self.answers or []
        same = [at for at, (shown, _) in enumerate(waiting) if shown.is_for(call)]
        exact = (at for at in same if waiting[at][0].id == call.id)
        return waiting.pop(next(exact, same[0]))[1] if same else None


class _Step:
    """One run of a step of a graph, and what a person has allowed in it."""

    def __init__(self, scratchpad: Any) -> None:
        self.scratchpad = scratchpad  # held, so that its id is that of no other
        self.questions: dict[tuple[Any, ...], _Question] = {}
        self.began: list[Asked] = []
        """Calls that run, or have run, and must not run again."""

    @property
    def ran(self) -> str | None:
        """A tool that would run once more if the graph were interrupted now."""
        return self.began[0].name if self.began else None


class Questions:
    """Asks for the calls of one pipeline."""

    def __init__(self, bridge: Bridge) -> None:
        self._bridge = bridge
        self._steps: OrderedDict[int, _Step] = OrderedDict()
        self._alone: OrderedDict[tuple[Any, ...], tuple[Any, str]] = OrderedDict()
        """What was asked about calls that run alone, for when their step runs again."""
        self._lock = threading.Lock()

    def before(
        self, call: Asked, runtime: Any, config: RunnableConfig, session: Session
    ) -> Answer | None:
        """Ask for a call and for those that run in the same step, if there are any.

        None if nobody is to be asked. Raises LangGraph's interrupt until there is an answer.
        """
        scratchpad = _scratchpad(config)
        if not self._bridge.by_framework or scratchpad is None:
            return None
        together = _together(call, runtime, config)
        if len(together) < 2:
            return self._alone_before(call, config, scratchpad, session)
        with self._lock:
            step = self._step(scratchpad)
            question = step.questions.setdefault(tuple(one.id for one in together), _Question())
            if question.interrupt is not None:
                raise question.interrupt
            if question.answers is None:
                question.answers = self._asked(step, question, together, session)
            answer = question.take(call)
            if answer is None:
                self._begins(step, call)
        self._note(step, call, answer)
        return answer

    def _alone_before(
        self, call: Asked, config: RunnableConfig, scratchpad: Any, session: Session
    ) -> Answer | None:
        answer = self._asked_again(call, config, scratchpad)
        if answer is not None or self._bridge.may_repeat(call.name):
            return answer
        # What nobody is asked about runs now, and an interrupt after it would run it again.
        if self._bridge.question(call.name, call.arguments, session) is None:
            with self._lock:
                self._begins(self._step(scratchpad), call)
        return None

    def after(
        self, call: Asked, runtime: Any, config: RunnableConfig, result: ToolResult
    ) -> Answer:
        """Ask for a call that its pipeline refused for want of an approval, if a graph runs it."""
        scratchpad = _scratchpad(config)
        if scratchpad is None or not self._bridge.by_framework:
            return result
        if result.failure is not None and result.failure.may_have_run is False:
            with self._lock:
                self._did_not_begin(self._step(scratchpad), call)
        if not self._bridge.asks(result):
            return result
        if len(_together(call, runtime, config)) > 1:
            return result
        said = "" if result.failure is None else result.failure.message
        with self._lock:
            self._alone[_place(call, config)] = (call.arguments, said)
            if len(self._alone) > MAX_SESSIONS:
                self._alone.popitem(last=False)
        return self._answer_alone(call, said, scratchpad)

    def _asked_again(self, call: Asked, config: RunnableConfig, scratchpad: Any) -> Answer | None:
        """Take the answer about a call of a step that runs again, at once.

        It is the same call still: made once more without its answer, it would be refused once more,
        and a tool that asks its person further questions would soon count as a loop.
        """
        arguments, said = self._alone.get(_place(call, config), (None, ""))
        if not said or arguments != call.arguments:
            return None
        return self._answer_alone(call, said, scratchpad)

    def _answer_alone(self, call: Asked, said: str, scratchpad: Any) -> Answer:
        with self._lock:
            step = self._step(scratchpad)
        if step.ran is not None:
            return _too_late(call, step.ran)
        answer = _answers([call], _interrupted([(call, said)]))[0]
        self._note(step, call, answer)
        return answer

    def _step(self, scratchpad: Any) -> _Step:
        step = self._steps.setdefault(id(scratchpad), _Step(scratchpad))
        if len(self._steps) > MAX_SESSIONS:
            self._steps.popitem(last=False)
        return step

    def _note(self, step: _Step, call: Asked, answer: Answer | None) -> None:
        """Note that what was allowed runs now: an interrupt after it would run it once more."""
        if isinstance(answer, Approved):
            self._begins(step, call)

    def _begins(self, step: _Step, call: Asked) -> None:
        if not self._bridge.may_repeat(call.name):
            step.began.append(call)

    @staticmethod
    def _did_not_begin(step: _Step, call: Asked) -> None:
        step.began = [one for one in step.began if one is not call]

    def _asked(
        self, step: _Step, question: _Question, together: Sequence[Asked], session: Session
    ) -> list[tuple[Asked, Answer]]:
        told = [(one, self._bridge.question(one.name, one.arguments, session)) for one in together]
        wanted = [(one, said) for one, said in told if said is not None]
        if not wanted:
            return []
        if step.ran is not None:
            return [(one, _too_late(one, step.ran)) for one, _ in wanted]
        try:
            answer = _interrupted(wanted)
        except importlib.import_module("langgraph.errors").GraphInterrupt as interrupt:
            question.interrupt = interrupt
            raise
        calls = [one for one, _ in wanted]
        return list(zip(calls, _answers(calls, answer), strict=True))


def _scratchpad(config: RunnableConfig) -> Any:
    return (config.get("configurable") or {}).get(SCRATCHPAD)


def _place(call: Asked, config: RunnableConfig) -> tuple[Any, ...]:
    return (config.get("configurable") or {}).get(TASK), call.id, call.name


def _together(call: Asked, runtime: Any, config: RunnableConfig) -> list[Asked]:
    """The calls that run in the same step: those it was sent, or those a message asks for."""
    sent = _sent(config)
    if isinstance(sent, Mapping) and any(_is_one(value, call) for value in sent.values()):
        return [call]
    if runtime is not None:
        lists = [_listed(sent), *(_latest(one) for one in _lists(runtime.state))]
    elif sent is not None:
        lists = [_listed(sent), *(_latest(one) for one in _lists(sent))]
    else:
        lists = [_waiting(_read(config, MESSAGES))]
    return next((calls for calls in lists if any(one.may_be(call) for one in calls)), [call])


def _sent(config: RunnableConfig) -> Any:
    """What a `Send` gave to the step; None if the step was reached by an edge."""
    path = tuple((config.get("metadata") or {}).get("langgraph_path") or ())
    if path[:1] != (SENT,) or not isinstance(path[1], int):
        return None
    sends = _read(config, SENDS)
    return sends[path[1]].arg if path[1] < len(sends) else None


def _read(config: RunnableConfig, channel: str) -> Sequence[Any]:
    read = (config.get("configurable") or {}).get(READ)
    try:
        found = None if read is None else read(channel)
    except KeyError:  # a graph without such a channel
        found = None
    return found if isinstance(found, Sequence) else ()


def _lists(state: Any) -> Iterator[Sequence[Any]]:
    held: Iterable[Any] = [state]
    if isinstance(state, Mapping):
        held = state.values()
    elif not isinstance(state, list):
        held = getattr(state, "__dict__", {}).values()
    return (one for one in held if isinstance(one, list))


def _latest(messages: Sequence[Any]) -> list[Asked]:
    """The calls of a list of calls, or of the last of its messages that asks for any."""
    return _listed(messages) or next(
        (found for one in reversed(messages) if (found := _calls(one))), []
    )


def _waiting(messages: Sequence[Any]) -> list[Asked]:
    """Those of them that no message has answered yet."""
    answered = {getattr(one, "tool_call_id", None) for one in messages} - {None}
    return [one for one in _latest(messages) if one.id not in answered]


def _listed(given: Any) -> list[Asked]:
    """The calls that a step was handed as a plain list."""
    if not isinstance(given, list) or not given or not all(_is_call(one) for one in given):
        return []
    return [_asked_for(one) for one in given]


def _calls(message: Any) -> list[Asked]:
    return [_asked_for(one) for one in getattr(message, "tool_calls", None) or ()]


def _is_call(given: Any) -> bool:
    return isinstance(given, Mapping) and given.keys() >= {"name", "args"}


def _is_one(given: Any, call: Asked) -> bool:
    return _is_call(given) and _asked_for(given).may_be(call)


def _asked_for(call: Mapping[str, Any]) -> Asked:
    return Asked(call["name"], call["args"], call.get("id"))


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


def _too_late(call: Asked, ran: str) -> ToolResult:
    """Refuse to ask: the step, and with it what a person has allowed, would run once more."""
    return ToolResult.failed(
        FailureCode.PERMISSION_DENIED,
        f"{call.name} was not run: it needs a person's approval, and {ran} has run in the same "
        "step of the graph, which would run again when the answer comes",
        call_id=call.id or "",
        tool=call.name,
        reason="approval_required",
        layer="risk_gate",
        guidance="Make this call again, by itself.",
        may_have_run=False,
    )
