"""`seawall demo`: a scripted agent, real tools, a real and unreliable service, the main layers."""

from __future__ import annotations

import asyncio
import math
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from seawall.edges.cli.demo_report import report, write_report
from seawall.edges.cli.demo_script import PERSON, Turn, turns
from seawall.edges.cli.demo_script import Happening as Happens
from seawall.edges.cli.demo_service import HOST, ShopService
from seawall.edges.cli.demo_tools import Shop, demo_tools
from seawall.edges.cli.demo_view import JsonView, LineView
from seawall.edges.cli.demo_witness import Witness
from seawall.edges.cli.exits import Exit
from seawall.edges.cli.mcp_sources import McpChoice, connected, needs_servers
from seawall.edges.cli.paper import Paper
from seawall.edges.cli.sources import policies_from
from seawall.layers.environment import Environment
from seawall.layers.risk_questions import Answer
from seawall.orchestration.pipeline import Pipeline
from seawall.pipeline.chance import SystemChance
from seawall.pipeline.clock import SystemClock
from seawall.pipeline.session import Session
from seawall.policy.build import LAYERS
from seawall.registry.registry import Registry
from seawall.testing import Chaos
from seawall.toolkit.bundle import bundled

if TYPE_CHECKING:
    from seawall.contract.decision import Decision, Prepared
    from seawall.contract.result import ToolResult
    from seawall.edges.cli.demo_script import Ask
    from seawall.edges.cli.demo_witness import Audience
    from seawall.pipeline.clock import Clock

POLICY = Path(__file__).with_name("demo_policy.toml")

BUNDLED = (
    "time_now",
    "local_status",
    "calculate",
    "wait",
    "note_add",
    "note_search",
    "http_check",
)
PAUSE_S = 0.5
THINKING_S = 0.3
LONGEST_WAIT_MS = 3_000
"""However long the agent is told to wait, the demo is to end."""
MARGIN_MS = 20


class DemoOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What the command line said."""

    policy: str | None = None
    mcp: McpChoice = McpChoice()
    as_json: bool = False
    seed: int | None = None
    fast: bool = False
    chaos: bool = False


def demo(options: DemoOptions) -> Exit:
    """Run the demo; it failed if a layer was not seen acting."""
    needs_servers(options.mcp)
    return asyncio.run(_demo(options, Paper()))


async def _demo(options: DemoOptions, paper: Paper) -> Exit:
    clock = SystemClock()
    began = clock.now()
    audience: Audience = JsonView(paper) if options.as_json else LineView(paper)
    witness = Witness(audience)
    async with ShopService(clock, SystemChance(options.seed)) as service:
        stage = Stage(service, witness, audience, clock, options)
        async with stage.pipeline:
            await stage.play()
            if options.mcp:
                await _visit(options, audience)
            found = report(stage.pipeline, witness, service, stage.injected)
    if options.as_json:
        audience.show("report", **found)
        audience.show(
            "end",
            ok=not found["missing"],
            acted=[layer for layer in found["layers"] if layer not in found["missing"]],
            elapsed_s=round(clock.now() - began, 3),
        )
    else:
        write_report(found, paper)
    # With chaos the script takes another way: what counts is that every call came to a result.
    return Exit.TOOL_FAILED if found["missing"] and not options.chaos else Exit.OK


def _chaos(seed: int | None) -> Chaos:
    """Make faults for the tools that talk to the service, often enough to be seen."""
    return Chaos(
        SystemChance(seed).integer(0, 2**32),
        errors=0.15,
        crashes=0.1,
        hangs=0.1,
        latency=0.2,
        latency_s=(0.05, 0.3),
        tools=("weather", "inventory_lookup"),
    )


async def _visit(options: DemoOptions, audience: Audience) -> None:
    from seawall.edges.cli.demo_servers import visit  # noqa: PLC0415  # not without servers

    async with connected(options.mcp, Paper(sys.stderr), Registry()) as servers:
        await visit(servers, policies_from(options.policy), audience)


class Stage:
    """The agent, the person and the world around them."""

    def __init__(
        self,
        service: ShopService,
        witness: Witness,
        audience: Audience,
        clock: Clock,
        options: DemoOptions,
    ) -> None:
        self._service = service
        self._witness = witness
        self._audience = audience
        self._clock = clock
        self._pause_s = 0.0 if options.fast or options.as_json else PAUSE_S
        self._environment = Environment(clock.now)
        self._session = Session("demo", caller="agent")
        self._calls = 0
        self._told_to_wait_ms = 0
        registry = bundled(clock=clock, http_allow=[self._address])
        registry = registry.copy(excluding=set(registry.names()).difference(BUNDLED))
        for tool in demo_tools(Shop(HOST, service.port)):
            registry.register(tool)
        chaos = _chaos(options.seed) if options.chaos else None
        self.injected = Counter() if chaos is None else chaos.injected
        self.pipeline = Pipeline(
            registry,
            layers=None if chaos is None else [*LAYERS, chaos],
            policies=policies_from(options.policy or str(POLICY)),
            environment=self._environment,
            confirm=self._confirm,
            recorders=[witness],
            clock=clock,
            chance=SystemChance(options.seed),
        )

    @property
    def _address(self) -> str:
        return f"{HOST}:{self._service.port}"

    async def play(self) -> None:
        """Go through the script."""
        self._environment.set(
            "printer", value=False, repair="Ask somebody to switch the printer on."
        )
        self._audience.show("start", service=self._address, tools=len(self.pipeline.registry))
        for number, turn in enumerate(turns(self._address), 1):
            await self._clock.sleep(self._pause_s)
            self._audience.show("turn", turn=number, says=turn.says)
            await self._take(turn)

    async def _take(self, turn: Turn) -> None:
        if turn.before is not None:
            self._let_happen(turn.before)
        if turn.waits:
            await self._wait()
        self._told_to_wait_ms = 0
        if turn.together:
            await asyncio.gather(*map(self._call, turn.calls))
            return
        for ask in turn.calls:
            refused = await self._call(ask)
            tries = turn.patience
            while refused and tries:
                tries -= 1
                await self._wait()
                refused = await self._call(ask)

    async def _wait(self) -> None:
        """Wait as a model would: by a tool, and as long as the last answers said."""
        wait_ms, self._told_to_wait_ms = self._told_to_wait_ms + MARGIN_MS, 0
        await self._ask("wait", f'{{"duration_ms": {wait_ms}}}')

    def _let_happen(self, what: Happens) -> None:
        self._audience.show("happens", what=what.value)
        if what is Happens.PRINTER_ON:
            self._environment.set("printer", value=True)
        else:
            self._service.warehouse_is_up = what is Happens.WAREHOUSE_UP

    async def _call(self, ask: Ask) -> bool:
        """Make a call; true if its answer was to come back later."""
        result = await self._ask(ask.tool, ask.arguments)
        wait_s = None if result.failure is None else result.failure.retry_after_s
        if wait_s is None:
            return False
        told_ms = min(math.ceil(wait_s * 1000), LONGEST_WAIT_MS)
        self._told_to_wait_ms = max(self._told_to_wait_ms, told_ms)
        return True

    async def _ask(self, tool: str, arguments: str) -> ToolResult:
        self._calls += 1
        call_id = f"c{self._calls}"
        self._audience.show("call", call=call_id, tool=tool, arguments=arguments)
        result = await self.pipeline.call(tool, arguments, call_id=call_id, session=self._session)
        failure = result.failure
        self._audience.show(
            "result",
            call=call_id,
            tool=tool,
            ok=failure is None,
            code="" if failure is None else failure.code.value,
            reason="" if failure is None else failure.reason,
            layer="" if failure is None else failure.layer,
            message="" if failure is None else failure.message,
            retry_after_s=None if failure is None else failure.retry_after_s,
            hints=[] if failure is None else list(failure.hints),
            attempts=result.attempts,
            duration_ms=None if result.duration_ms is None else round(result.duration_ms, 3),
            text=result.render(),
        )
        return result

    async def _confirm(self, prepared: Prepared, decision: Decision) -> Answer:
        """Ask the demo's person, who thinks for a moment."""
        self._witness.asked(prepared.call_id)
        if prepared.mended:
            self._audience.show("mended", call=prepared.call_id, mended=list(prepared.mended))
        self._audience.show(
            "asked",
            call=prepared.call_id,
            tool=prepared.tool.name,
            reason=decision.reason,
            arguments=prepared.arguments,
        )
        await self._clock.sleep(THINKING_S)
        answer = PERSON.get(prepared.tool.name, Answer.DENY_ONCE)
        self._audience.show("answered", call=prepared.call_id, answer=answer.value)
        return answer
