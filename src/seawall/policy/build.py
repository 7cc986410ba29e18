"""From a policy to a chain: the only place that names all layers.

    ResultLimit ▶ EnvironmentGate ▶ RiskGate ▶ ArgumentCheck ▶ Fallback ▶ Cache ▶ RateLimit
        ▶ Bulkhead ▶ AdaptiveLimit ▶ Exclusive ▶ Ledger ▶ Retry ▶ Hedge ▶ Breaker ▶ Timeout
        ▶ executor

The first is outermost. What has nothing to do for a tool is not in its chain. In a turn, calls wait
for each other behind the argument check, where the gates end. Hooks stand around all of it.
"""

from __future__ import annotations

from copy import copy
from functools import partial
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from seawall.contract.errors import ConfigurationError, Fault
from seawall.contract.failure import FailureCode
from seawall.contract.policy import RunPolicy
from seawall.contract.result import ToolResult
from seawall.layers.adaptive_limit import AdaptiveLimit
from seawall.layers.admission import Admission
from seawall.layers.argument_check import ArgumentCheck
from seawall.layers.breaker import Breaker
from seawall.layers.bulkhead import Bulkhead
from seawall.layers.cache import Cache
from seawall.layers.environment_gate import EnvironmentGate
from seawall.layers.exclusive import Exclusive
from seawall.layers.fallback import Fallback
from seawall.layers.hedge import Hedge
from seawall.layers.ledger import Ledger
from seawall.layers.rate_limit import RateLimit
from seawall.layers.result_limit import ResultLimit
from seawall.layers.retry import Retry
from seawall.layers.risk_gate import Gate, RiskGate
from seawall.layers.timeout import Timeout
from seawall.pipeline.arguments.prepare import preparing
from seawall.pipeline.execute import executing
from seawall.pipeline.foreign import described, guarded_async
from seawall.pipeline.layer import Layer, LayerContext, LayerRecipe, compose
from seawall.pipeline.output import checking_output
from seawall.pipeline.recorder import surrounded, surrounding
from seawall.pipeline.route import Counting, Route
from seawall.pipeline.schemas import schemas_of
from seawall.pipeline.state import StateTable, deadlines_of
from seawall.pipeline.threads import Threads, Workers
from seawall.policy.circuits import SharedCircuits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from seawall.contract.tool import Tool
    from seawall.pipeline.arguments.prepare import Prepare
    from seawall.pipeline.chance import Chance
    from seawall.pipeline.clock import Clock
    from seawall.pipeline.digest import Digester
    from seawall.pipeline.invocation import Handler, Invocation
    from seawall.pipeline.recorder import Recorder
    from seawall.pipeline.schemas import Schemas
    from seawall.policy.model import Policies

LAYERS: tuple[LayerRecipe, ...] = (
    ResultLimit,
    EnvironmentGate,
    RiskGate,
    ArgumentCheck,
    Fallback,
    Cache,
    RateLimit,
    Bulkhead,
    AdaptiveLimit,
    Exclusive,
    Ledger,
    Retry,
    Hedge,
    Breaker,
    Timeout,
)
"""The default chain, outermost first."""

GATES = (EnvironmentGate, RiskGate, ArgumentCheck)
"""What decides whether a call may run at all; asked in the order of the calls in a turn."""

BY_NAME: Mapping[str, LayerRecipe] = {vars(layer)["name"]: layer for layer in LAYERS}
"""The layers by the name they have in policies, spans and docs."""

Given = LayerRecipe | Layer | str
"""A layer as a user may list it: a recipe such as `Retry`, an object of their own, or a name."""


def listed(layers: Iterable[Given] | None) -> tuple[LayerRecipe | Layer, ...]:
    """Read a user's list of layers; None is the default chain, an empty one no layer at all."""
    if layers is None:
        return LAYERS
    found: list[LayerRecipe | Layer] = []
    faults: list[Fault] = []
    for position, layer in enumerate(layers):
        if isinstance(layer, str) and layer in BY_NAME:
            found.append(BY_NAME[layer])
        elif not isinstance(layer, str) and (hasattr(layer, "for_tool") or _is_layer(layer)):
            found.append(layer)
        else:
            names = ", ".join(BY_NAME)
            faults.append(
                Fault(f"{layer!r} is no layer; known by name: {names}", f"layers[{position}]")
            )
    if faults:
        raise ConfigurationError(faults)
    return tuple(found)


def _is_layer(thing: object) -> bool:
    return callable(thing) and not isinstance(thing, type)


