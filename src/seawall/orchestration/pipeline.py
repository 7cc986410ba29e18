"""The front door: every call of a tool goes through here and comes back as a result."""

from __future__ import annotations

import itertools
from asyncio import get_running_loop as running_loop
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal, Self

from seawall.contract.decision import Action, Decision
from seawall.layers.risk_gate import Gate, RiskGate
from seawall.orchestration.approvals.desk import Approvals
from seawall.orchestration.approvals.grounds import Grounds
from seawall.orchestration.approvals.kept import encoded_state
from seawall.orchestration.approvals.later import Later
from seawall.orchestration.approvals.resuming import Resuming
from seawall.orchestration.calls import members_of, text_of_id
from seawall.orchestration.chains import Chains
from seawall.orchestration.deciding import Deciding
from seawall.orchestration.equipment import Equipment, watched
from seawall.orchestration.front import RowDoors
from seawall.orchestration.given import (
    check_given,
    check_limits,
    check_policies,
    check_session,
    checked_width,
)
from seawall.orchestration.home import Home
from seawall.orchestration.hooked import Hooks
from seawall.orchestration.loop import LoopDetector
from seawall.orchestration.loop_policy import BY_SESSION, LoopPolicy, chosen
from seawall.orchestration.progress import Reports
from seawall.orchestration.running import Running
from seawall.orchestration.status import Breakers, gauges
from seawall.orchestration.turn import Doors, Turn
from seawall.orchestration.unknown import UnknownNames, too_deep
from seawall.pipeline.collecting import uncollected
from seawall.pipeline.context import MAX_DEPTH
from seawall.pipeline.invocation import Invocation, Progress
from seawall.pipeline.session import OneCall, Session
from seawall.pipeline.threads import depth
from seawall.policy.build import Given, listed
from seawall.policy.model import Policies
from seawall.registry.registry import Registry
from seawall.registry.wrapping import wrap

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from seawall.contract.decision import Prepared
    from seawall.contract.result import ToolResult
    from seawall.contract.tool import Tool, ToolCall
    from seawall.contract.turn import TurnEvent, TurnOutcome
    from seawall.layers.environment import Environment
    from seawall.layers.risk_policies import CallPolicy
    from seawall.orchestration.approvals.settings import ApprovalSettings
    from seawall.orchestration.hooks import Hook
    from seawall.pipeline.chance import Chance
    from seawall.pipeline.clock import Clock
    from seawall.pipeline.recorder import Recorder
    from seawall.pipeline.route import Route
    from seawall.recording.gauges import Gauge
    from seawall.recording.metrics import Metrics
    from seawall.recording.trace import TraceRecorder
    from seawall.recording.usage import UsageTracker
    from seawall.stores.shared import Shared
    from seawall.stores.state import State


