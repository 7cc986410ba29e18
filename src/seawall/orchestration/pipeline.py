"""The front door: every call of a tool goes through here and comes back as a result."""

from __future__ import annotations

import itertools
import weakref
from asyncio import get_running_loop as running_loop
from collections.abc import Iterable
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, Literal, Self

from msgspec.structs import replace

from seawall.contract.decision import Action, Decision
from seawall.contract.errors import ConfigurationError, Fault
from seawall.contract.failure import FailureCode
from seawall.contract.result import ToolResult
from seawall.layers.breaker.shared import close_fleet, start_fleet
from seawall.layers.environment import Environment
from seawall.layers.ledger import EffectLedger
from seawall.layers.result_spill import SpillStore
from seawall.layers.risk_gate import Gate, RiskGate
from seawall.layers.risk_policies import AllowlistPolicy, CallPolicy
from seawall.layers.risk_rules import RuledPolicy
from seawall.orchestration.approvals.desk import Approvals
from seawall.orchestration.approvals.grounds import Grounds
from seawall.orchestration.approvals.kept import encoded_state
from seawall.orchestration.approvals.later import Later
from seawall.orchestration.approvals.resuming import Resuming
from seawall.orchestration.calls import members_of
from seawall.orchestration.front import RowDoors
from seawall.orchestration.given import (
    check_given,
    check_limits,
    check_policies,
    check_session,
)
from seawall.orchestration.home import Home
from seawall.orchestration.hooked import Hooks
from seawall.orchestration.loop import LoopDetector
from seawall.orchestration.loop_policy import BY_SESSION, LoopPolicy, chosen
from seawall.orchestration.progress import Reports
from seawall.orchestration.result_read import offer_result_read
from seawall.orchestration.sharing import parts_of, shared_by
from seawall.orchestration.status import Breakers, gauges
from seawall.orchestration.turn import Doors, Turn
from seawall.orchestration.unknown import no_such_tool, quarantined
from seawall.pipeline.chance import Chance, SystemChance
from seawall.pipeline.clock import Clock, Deadlines, Limit, SystemClock
from seawall.pipeline.collecting import uncollected
from seawall.pipeline.context import MAX_DEPTH
from seawall.pipeline.digest import Digester
from seawall.pipeline.foreign import attempted, told
from seawall.pipeline.invocation import Handler, Invocation, Progress
from seawall.pipeline.session import OneCall, Session
from seawall.pipeline.state import StateTable
from seawall.pipeline.threads import Threads, depth
from seawall.policy.build import Builder, Given, listed
from seawall.policy.model import Policies
from seawall.recording.audit import Audit
from seawall.recording.metrics import Metrics
from seawall.recording.trace import TraceRecorder
from seawall.recording.usage import UsageTracker
from seawall.registry.registry import Registry
from seawall.registry.wrapping import wrap
from seawall.stores.opening import open_state

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from contextlib import AbstractContextManager

    from seawall.contract.annotations import Risk
    from seawall.contract.decision import Prepared
    from seawall.contract.tool import Tool, ToolCall
    from seawall.contract.turn import TurnEvent, TurnOutcome, TurnStatus
    from seawall.orchestration.approvals.settings import ApprovalSettings
    from seawall.orchestration.hooks import Hook
    from seawall.pipeline.recorder import Recorder
    from seawall.pipeline.route import Route
    from seawall.recording.gauges import Gauge
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
        self.clock = clock or SystemClock()
        self._now = self.clock.now
        self.policies = policies or Policies.default()
        self.environment = environment or Environment(self.clock.now)
        # An empty recorder is a false one, so each is compared with None.
        self.trace = _trace(self.policies, self.clock) if trace is None else trace
        self.usage = UsageTracker(self.clock) if usage is None else usage
        self.metrics = Metrics() if metrics is None else metrics
        self.states = StateTable()
        self._own_state = isinstance(state, str)
        self.state = open_state(state, clock=self.clock) if isinstance(state, str) else state
        if digest_key is None and self.state is not None:
            digest_key = self.state.digest_key
        self.digester = Digester(digest_key)
        self.breakers = Breakers(self)
        self._chance = chance or SystemChance()
        self.shared, self._owns_shared = shared_by(shared, self.policies, self.clock)
        self._threads = Threads()
        self._home = Home(self._forget_loop)
        self._session = Session()
        self._on_progress = on_progress
        self._recorders: tuple[Recorder, ...] = (
            self.trace,
            self.usage,
            self.metrics,
            *recorders,
        )
        self._audit = self._made_audit()
        if self._audit is not None:
            self._recorders += (self._audit,)
        self._numbers = itertools.count(1)
        self._prefix = self._chance.token(4)
        around = Hooks(hooks)
        self.approvals = Approvals(
            approvals,
            self.clock,
            self._chance,
            state=self.state,
            listeners=around.on_approval,
            risk_of=self._risk_of,
        )
        self._later = Later(self.approvals) if self.approvals.enabled else None
        self._own_gate = risk is not None
        self._confirm = confirm
        self._gate = (
            replace(risk, later=self._later)
            if isinstance(risk, Gate)
            else self._made_gate(risk, confirm, self.policies)
        )
        self._builder = Builder(
            policies=self.policies,
            layers=listed(layers),
            clock=self.clock,
            chance=self._chance,
            states=self.states,
            recorders=self._recorders,
            digester=self.digester,
            threads=self._threads,
            parts={
                Environment: self.environment,
                Gate: self._gate,
                **self._stores(),
                **parts_of(self.shared, self.policies),
            },
            on_defect=on_defect,
            schemas=self.registry.schemas,
            around=around.around if around else None,
        )
        self._hooked = bool(around)
        self._loop = loop
        self._watch_for_loops(self.policies)
        self._routes: dict[str, Route] = {}
        self._set_aside: dict[str, Route] = {}
        """Books of quarantined tools that were called; never more than there are such tools."""
        self._doors = Doors(
            self.clock,
            self.loop_detector,
            _width(max_turn_width),
            self._routes.get,
            self._invocation,
            self._run_in_turn,
            self._unknown_in_turn,
            self.approvals if self.approvals.enabled else None,
        )
        grounds = Grounds(
            self._doors,
            lambda: self._gate,
            RiskGate in self._builder.layers,
            self._builder.preparing,
            self.new_key,
            self._ending,
        )
        self._resuming = Resuming(grounds, self.approvals)
        self._take_all()
        self.registry.watch(self)
        self._offer_result_read()
        self._unwatch = _watched(self, self._gauges, self.metrics)

    def _watch_for_loops(self, policies: Policies) -> None:
        policy = chosen(self._loop, policies.loop)
        self.loop_detector = (
            None if policy is None else LoopDetector(policy, self.clock, self.metrics.loop_stopped)
        )
        of_all = policy is not None and policy.scope == "all"
        self._loop_of_all = self.loop_detector if of_all else None

    def _made_audit(self) -> Audit | None:
        if self.state is None:
            return None
        settings = self.policies.audit
        audit = Audit(
            self.state.audit,
            self.clock,
            calls=settings.calls,
            wait=settings.wait,
            failed=self.metrics.audit_failed,
        )
        self.state.serves(audit)
        return audit

    def _stores(self) -> dict[type, Any]:
        """What layers need of the state, by the protocols that they declare."""
        if self.state is None:
            return {}
        stores = {EffectLedger: self.state.ledger, SpillStore: self.state.spills}
        return {kind: store for kind, store in stores.items() if store is not None}

    def _made_gate(
        self,
        policy: CallPolicy | None,
        confirm: Callable[..., Any] | None,
        policies: Policies,
    ) -> Gate:
        policy = policies.risk.policy() if policy is None else policy
        return Gate(policy=policy, confirm=confirm, later=self._later)

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
            call_id = _id_of(call_id) or self._new_id()
        if session is None:
            session, watch = self._session, self._loop_of_all
        else:
            if session.__class__ is not Session:
                check_session(session)
            watch = None if session.__class__ is OneCall else self.loop_detector
        route = self._routes.get(name) if isinstance(name, str) else None
        if route is None and (route := self._declared(name)) is None:
            return self._unknown(name, arguments, call_id, session, watch)
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

    def _ending(
        self, turn_id: str, session: Session
    ) -> AbstractContextManager[Callable[[TurnStatus, str], object]]:
        if self._audit is None:
            return nullcontext(lambda _status, _reason: None)
        return self._audit.turn(turn_id, session.id, session.caller)

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

    def _declared(self, name: Any) -> Route | None:
        """Find the chain of a tool by the name under which a provider knows it."""
        own = self.registry.own_name(name) if isinstance(name, str) else None
        return None if own is None else self._routes.get(own)

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
            lambda: f"batch-{self._chance.token(8)}",
            self._routes.get,
            lambda name, session: self._not_callable(name, None, session),
            self._invocation_in_a_row,
            self._run,
            lambda: self._gate,
            self._gate_with,
            self.registry.own_name,
        )

    def _gate_with(self, route: Route, gate: Gate) -> RiskGate | None:
        return self._builder.gate_of(route, gate)  # of now: policies may be replaced

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
            return self._not_callable(asked.name, call_id, session, asked.arguments, instead)
        return self._unknown(asked.name, asked.arguments, call_id, session, self.loop_detector)

    async def _run(
        self,
        route: Route,
        call: Invocation,
        timeout_s: float | None,
        deadline_s: float | None,
        watch: LoopDetector | None = None,
    ) -> ToolResult:
        recent = call.session.recent
        if recent is not None and recent.hot and watch is not None:
            refusal = watch.refusal(call, route.digest, route.count)
            if refusal is not None:
                return await self._audited(route, call, refusal)
        if deadline_s is None:
            deadline_s = route.policy.deadline_s
        calls = route.calls
        calls.count += 1
        try:
            if timeout_s is None and deadline_s is None and call.aside is None:
                result = await route.handle(call)
            else:
                result = await self._within(route, call, timeout_s, deadline_s)
        except BaseException as error:
            route.broken_off(call, error)
            raise
        finally:
            calls.count -= 1
        if watch is not None:
            result = watch.seen(call, result, route.digest(call))
        if self._audit is not None:
            return await self._audited(route, call, result)
        return route.finish(call, result)

    async def _audited(self, route: Route, call: Invocation, result: ToolResult) -> ToolResult:
        """Close the books of a call, and wait for the entry if it is one to be waited for."""
        try:
            result = await route.spilled(call, result)
            if self._audit is not None and self._audit.due:
                await self._audit.settle()
        except BaseException:
            if call.aside is not None:
                call.aside.lost()
            raise
        return result

    async def _within(
        self, route: Route, call: Invocation, timeout_s: float | None, deadline_s: float | None
    ) -> ToolResult:
        """Run in a turn, under limits of the caller's, or under the policy's deadline."""
        call.timeout_s = timeout_s
        handle: Handler = route.with_limits()
        if deadline_s is None:
            return await handle(call)
        call.deadline = call.arrived + deadline_s
        shared = route.deadlines if deadline_s == route.policy.deadline_s else None
        limit = _Deadline(self.clock, deadline_s, call, shared)
        if call.aside is not None:
            call.aside.limit = limit
        with limit:
            return await handle(call)
        if call.aside is not None:
            call.aside.lost()
        return call.refuse(
            FailureCode.TIMEOUT,
            f"{call.tool.name} was not answered within the {deadline_s:g} s for the whole call",
            reason="deadline_exceeded",
            layer="pipeline",
            may_have_run=call.started,
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
        if route is None and (route := self._declared(name)) is None:
            return self._refused(name, "", session or self._session)
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
            return _too_deep(name)
        return self._home.run(lambda: self.call(name, arguments, **options))

    def replace_policies(self, policies: Policies) -> None:
        """Take new policies, all or none. Calls that run go on under the old ones.

        Buckets and circuits go on with what they hold, `[risk]` and `[loop]` count unless `risk`
        or `loop` was given, `[trace]` only where a pipeline is made. Raises `ConfigurationError`,
        and changes nothing, if any tool's new policy cannot work.
        """
        check_policies(policies)
        gate = self._gate if self._own_gate else self._made_gate(None, self._confirm, policies)
        present = tuple(self._routes.items())
        trial = self._builder.trial(policies, {Gate: gate})
        with uncollected():
            for _, route in present:
                trial.route(route.tool)
        self.policies = policies
        self._gate = gate
        self._watch_for_loops(policies)
        self._doors = self._doors._replace(loop=self.loop_detector)
        self._builder = self._builder.following(trial)
        for name, route in present:
            if self._routes.get(name) is route:
                replaced = self._routes[name] = self._builder.route(route.tool)
                replaced.calls = route.calls  # those that go on are still under way
        self._offer_result_read()

    def policy_of(self, name: str) -> Any:
        """The policy under which a tool runs now, or None for a name that cannot be called."""
        route = self._routes.get(name)
        return None if route is None else route.policy

    def decision_for(self, tool: Tool) -> Decision:
        """Tell what the gate makes of a tool's calls, before any session or argument is known."""
        policy = self.policy_of(tool.name)
        if policy is not None and policy.gate_mode != "on":
            return Decision(Action.ALLOW, f"the gate is {policy.gate_mode}")
        for_tool = getattr(self._gate.policy, "for_tool", None)
        if for_tool is None:
            return Decision(Action.ASK, "it depends on the call")
        found: Decision = for_tool(tool)
        return found

    def tool_added(self, tool: Tool) -> None:
        """Compose the chain of a tool that comes in; called by the registry."""
        if self._take(tool).spill is not None:
            self._offer_result_read()

    def _take_all(self) -> None:
        with uncollected():
            for tool in self.registry:
                if self.registry.quarantine_reason(tool.name) is None:
                    self._take(tool)

    def _take(self, tool: Tool) -> Route:
        route = self._routes[tool.name] = self._builder.route(tool)
        self._set_aside.pop(tool.name, None)
        return route

    def _offer_result_read(self) -> None:
        """Let models read what is kept of cut results, if any is."""
        if any(route.spill is not None for route in self._routes.values()):
            offer_result_read(self.registry)

    def tool_removed(self, name: str) -> None:
        """Forget the chain of a tool that went; its bucket and circuit are set aside."""
        self._routes.pop(name, None)
        self._builder.forget(name)
        self.states.retire(name)
        self.usage.forget(name)
        self.metrics.forget(name)

    def new_key(self) -> str:
        """Draw an idempotency key."""
        return self._chance.token(16)

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
            return _too_deep(name)
        self._home.enter()
        route = self._routes.get(name) if isinstance(name, str) else None
        if route is None and (route := self._declared(name)) is None:
            return self._not_callable(name, None, outer.session)
        call = self._invocation_in_a_row(route, arguments, outer.session, outer)
        call.idempotency_key = idempotency_key
        left = None if outer.deadline is None else outer.deadline - self.clock.now()
        return await self._run(route, call, None, left if left is None else max(left, 0.001))

    def _risk_of(self, tool: Tool) -> Risk:
        policy = self._gate.policy
        return policy.risk_of(tool) if isinstance(policy, RuledPolicy) else tool.effective_risk

    def _usable(self, session: Session) -> Callable[[str], bool]:
        """Which names may be hinted at: none that session or policy deny, or that is set aside."""
        policy = self._gate.policy
        below = policy.base if isinstance(policy, RuledPolicy) else policy
        listed = below if isinstance(below, AllowlistPolicy) else None

        def usable(name: str) -> bool:
            standing = session.permissions.decision(name)
            route = self._routes.get(name)
            if route is None or (standing is not None and standing.action is Action.DENY):
                return False
            return listed is None or listed.for_tool(route.tool).action is not Action.DENY

        return usable

    def _unknown(
        self,
        name: str,
        arguments: Any,
        call_id: str | None,
        session: Session,
        watch: LoopDetector | None,
    ) -> ToolResult:
        refusal = self._not_callable(name, call_id, session, arguments)
        if watch is None:
            return refusal
        digest = self.digester.of_any(f"unknown {refusal.tool}", arguments)
        return watch.unknown(session, refusal.tool, digest, refusal)

    def _not_callable(
        self,
        name: str,
        call_id: str | None,
        session: Session,
        arguments: Any = None,
        instead: ToolResult | None = None,
    ) -> ToolResult:
        """Answer, and keep it in the books; `instead` is what to say, for other reasons."""
        call_id = call_id or self._new_id()
        reason = self.registry.quarantine_reason(name) if isinstance(name, str) else None
        tool = None if reason is None else self.registry.get(name)
        if tool is not None:
            route = self._route_set_aside(tool)
            call = self._invocation(route, arguments, call_id, session)
            call.refusal = instead or quarantined(name, reason or "", call_id)
            return route.finish(call, call.refusal)
        refusal = self._refused(name, call_id, session) if instead is None else instead
        failure = refusal.failure
        if failure is not None and instead is None:
            self.metrics.suggested(near=bool(failure.hints))
        for recorder in self._recorders:
            told((recorder.unknown,))
        return refusal

    def _route_set_aside(self, tool: Tool) -> Route:
        """Give the books of a quarantined tool; those of tools that are it no longer go."""
        route = self._set_aside.get(tool.name)
        if route is None or route.tool is not tool:
            aside = self.registry.quarantined()
            for name in [name for name in self._set_aside if name not in aside]:
                self._forget_counts(self._set_aside.pop(name).tool.name)
            route = self._set_aside[tool.name] = self._builder.books(tool)
        return route

    def _forget_counts(self, name: str) -> None:
        if name not in self._routes:
            self.usage.forget(name)
            self.metrics.forget(name)

    def _refused(self, name: str, call_id: str, session: Session) -> ToolResult:
        reason = self.registry.quarantine_reason(name) if isinstance(name, str) else None
        if reason is not None:
            return quarantined(name, reason, call_id)
        return no_such_tool(self.registry, name, call_id, allowed=self._usable(session))

    def _gauges(self) -> Iterable[Gauge]:
        return gauges(self._routes, self.states, self._threads, self.metrics.label)

    def _forget_loop(self) -> None:
        """Take back what calls of a loop that is gone, or left behind by a fork, still hold."""
        self.states.forget_loop()
        self._threads.forget_loop()
        for route in tuple(self._routes.values()):
            route.forget_loop()
        if self._audit is not None:
            self._audit.forget_loop()
        if self.shared is not None:
            self.shared.forget_loop()

    async def aclose(self) -> None:
        """End idle threads and the loop of `call_sync`, if there is one; give no more gauges.

        Who waits in `call_sync` meanwhile gets a `RuntimeError`. A state or a shared store is
        closed if it was given as a URL; one that was opened before stays open.
        """
        if self.shared is not None:
            await self._home.finish(self._close_shared)
        self._unwatch()
        self._threads.close()
        await self.approvals.arrears.aclose()
        self._home.close()
        if self._audit is not None:
            await self._audit.aclose()
        if self._own_state and self.state is not None:
            await self.state.aclose()

    async def _close_shared(self) -> None:
        await close_fleet(self.states)
        if self._owns_shared and self.shared is not None:
            await self.shared.aclose()

    async def __aenter__(self) -> Self:
        if self._own_state and self.state is not None:
            await self.state.start()
        if self.shared is not None:
            await self.shared.start()
            await start_fleet(self.states)
        return self

    async def __aexit__(self, *raised: object) -> None:
        await self.aclose()


def _watched(
    pipeline: Pipeline, read: Callable[[], Iterable[Gauge]], metrics: Metrics
) -> Callable[[], Any]:
    """Give a pipeline's gauges until it is collected, or until what is returned is called."""
    found = weakref.WeakMethod(read)

    def source() -> Iterable[Gauge]:
        read_now = found()
        return () if read_now is None else read_now()

    approvals = weakref.ref(pipeline.approvals)

    def backlog() -> tuple[int, float]:
        desk = approvals()
        return (0, 0.0) if desk is None else desk.backlog()

    def end() -> None:
        metrics.unwatch(source)
        metrics.unwatch_approvals(backlog)

    metrics.watch(source)
    metrics.watch_approvals(backlog)
    finalizer = weakref.finalize(pipeline, end)
    finalizer.atexit = False
    return finalizer


def _too_deep(name: str) -> ToolResult:
    return ToolResult.failed(
        FailureCode.PERMISSION_DENIED,
        f"tools may call tools {MAX_DEPTH} deep, and this call would be deeper",
        reason="denied_by_policy",
        layer="pipeline",
        tool=name,
        may_have_run=False,
    )


def _trace(policies: Policies, clock: Clock) -> TraceRecorder:
    capacity = policies.trace.capacity
    if capacity is None:
        return TraceRecorder(clock=clock)
    return TraceRecorder(capacity, clock=clock)


_AT_LEAST_S = 0.05
"""Seconds until a deadline looks again whether an attempt that outlived it has ended."""


class _Deadline(Limit):
    """Cuts gates and waits short; an attempt that runs is cut by its own layer, with a grace."""

    __slots__ = ("_call", "_paused")

    def __init__(
        self, clock: Clock, seconds: float, call: Invocation, shared: Deadlines | None
    ) -> None:
        super().__init__(clock, seconds, shared)
        self._call = call
        self._paused = 0.0

    def expire(self) -> None:
        call = self._call
        if not call.live:
            super().expire()
            return
        # What comes after the attempt, such as a hook, is cut too if it takes as long again.
        again_s = max(call.policy.grace_s, _AT_LEAST_S)
        self._timer = self._clock.call_later(again_s, self.expire)

    def pause(self) -> None:
        """Let no time pass while a turn holds the call for reasons that are not its own."""
        self.stop()
        self._paused = self._clock.now()

    def resume(self) -> None:
        """Go on, with as much time left as there was."""
        now = self._clock.now()
        if self._call.deadline is not None and not self.expired:
            self._call.deadline += now - self._paused
            self._timer = self._clock.call_later(max(self._call.deadline - now, 0), self.expire)


def _keep_beside(call: Invocation, carry: Any) -> None:
    if carry is not None:
        encoded_state(carry)
        call.beside().carry = carry


def _id_of(given: Any) -> str:
    """Make a text of a call id that is none; empty, so that one is drawn, if that cannot be."""
    return "" if given is None else attempted(lambda: str.__getitem__(str(given), slice(200)), "")


def _width(width: int) -> int:
    if isinstance(width, bool) or not isinstance(width, int) or width < 1:
        said = f"must be a whole number, at least 1 (got {width!r})"
        raise ConfigurationError([Fault(said, key="max_turn_width")])
    return width