class Builder:
    """Makes routes. Holds what all tools of a pipeline share."""

    def __init__(
        self,
        *,
        policies: Policies,
        layers: Sequence[LayerRecipe | Layer],
        clock: Clock,
        chance: Chance,
        states: StateTable,
        recorders: Sequence[Recorder],
        digester: Digester,
        threads: Threads,
        parts: Mapping[type, Any],
        on_defect: str,
        schemas: Callable[[Tool], Schemas | None] = lambda _: None,
        around: Callable[[LayerContext, Handler], Handler] | None = None,
    ) -> None:
        self.policies = policies
        self._circuits = SharedCircuits(policies.explain)
        self._layers = layers
        self._clock = clock
        self._chance = chance
        self._states = states
        self._recorders = recorders
        self._surrounding = surrounding(recorders)
        self._digester = digester
        self._threads = threads
        self._parts = {**parts, type(digester): digester}
        self._on_defect = on_defect
        self._schemas = schemas
        self._around = around
        self._origin = clock.now()

    @property
    def layers(self) -> Sequence[LayerRecipe | Layer]:
        """What chains are made of."""
        return self._layers

    def trial(self, policies: Policies, parts: Mapping[type, Any]) -> Builder:
        """Give a builder for other policies that touches nothing of what layers remember."""
        other = copy(self)
        other.policies = policies
        other._circuits = SharedCircuits(policies.explain)  # noqa: SLF001  # it is one of us
        other._parts = {**self._parts, **parts}  # noqa: SLF001  # it is one of us
        other._states = StateTable()  # noqa: SLF001  # it is one of us
        return other

    def following(self, trial: Builder) -> Builder:
        """Give the builder that was tried, with what layers remember here."""
        other = copy(trial)
        other._states = self._states  # noqa: SLF001  # it is one of us
        return other

    def route(self, tool: Tool) -> Route:
        """Compose one tool's chain; raises `ConfigurationError` if its policy cannot work."""
        policy = self.policies.for_tool(tool)
        if Breaker in self._layers:
            self._circuits.join(tool, policy.breaker)
        counting = Counting(self._recorders, tool.name)
        schemas = self._compiled(tool, policy)
        prepare = self._preparing(tool, policy, schemas, counting.event)
        execute = self._executing(tool, policy, schemas, counting.event)
        plain = self._context(tool, policy, counting)
        limit = ResultLimit.for_tool(plain) if ResultLimit in self._layers else None
        return Route(
            tool,
            policy,
            prepare,
            self._whole(plain, execute),
            partial(self._bounded, tool, policy, counting, execute),
            counting,
            self._clock,
            self._digester,
            self._origin,
            None if limit is None else limit.cut,
            None if limit is None or limit.spill is None else limit.spilled,
            deadlines_of(self._states, self._clock, policy.deadline_s),
        )

    def _context(
        self, tool: Tool, policy: RunPolicy, counting: Counting, *, bounded: bool = False
    ) -> LayerContext:
        return LayerContext(
            tool,
            policy,
            self._clock,
            self._chance,
            self._states,
            counting.event,
            self._parts,
            bounded=bounded,
            widen=not self.policies.names_timeout(tool),
        )

    def _whole(self, context: LayerContext, execute: Handler) -> Handler:
        """Compose the chain with what stands around it."""
        handler = self._chain(context, execute)
        if self._around is not None:
            handler = self._around(context, handler)
        return surrounded(context.tool, handler, self._surrounding)

    def _bounded(
        self, tool: Tool, policy: RunPolicy, counting: Counting, execute: Handler
    ) -> Handler:
        """Compose the chain for calls that bring a limit of their own."""
        return self._whole(self._context(tool, policy, counting, bounded=True), execute)

    def books(self, tool: Tool) -> Route:
        """Give the books alone of a tool that cannot be called."""
        return Route(
            tool,
            RunPolicy(),
            lambda _: None,
            _not_callable,
            lambda: _not_callable,
            Counting(self._recorders, tool.name),
            self._clock,
            self._digester,
            self._origin,
            None,
        )

    def preparing(self, tool: Tool, policy: RunPolicy) -> Prepare:
        """Make what prepares the arguments of a tool, as its route does, counting nothing."""
        return self._preparing(tool, policy, self._compiled(tool, policy))

    def _preparing(
        self,
        tool: Tool,
        policy: RunPolicy,
        schemas: Schemas | None,
        count: Callable[[str, str], None] = lambda _layer, _event: None,
    ) -> Prepare:
        return preparing(
            tool,
            policy,
            checked=self._checks(policy),
            compiled=None if schemas is None else schemas.arguments,
            count=count,
        )

    def _executing(
        self,
        tool: Tool,
        policy: RunPolicy,
        schemas: Schemas | None,
        count: Callable[[str, str], None],
    ) -> Handler:
        """Make what runs the tool, and checks its output if that is wanted."""
        execute = executing(
            tool, self._clock, self._workers(tool, policy), on_defect=self._on_defect
        )
        if schemas is None or schemas.output is None or policy.output == "off":
            return execute
        warn = policy.output == "warn"
        return checking_output(tool, schemas.output, execute, warn=warn, count=count)

    def forget(self, name: str) -> None:
        """A tool is gone: it no longer has a say in what it shared."""
        self._circuits.leave(name)

    def _compiled(self, tool: Tool, policy: RunPolicy) -> Schemas | None:
        """Give the tool's schemas, if anything is to be checked; the registry has them already."""
        checks_output = policy.output != "off" and tool.output_schema is not None
        if ArgumentCheck not in self._layers or not (self._checks(policy) or checks_output):
            return None
        return self._schemas(tool) or schemas_of(tool)

    def _chain(self, context: LayerContext, execute: Handler) -> Handler:
        try:
            ordered = self._ordered(context.policy, bounded=context.bounded)
            if context.bounded:
                ordered = _with_admission(ordered)
            found = [_for_tool(layer, context) for layer in ordered]
        except ConfigurationError as error:
            raise ConfigurationError(
                [
                    Fault(fault.message, f"{context.tool.name}.{fault.key}", fault.file, fault.line)
                    for fault in error.faults
                ]
            ) from error
        layers = [
            layer if _is_ours(layer) else Guarded(layer) for layer in found if layer is not None
        ]
        handler = compose(layers, execute)
        if any(isinstance(layer, ArgumentCheck) for layer in layers):
            return handler
        return _parsing(handler)

    def _ordered(self, policy: RunPolicy, *, bounded: bool) -> Sequence[LayerRecipe | Layer]:
        """The layers in the policy's order: a breaker may stand outside of retry.

        With another tool for a fallback, the ledger stands around both: they are one effect.
        A call that brings a limit of its own is limited, whichever layers were listed.
        """
        breaker = policy.breaker
        # What comes back is cut outside of the chain, after hooks have seen it.
        layers = [layer for layer in self._layers if layer is not ResultLimit]
        if policy.fallback is not None and policy.fallback.tool is not None:
            _put_outside(layers, Ledger, Fallback)
        if bounded and Timeout not in layers:
            layers.append(Timeout)
        if breaker is not None and breaker.outside_retry:
            _put_outside(layers, Breaker, Retry)
        return layers

    def gate_of(self, route: Route, gate: Gate) -> RiskGate | None:
        """Make the risk gate of a tool, with somebody else to ask; None if it has none."""
        if RiskGate not in self._layers:
            return None
        context = LayerContext(
            route.tool,
            route.policy,
            self._clock,
            self._chance,
            self._states,
            route.count,
            {Gate: gate},
        )
        return RiskGate.for_tool(context)

    def _checks(self, policy: RunPolicy) -> bool:
        return policy.check_mode != "off" and ArgumentCheck in self._layers

    def _workers(self, tool: Tool, policy: RunPolicy) -> Callable[[], Workers]:
        slots = self._states.of_tool(tool.name)

        def workers() -> Workers:
            found = slots.slot("workers", lambda: Workers(self._threads, policy.max_threads))
            found.limit = policy.max_threads
            return found

        return workers