class Pipeline:
    """A registry behind all layers.

        pipeline = Pipeline([search, send_mail])
        result = await pipeline.call("search", {"query": "seawall"})

    `registry` is a `Registry` or anything `wrap` takes. Chains are composed here and whenever a
    tool comes in, so a policy that cannot work is told at once, as a `ConfigurationError`.

    A pipeline belongs to the event loop of its first call. Calls from other threads go through
    `call_sync`; registering and unregistering tools is safe from any thread. Calls without a
    session share one, for which answers of the user are remembered. What `loop` leaves open is
    for the policies to say.

    - `policies`: how each tool is run; without them each gets a preset by its annotations.
    - `layers`: which layers there are, outermost first, by name or as recipes; None is all of them.
    - `hooks`: asked before a call and told after it, in this order.
    - `max_turn_width`: calls of one turn that run at once.
    - `risk`: decides about calls, instead of what the policies say; `confirm` asks a person, as
      `async (prepared, decision) -> Answer`; `approvals` lets turns wait for an answer instead.
    - `environment`: the flags that tools may need.
    - `trace`, `usage`, `metrics`: recorders to share or to set up; `recorders` are more of them.
    - `state`: a `State`, or the URL of one: what is to survive this process is kept there.
    - `shared`: a `Shared`, or the URL of a Redis or Valkey: rates and circuits are then those of
      all processes that name it. Without it, `[shared]` of the policies says where that is.
    - `clock`, `chance`: where time and chance come from; tests give their own.
    - `digest_key`: makes digests comparable between processes; else the state's, else a new one.
    - `on_progress`: told what tools report, as `(report, done, total)`, unless a call says who is.
    - `on_defect`: `raise` lets a mistake in a tool's code through, for development.

    What is of a wrong kind is told at once, all together, in one `ConfigurationError`.
    """

    def __init__(
        self,
        registry: Any,
        *,
        policies: Policies | None = None,
        layers: Iterable[Given] | None = None,
        hooks: Iterable[Hook] = (),
        loop: LoopPolicy | None = BY_SESSION,
        max_turn_width: int = 16,
        environment: Environment | None = None,
        risk: CallPolicy | Gate | None = None,
        approvals: ApprovalSettings | None = None,
        confirm: Callable[..., Any] | None = None,
        trace: TraceRecorder | None = None,
        usage: UsageTracker | None = None,
        metrics: Metrics | None = None,
        recorders: Iterable[Recorder] = (),
        state: State | str | None = None,
        shared: Shared | str | None = None,
        clock: Clock | None = None,
        chance: Chance | None = None,
        digest_key: bytes | None = None,
        on_progress: Progress | None = None,
        on_defect: Literal["result", "raise"] = "result",
    ) -> None:
        recorders = tuple(recorders) if isinstance(recorders, Iterable) else recorders
        check_given(
            policies,
            recorders,
            layers=layers,
            hooks=hooks,
            loop=loop,
            environment=environment,
            trace=trace,
            usage=usage,
            metrics=metrics,
            shared=shared,
            clock=clock,
            chance=chance,
            digest_key=digest_key,
            on_progress=on_progress,
            on_defect=on_defect,
        )
        with uncollected():
            self.registry = registry if isinstance(registry, Registry) else wrap(registry)
        self.policies = policies or Policies.default()
        equipment = Equipment(
            self.policies,
            clock=clock,
            chance=chance,
            environment=environment,
            trace=trace,
            usage=usage,
            metrics=metrics,
            recorders=recorders,
            state=state,
            shared=shared,
            digest_key=digest_key,
        )
        self._use(equipment)
        self._home = Home(self._forget_loop)
        self._session = Session()
        self._on_progress = on_progress
        self._numbers = itertools.count(1)
        self._prefix = equipment.chance.token(4)
        around = Hooks(hooks)
        self._hooked = bool(around)
        self._deciding = Deciding(risk, confirm, self.policies)
        self._let_wait(approvals, around)
        self._compose(layers, around, on_defect)
        self._loop = loop
        self._watch_for_loops(self.policies)
        self._open_doors(checked_width(max_turn_width))
        self._chains.take_all()
        self.registry.watch(self)
        self._chains.offer_result_read()
        self._unwatch = watched(self, self._gauges, self.approvals, self.metrics)

    def _use(self, equipment: Equipment) -> None:
        self._equipment = equipment
        self.clock = equipment.clock
        self.environment = equipment.environment
        self.trace = equipment.trace
        self.usage = equipment.usage
        self.metrics = equipment.metrics
        self.states = equipment.states
        self.state = equipment.state
        self.shared = equipment.shared
        self.digester = equipment.digester
        self.breakers = Breakers(self)
        self._now = self.clock.now
        self._audit = equipment.audit
        self._run = Running(self.clock, self._audit).run

    def _let_wait(self, settings: ApprovalSettings | None, around: Hooks) -> None:
        self.approvals = Approvals(
            settings,
            self.clock,
            self._equipment.chance,
            state=self.state,
            listeners=around.on_approval,
            risk_of=self._deciding.risk_of,
            room=lambda: self.policies.approvals,
        )
        if self.approvals.enabled:
            self._deciding.lets_wait(Later(self.approvals))

    def _compose(self, layers: Iterable[Given] | None, around: Hooks, on_defect: str) -> None:
        equipment = self._equipment
        builder = equipment.builder(
            self.policies,
            listed(layers),
            gate=self._deciding.gate,
            schemas=self.registry.schemas,
            around=around.around if around else None,
            on_defect=on_defect,
        )
        self._chains = Chains(self.registry, builder, equipment.forget_counts)
        self._routes = self._chains.routes
        self._unknown = UnknownNames(
            self.registry, self._chains, self._deciding, equipment, self._invocation, self._new_id
        )

    def _open_doors(self, width: int) -> None:
        self._doors = Doors(
            self.clock,
            self.loop_detector,
            width,
            self._routes.get,
            self._invocation,
            self._run_in_turn,
            self._unknown_in_turn,
            self.approvals if self.approvals.enabled else None,
        )
        grounds = Grounds(
            self._doors,
            lambda: self._deciding.gate,
            RiskGate in self._chains.builder.layers,
            self._chains.builder.preparing,
            self.new_key,
            self._equipment.ending,
        )
        self._resuming = Resuming(grounds, self.approvals)

    def _watch_for_loops(self, policies: Policies) -> None:
        policy = chosen(self._loop, policies.loop)
        self.loop_detector = (
            None if policy is None else LoopDetector(policy, self.clock, self.metrics.loop_stopped)
        )
        of_all = policy is not None and policy.scope == "all"
        self._loop_of_all = self.loop_detector if of_all else None

    async def call(
        self,
        name: str,
        arguments: str | Mapping[str, Any] | None = None,
        *,
        call_id: str | None = None,
        session: Session | None = None,
        timeout_s: float | None = None,
        deadline_s: float | None = None,
        idempotency_key: str | None = None,
        on_progress: Progress | None = None,
        truncated: bool = False,
        carry: Any = None,
    ) -> ToolResult:
        """Call one tool. Every outcome is a result; only the caller's cancel is raised.

        `arguments` is a mapping or JSON text as a model sends it. `timeout_s` bounds each attempt
        instead of the policy's, `deadline_s` the whole call: gates, waits and attempts together.
        `truncated` says that the provider cut the call off, so that it is refused.

        A call that has to wait for a person is refused as `approval_required`, with the id of its
        approval in `metadata["approval_id"]`; `carry` is kept with it, and must be JSON.
        """
        if call_id is None:
            call_id = f"{self._prefix}-{next(self._numbers)}"
        elif not (call_id and isinstance(call_id, str)):
            call_id = text_of_id(call_id) or self._new_id()
        if session is None:
            session, watch = self._session, self._loop_of_all
        else:
            if session.__class__ is not Session:
                check_session(session)
            watch = None if session.__class__ is OneCall else self.loop_detector
        route = self._routes.get(name) if isinstance(name, str) else None
        if route is None and (route := self._chains.declared(name)) is None:
            return self._unknown.answer(name, arguments, call_id, session, watch)
        if running_loop() is not self._home.loop:
            self._home.enter()
        call = Invocation(
            route.tool,
            route.policy,
            route.prepare,
            arguments,
            call_id,
            session,
            self._now(),
            self,
            route.closing,
            truncated,
            idempotency_key,
            on_progress,
        )
        if self._audit is not None or not (
            watch is carry is timeout_s is deadline_s is route.policy.deadline_s is None
        ):
            check_limits(timeout_s=timeout_s, deadline_s=deadline_s)
            _keep_beside(call, carry)
            return await self._run(route, call, timeout_s, deadline_s, watch)
        # As `_run` does where nothing more is to be done: a coroutine less for most calls.
        calls = route.calls
        calls.count += 1
        try:
            result = await route.handle(call)
        except BaseException as error:
            route.broken_off(call, error)
            raise
        finally:
            calls.count -= 1
        return route.finish(call, result)

    async def turn(
        self,
        calls: Iterable[Any],
        *,
        session: Session | None = None,
        truncated: bool = False,
        execution: Literal["parallel", "sequential"] | None = None,
        on_event: Callable[[TurnEvent], Any] | None = None,
        carry: Any = None,
    ) -> TurnOutcome:
        """Run the calls that a model made at once; one result for each, in their order.

        A call is a `ToolCall`, a pair of name and arguments, or what a model API gives. They run
        together, `max_turn_width` at once, unless `execution` or one of the tools wants them in
        sequence. `truncated` says that the provider cut the answer off: nothing is run then.
        `on_event`, a plain function, is told of starts, progress and ends as they happen.

        With `approvals`, a turn of which a call has to wait for a person runs nothing: its status
        is `waiting`, and `approval` says what to answer. `carry` is kept with it, and must be JSON.
        """
        if carry is not None:
            encoded_state(carry)
        self._home.enter()
        if session is not None:
            check_session(session)
        if execution not in (None, "parallel", "sequential"):
            raise ValueError(f"execution must be parallel or sequential; it is {execution!r}")
        session, turn_id = session or self._session, self._new_id()
        turn = Turn(
            self._doors,
            members_of(calls, self._new_id, self.registry.own_name),
            session,
            turn_id=turn_id,
            truncated=truncated,
            on_event=on_event,
            carry=carry,
        )
        if self._audit is None:
            return await turn.run(execution)
        with self._audit.turn(turn_id, session.id, session.caller) as ended:
            outcome = await turn.run(execution)
            ended(outcome.status, outcome.reason)
            return outcome

    async def resume(
        self,
        approval_id: str,
        *,
        arguments: Mapping[str, Any] | None = None,
        session: Session | None = None,
        on_event: Callable[[TurnEvent], Any] | None = None,
    ) -> TurnOutcome:
        """Run what was approved, once: tools, schemas, rules, session and arguments as approved.

        What is not so any more is refused, and the approval stays good. `arguments` are needed
        where none were kept for lack of a key: those of the call, or of each by its call id; they
        have to be those that were approved. Without `session` it is that of the request; where
        that is not held any more and had a state or services, one with the same must be given.
        """
        self._home.enter()
        return await self._resuming.resume(
            approval_id, arguments=arguments, session=session, on_event=on_event
        )

    async def outcome(self, approval_id: str, *, read: bool = True) -> TurnOutcome:
        """Give what came of a request; `waiting`, as long as nothing did. Runs nothing.

        Results are kept until they were read; with `read=False` this is only a look.
        """
        self._home.enter()
        return await self._resuming.outcome(approval_id, read=read)

    def _new_id(self) -> str:
        return f"{self._prefix}-{next(self._numbers)}"

    def _invocation(
        self, route: Route, arguments: Any, call_id: str, session: Session
    ) -> Invocation:
        return Invocation(
            route.tool,
            route.policy,
            route.prepare,
            arguments,
            call_id,
            session,
            self._now(),
            self,
            route.closing,
        )

    def in_a_row(self) -> RowDoors:
        """What batches and shortcuts need of this pipeline."""
        return RowDoors(
            self.clock,
            self.prepare,
            self._home.enter,
            self._session,
            lambda: f"batch-{self._equipment.chance.token(8)}",
            self._routes.get,
            lambda name, session: self._unknown.answer(name, None, None, session),
            self._invocation_in_a_row,
            self._run,
            lambda: self._deciding.gate,
            self._chains.gate_of,
            self.registry.own_name,
        )

    def _invocation_in_a_row(
        self, route: Route, arguments: Any, session: Session, outer: Invocation | None
    ) -> Invocation:
        call = self._invocation(route, arguments, self._new_id(), session)
        if outer is not None:
            call.depth = outer.depth + 1
            call.batch_id = outer.batch_id
            call.belongs_to(outer, hooked=self._hooked)
        return call

    def _run_in_turn(self, route: Route, call: Invocation) -> Awaitable[ToolResult]:
        return self._run(route, call, None, None, self.loop_detector)

    def _unknown_in_turn(
        self, asked: ToolCall, call_id: str, session: Session, instead: ToolResult | None = None
    ) -> ToolResult:
        if instead is not None:
            return self._unknown.answer_with(asked, call_id, session, instead)
        return self._unknown.answer(
            asked.name, asked.arguments, call_id, session, self.loop_detector
        )

    def prepare(
        self,
        name: str,
        arguments: str | Mapping[str, Any] | None = None,
        *,
        session: Session | None = None,
    ) -> Prepared | ToolResult:
        """Parse, mend and check arguments without running anything: what would run, or why not."""
        if session is not None:
            check_session(session)
        route = self._routes.get(name) if isinstance(name, str) else None
        if route is None and (route := self._chains.declared(name)) is None:
            return self._unknown.refusal(name, "", session or self._session)
        call = self._invocation(route, arguments, "", session or self._session)
        refusal = call.prepared()
        if refusal is not None:
            return refusal
        route.digest(call)
        return call.as_prepared()

    def call_sync(
        self,
        name: str,
        arguments: str | Mapping[str, Any] | None = None,
        **options: Any,
    ) -> ToolResult:
        """Call from code that is not async, in any thread but the loop's own.

        Goes to the pipeline's loop if that runs, else to a loop kept in a thread of its own.
        Raises `RuntimeError` if that loop ends first, by `aclose` too: whether the tool ran is
        not known then.

        A tool in a thread may use it, at most `MAX_DEPTH` deep, and keeps its thread while it
        waits. A call is refused (`overloaded`) that needs a thread of a tool whose `max_threads`
        all wait for such calls.
        """
        if depth() >= MAX_DEPTH:
            return too_deep(name)
        return self._home.run(lambda: self.call(name, arguments, **options))

    def replace_policies(self, policies: Policies) -> None:
        """Take new policies, all or none. Calls that run go on under the old ones.

        Buckets and circuits go on with what they hold, `[risk]` and `[loop]` count unless `risk`
        or `loop` was given, `[trace]` only where a pipeline is made. Raises `ConfigurationError`,
        and changes nothing, if any tool's new policy cannot work.
        """
        check_policies(policies)
        gate = self._deciding.under(policies)
        follow = self._chains.tried(policies, {Gate: gate})
        self.policies = policies
        self._deciding.gate = gate
        self._watch_for_loops(policies)
        self._doors = self._doors._replace(loop=self.loop_detector)
        follow()

    def policy_of(self, name: str) -> Any:
        """The policy under which a tool runs now, or None for a name that cannot be called."""
        route = self._routes.get(name)
        return None if route is None else route.policy

    def decision_for(self, tool: Tool) -> Decision:
        """Tell what the gate makes of a tool's calls, before any session or argument is known."""
        policy = self.policy_of(tool.name)
        if policy is not None and policy.gate_mode != "on":
            return Decision(Action.ALLOW, f"the gate is {policy.gate_mode}")
        return self._deciding.of_tool(tool)

    def tool_added(self, tool: Tool) -> None:
        """Compose the chain of a tool that comes in; called by the registry."""
        self._chains.take(tool)

    def tool_removed(self, name: str) -> None:
        """Forget the chain of a tool that went; its bucket and circuit are set aside."""
        self._chains.forget(name)
        self.states.retire(name)
        self._equipment.forget_counts(name)

    def new_key(self) -> str:
        """Draw an idempotency key."""
        return self._equipment.chance.token(16)

    def progressed(
        self, call: Invocation, report: Any, done: float | None, total: float | None
    ) -> None:
        """Deliver a tool's progress, in the pipeline's loop, whichever thread it came from."""
        if call.on_progress is None and self._on_progress is None:
            return
        if call.reports is None:
            call.reports = Reports(call, self._on_progress, self.clock, self._home.soon)
        call.reports.add(report, done, total)

    async def call_nested(
        self,
        outer: Invocation,
        name: str,
        arguments: Mapping[str, Any] | None,
        idempotency_key: str | None = None,
    ) -> ToolResult:
        """Call a tool for a tool: the same layers and session, what is left of its deadline."""
        if outer.depth + 1 >= MAX_DEPTH:
            return too_deep(name)
        self._home.enter()
        route = self._routes.get(name) if isinstance(name, str) else None
        if route is None and (route := self._chains.declared(name)) is None:
            return self._unknown.answer(name, None, None, outer.session)
        call = self._invocation_in_a_row(route, arguments, outer.session, outer)
        call.idempotency_key = idempotency_key
        left = None if outer.deadline is None else outer.deadline - self.clock.now()
        left = left if left is None else max(left, 0.001)
        return await outer.hears_of(call, self._run(route, call, None, left))

    def _gauges(self) -> Iterable[Gauge]:
        return gauges(self._routes, self.states, self._equipment.threads, self.metrics.label)

    def _forget_loop(self) -> None:
        """Begin anew: the loop is gone, or left behind by a fork."""
        self._chains.forget_loop()
        self._equipment.forget_loop()

    async def aclose(self) -> None:
        """End idle threads and the loop of `call_sync`, if there is one; give no more gauges.

        Who waits in `call_sync` meanwhile gets a `RuntimeError`. A state or a shared store is
        closed if it was given as a URL; one that was opened before stays open.
        """
        if self.shared is not None:
            await self._home.finish(self._equipment.close_shared)
        self._unwatch()
        self._equipment.threads.close()
        await self.approvals.arrears.aclose()
        self._home.close()
        await self._equipment.close_state()

    async def __aenter__(self) -> Self:
        await self._equipment.start()
        return self

    async def __aexit__(self, *raised: object) -> None:
        await self.aclose()


def _keep_beside(call: Invocation, carry: Any) -> None:
    if carry is not None:
        encoded_state(carry)
        call.beside().carry = carry
