"""Measure a replay. `python -m tests.bench.replay [SPANS]`.

Writes a trace of so many calls (1,000,000) of twenty tools over a day, one in a hundred of which
fails, and runs `seawall policy simulate` on it: reading, simulating and reporting, as a user would.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import msgspec

from seawall.contract.span import Digest, Outcome
from seawall.recording.trace_file import About, CallLine, Head, SpanLine

DAY_S = 86_400.0
TOOLS = 20


def write_trace(path: Path, spans: int) -> None:
    """Write a day of calls."""
    chance, at = random.Random(1), 0.0
    encode = msgspec.json.Encoder().encode
    with path.open("wb") as file:

        def put(line: msgspec.Struct) -> None:
            file.write(encode(line) + b"\n")

        put(Head(1, 0.0))
        for number in range(TOOLS):
            put(About(f"tool{number}", {"read_only": True}))
        for number in range(spans):
            at += chance.expovariate(spans / DAY_S)
            tool, took_ms = f"tool{chance.randrange(TOOLS)}", chance.expovariate(1 / 200)
            failed = chance.random() < 0.01
            outcome = Outcome.FAILED if failed else Outcome.SUCCESS
            reason = "tool_failed" if failed else ""
            put(
                SpanLine(
                    f"{number:x}",
                    tool,
                    1,
                    at,
                    took_ms,
                    outcome,
                    reason,
                    Digest(40, 36, f"{number:032x}"),
                    offset_s=at,
                    queue_ms=0.04,
                    health="infrastructure" if failed else "",
                    rated_ms=0.02,
                )
            )
            layer = "executor" if failed else ""
            put(CallLine(f"{number:x}", tool, outcome, reason, layer, took_ms, 1, "a" * 32))


def main() -> None:
    """Write, run, and tell how long it took."""
    spans = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "day.jsonl"
        write_trace(trace, spans)
        command = [sys.executable, "-m", "seawall", "policy", "simulate"]
        began = time.monotonic()
        subprocess.run([*command, "--trace", str(trace), "--policy", "default"], check=True)
        took_s = time.monotonic() - began
        used = os.times()
        size_mb = trace.stat().st_size / 1e6
    cpu_s = used.children_user + used.children_system
    said = f"{spans} spans, {size_mb:.0f} MB: {took_s:.1f} s, {cpu_s:.1f} s of one processor"
    sys.stdout.write(said + "\n")


if __name__ == "__main__":
    main()