def _put_outside(layers: list[LayerRecipe | Layer], moved: LayerRecipe, other: LayerRecipe) -> None:
    if moved in layers and other in layers and layers.index(moved) > layers.index(other):
        layers.remove(moved)
        layers.insert(layers.index(other), moved)


def _with_admission(layers: Sequence[LayerRecipe | Layer]) -> Sequence[LayerRecipe | Layer]:
    end = max((place for place, layer in enumerate(layers, 1) if layer in GATES), default=0)
    return [*layers[:end], Admission(), *layers[end:]]


def _is_ours(layer: Layer) -> bool:
    return type(layer).__module__.startswith(_OURS)


_OURS = ("seawall.layers.", "seawall.orchestration.")
"""Where layers come from that raise nothing of their own."""


class Guarded:
    """A layer that somebody else wrote: what it raises is a refusal, not an exception."""

    def __init__(self, layer: Layer) -> None:
        self._layer = layer
        known = getattr(layer, "name", None) or getattr(layer, "__name__", None)
        self.name = str(known or type(layer).__name__)

    async def __call__(self, call: Invocation, proceed: Handler) -> ToolResult:
        """Run the layer; refuse if it raises, or gives what is no result."""
        result: Any = await guarded_async(
            f"layer {self.name!r} failed",
            lambda: self._layer(call, proceed),
            lambda error: self._failed(call, described(error)),
            passing=call.tool.control_flow,
        )
        if isinstance(result, ToolResult):
            return self._named(result)
        return self._failed(call, f"it gave {type(result).__name__} where a ToolResult is due")

    def _named(self, result: ToolResult) -> ToolResult:
        """Say who refused, where the layer itself did not."""
        failure = result.failure
        if failure is None or failure.layer:
            return result
        return replace(result, failure=replace(failure, layer=self.name))

    def _failed(self, call: Invocation, said: str) -> ToolResult:
        return call.refuse(
            FailureCode.PERMISSION_DENIED,
            f"the layer {self.name} failed: {said}",
            reason="gate_failed",
            layer=self.name,
            may_have_run=call.started,
        )


async def _not_callable(call: Invocation) -> ToolResult:
    raise RuntimeError(f"{call.tool.name} cannot be called")


def _for_tool(layer: LayerRecipe | Layer, context: LayerContext) -> Layer | None:
    # `isinstance` of a protocol would take longer than all of the chain.
    return layer.for_tool(context) if hasattr(layer, "for_tool") else layer


def _parsing(handler: Handler) -> Handler:
    """Arguments are parsed even where nothing checks them."""

    async def parse(call: Invocation) -> ToolResult:
        refusal = call.prepared()
        return await handler(call) if refusal is None else refusal

    return parse
