"""Put one schema and one set of arguments through everything, and say what went wrong."""

from __future__ import annotations

import asyncio
import gc
import json
import time
from typing import Any, NamedTuple

import msgspec

from seawall import ConfigurationError, FailureCode, Pipeline, Policies, RunPolicy, Session, Tool
from seawall.pipeline.arguments.prepare import preparing
from seawall.pipeline.clock import SystemClock
from seawall.pipeline.invocation import Invocation

MODES = ("careful", "lenient", "off")
MOST_S = 0.1
LONGEST_ANSWER = 100_000
_USUAL = (FailureCode.INVALID_ARGUMENT,)


class Case(NamedTuple):
    """What is tried."""

    schema: Any
    given: Any


class Trouble(NamedTuple):
    """What was found: an escape, or CPU seconds beyond the bound."""

    kind: str
    where: str
    said: str


class Probe:
    """Tries cases. Keeps one event loop, as a real program does."""

    def __init__(self, most_s: float = MOST_S) -> None:
        self._most_s = most_s
        self._loop = asyncio.new_event_loop()
        self._session = Session()
        self._clock = SystemClock()
        self.slowest_s = 0.0
        self.refused_schemas = 0

    def close(self) -> None:
        """Close the loop."""
        self._loop.close()

    def trouble(self, case: Case) -> Trouble | None:
        """Try a case in all modes and through the pipeline."""
        tool = Tool("fuzzed", "Fuzzed.", case.schema, _echo)
        for mode in MODES:
            found = self._try(f"prepare {mode}", lambda mode=mode: self._prepared(tool, case, mode))
            if found is not None:
                return found
        return self._try("pipeline", lambda: self._called(tool, case))

    def _try(self, where: str, attempt: Any) -> Trouble | None:
        best = float("inf")
        for _ in range(4):
            try:
                took = attempt()
            except ConfigurationError:
                self.refused_schemas += 1
                return None
            except Exception as error:  # noqa: BLE001  # finding these is what it is for
                return Trouble("escape", where, f"{type(error).__name__}: {error}"[:500])
            best = min(best, took)
            if best < self._most_s:
                break
            gc.collect()
        self.slowest_s = max(self.slowest_s, best)
        return Trouble("slow", where, f"{best:.3f} s") if best >= self._most_s else None

    def _prepared(self, tool: Tool, case: Case, mode: Any) -> float:
        policy = RunPolicy(coercion=mode)
        prepare = preparing(tool, policy)
        before = _shape(case.given)
        call = Invocation(tool, policy, prepare, case.given, "c", self._session, 0.0)
        begun = time.process_time()
        refusal = call.prepared()
        took = time.process_time() - begun
        assert _shape(case.given) == before, "the arguments that were given have changed"
        assert len(call.mended) <= 200, "endless notes"
        if refusal is None:
            _strict(call.arguments)
        else:
            failure = refusal.failure
            assert failure is not None
            assert failure.code in _USUAL, f"refused with {failure.code}"
            assert failure.may_have_run is False
            assert len(refusal.render()) < LONGEST_ANSWER, "an endless answer"
            assert len(failure.issues) <= 100, "endless issues"
            refusal.render().encode()
            msgspec.json.encode(failure)
        return took

    def _called(self, tool: Tool, case: Case) -> float:
        policies = Policies(default=RunPolicy())
        pipeline = Pipeline([tool], policies=policies, clock=self._clock)
        begun = time.process_time()
        result = self._loop.run_until_complete(pipeline.call("fuzzed", case.given))
        took = time.process_time() - begun
        assert result.tool == "fuzzed"
        result.render().encode()
        (span,) = pipeline.trace.spans()
        msgspec.json.encode(span)
        return took


async def _echo(arguments: dict[str, Any], context: Any) -> str:
    return "ok"


def _strict(arguments: Any) -> None:
    assert type(arguments) is dict, "arguments that are no object"
    json.dumps(arguments, allow_nan=False).encode()
    json.dumps(arguments, ensure_ascii=False).encode()


def _shape(given: Any) -> Any:
    """As much of the arguments as shows a change, in little time."""
    if isinstance(given, str):
        return len(given)
    try:
        text = repr(given) if not _is_big(given) else ""
    except RecursionError:
        return None
    return text


def _is_big(given: Any) -> bool:
    left = 500
    waiting = [given]
    while waiting and left > 0:
        item = waiting.pop()
        left -= 1
        if isinstance(item, dict):
            left -= len(item)
            waiting += list(item.values())[:500]
        elif isinstance(item, (list, tuple)):
            left -= len(item)
            waiting += item[:500]
        elif isinstance(item, str):
            left -= len(item) // 100
    return left <= 0
