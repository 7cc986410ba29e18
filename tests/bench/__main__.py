"""Measure the chain. `python -m tests.bench [--short] [--json FILE] [--check]`.

    ×T   median of the paired ratios to one `asyncio.timeout` block

`--check` fails if the full default chain costs more than 3 ×T, as long as that is so in three
runs out of three.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import platform
import sys
from pathlib import Path
from typing import Any

from tests.bench.measure import Case, Row, measured

from seawall import Annotations, BreakerPolicy, Pipeline, Policies, RunPolicy, Tool

BOUND = 3.0

POLICY = RunPolicy(
    timeout_s=30,
    max_retries=1,
    base_delay_s=0.4,
    rate="1000000000/minute",  # nothing is refused
    breaker=BreakerPolicy(),
)

FLAT = {
    "type": "object",
    "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
    "required": ["a", "b"],
}

NESTED = {
    "type": "object",
    "properties": {
        **{f"text_{n}": {"type": "string", "maxLength": 100} for n in range(4)},
        **{f"number_{n}": {"type": "integer", "minimum": 0} for n in range(4)},
        "kind": {"enum": ["fast", "deep"]},
        "flags": {"type": "array", "items": {"type": "string"}, "maxItems": 8},
        "inside": {
            "type": "object",
            "properties": {"x": {"type": "number"}, "y": {"type": "number"}},
            "required": ["x", "y"],
        },
        "all": {"type": "boolean"},
    },
    "required": ["text_0", "number_0", "inside"],
}

FLAT_GIVEN: dict[str, Any] = {"a": 1, "b": 2}
NESTED_GIVEN: dict[str, Any] = {
    **{f"text_{n}": "some words" for n in range(4)},
    **{f"number_{n}": n for n in range(4)},
    "kind": "fast",
    "flags": ["one", "two"],
    "inside": {"x": 1.5, "y": 2.5},
    "all": True,
}


async def answer(arguments: dict[str, Any], context: Any) -> str:
    return "ok"


def answer_sync(arguments: dict[str, Any], context: Any) -> str:
    return "ok"


def a_tool(name: str, schema: dict[str, Any], executor: Any = answer) -> Tool:
    return Tool(name, "Answers.", schema, executor, annotations=Annotations.for_reading())


def cases() -> dict[str, Case]:
    tools = [
        a_tool("flat", FLAT),
        a_tool("nested", NESTED),
        a_tool("sync", FLAT, answer_sync),
    ]
    full = Pipeline(tools, policies=Policies(default=POLICY))
    bare = Pipeline(tools, layers=[])

    def calling(pipeline: Pipeline, name: str, given: Any) -> Case:
        async def run(times: int) -> None:
            call = pipeline.call
            for _ in range(times):
                await call(name, given)

        return run

    found = {
        "full chain, 2 fields, mapping": calling(full, "flat", FLAT_GIVEN),
        "full chain, 2 fields, JSON text": calling(full, "flat", json.dumps(FLAT_GIVEN)),
        "full chain, 12 fields, mapping": calling(full, "nested", NESTED_GIVEN),
        "full chain, 12 fields, JSON text": calling(full, "nested", json.dumps(NESTED_GIVEN)),
        "full chain, sync tool": calling(full, "sync", FLAT_GIVEN),
        "no layers": calling(bare, "flat", FLAT_GIVEN),
    }
    for name in ("argument_check", "rate_limit", "retry", "breaker", "timeout", "risk_gate"):
        alone = Pipeline(tools, policies=Policies(default=POLICY), layers=[name])
        found[f"{name} alone"] = calling(alone, "flat", FLAT_GIVEN)
    found["to_thread"] = to_thread
    found["bare await"] = bare_await
    return found


async def bare_await(times: int) -> None:
    for _ in range(times):
        await answer(FLAT_GIVEN, None)


async def to_thread(times: int) -> None:
    for _ in range(times):
        await asyncio.to_thread(answer_sync, FLAT_GIVEN, None)


async def timeout_block(times: int) -> None:
    for _ in range(times):
        async with asyncio.timeout(30):
            await answer(FLAT_GIVEN, None)


def table(rows: list[Row]) -> str:
    lines = [
        f"CPython {platform.python_version()}; ×T is relative to one asyncio.timeout block",
        "",
        f"{'case':36} {'min µs':>8} {'median µs':>10} {'×T':>7} {'min':>6} {'max':>7}",
    ]
    lines.extend(
        f"{row.name:36} {row.min_us:8.2f} {row.median_us:10.2f} {row.ratio:7.2f}"
        f" {row.ratio_min:6.2f} {row.ratio_max:7.2f}"
        for row in rows
    )
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench")
    parser.add_argument("--short", action="store_true", help="fewer rounds, and check the bound")
    parser.add_argument("--check", action="store_true", help="fail above the bound")
    parser.add_argument("--json", type=Path, help="write the rows to a file")
    options = parser.parse_args()
    rounds = 15 if options.short else 45

    rows = asyncio.run(measured(cases(), timeout_block, rounds=rounds))
    print(table(rows))  # noqa: T201  # what the command is for
    if options.json:
        options.json.write_text(json.dumps([row._asdict() for row in rows], indent=2) + "\n")
    if not (options.short or options.check):
        return 0
    full = "full chain, 2 fields, mapping"
    ratios = [next(row.ratio for row in rows if row.name == full)]
    while ratios[-1] > BOUND and len(ratios) < 3:
        again = asyncio.run(measured({full: cases()[full]}, timeout_block, rounds=rounds))
        ratios.append(again[0].ratio)
    if min(ratios) > BOUND:
        print(f"{full}: {ratios} ×T, above {BOUND} in three runs of three")  # noqa: T201  # as above
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
