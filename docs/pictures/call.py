"""Draws `call.svg`: the way of a call through the layers, in the order of the code.

python docs/pictures/call.py

The ground is the picture's own and follows the reader's light or dark, so that it can be read
on any page.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple
from xml.sax.saxutils import escape

from seawall.policy.build import BY_NAME

HERE = Path(__file__).parent
WIDTH, ROW, BOX = 960, 34, 26
LEFT, RIGHT, SAID = 150, 400, 420


class Step(NamedTuple):
    """One box, what it asks or does, and how a call may leave there."""

    name: str
    says: str
    leaves: str = ""
    optional: bool = False


LAYERS = {
    "environment_gate": Step("environment gate", "known to be impossible here?", "refused"),
    "risk_gate": Step("risk gate", "allow, ask a person, or deny", "refused"),
    "argument_check": Step("argument check", "parse, mend, check", "refused, all faults named"),
    "fallback": Step("fallback", "failed? another tool answers", optional=True),
    "cache": Step("cache", "asked before?", "answered", optional=True),
    "rate_limit": Step("rate limit", "one token a call", "refused, with the time to wait"),
    "bulkhead": Step("bulkhead", "a place, or a wait in line", "refused"),
    "adaptive_limit": Step(
        "adaptive limit", "the same, by a number it finds", "refused", optional=True
    ),
    "exclusive": Step("exclusive", "waits for its turn"),
    "ledger": Step("ledger", "written down before it runs", "refused, or answered from before"),
    "retry": Step("retry", "once more, if it may be repeated"),
    "hedge": Step("hedge", "slow? one more beside it", optional=True),
    "breaker": Step("breaker", "circuit open?", "refused"),
    "timeout": Step("timeout", "too long?", "given up; retry decides"),
}
AROUND = [
    Step("loop detector", "the same again and again?", "refused"),
    Step("before-hooks", "code of your own", "refused, or rewritten"),
]
AFTER = [
    Step("after-hooks", "may change the result"),
    Step("result limit", "head and tail of what is too large"),
]
STYLE = """
text {
  font: 13px system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; fill: var(--text);
}
.name { font-weight: 600; } .faint { fill: var(--faint); } .out { fill: var(--out); }
rect { fill: var(--box); stroke: var(--line); } .ground { fill: var(--ground); stroke: none; }
.group { fill: none; stroke: var(--faint); stroke-dasharray: 2 4; }
.optional { stroke-dasharray: 5 4; } .tool { fill: var(--tool); }
path { fill: none; stroke: var(--faint); stroke-width: 1.4; } .leave { stroke: var(--out); }
svg {
  --ground: #ffffff; --box: #f4f7fa; --line: #9fb1c2; --tool: #d9ecff;
  --text: #1b2733; --faint: #5d6f80; --out: #b3400d;
}
@media (prefers-color-scheme: dark) {
  svg {
    --ground: #14181d; --box: #1f262e; --line: #4a5a69; --tool: #143a5c;
    --text: #dfe6ec; --faint: #93a4b3; --out: #ffa270;
  }
}
"""


def text(x: float, y: float, said: str, kind: str = "", anchor: str = "start") -> str:
    """Write a text at a place."""
    return f'<text x="{x}" y="{y}" class="{kind}" text-anchor="{anchor}">{escape(said)}</text>'


def box(y: float, step: Step, kind: str = "") -> list[str]:
    """Draw one step, with the way on and the way out."""
    middle = (LEFT + RIGHT) / 2
    kind = f"{kind} optional" if step.optional else kind
    drawn = [
        f'<rect x="{LEFT}" y="{y}" width="{RIGHT - LEFT}" height="{BOX}" rx="5" class="{kind}"/>',
        text(middle, y + 17.5, step.name, "name", "middle"),
        text(SAID, y + 17.5, step.says, "faint"),
    ]
    if step.leaves:
        drawn += [
            f'<path d="M 628 {y + 13} h 26 m -6 -4 l 6 4 l -6 4" class="leave"/>',
            text(662, y + 17.5, step.leaves, "out"),
        ]
    return drawn


def group(top: float, bottom: float, inset: float, said: str) -> list[str]:
    """Frame what happens equally often, and say how often."""
    left = 20 + inset
    width, height = WIDTH - 2 * left, bottom - top
    return [
        f'<rect x="{left}" y="{top}" width="{width}" height="{height}" rx="9" class="group"/>',
        text(left + 12, top + 20, said, "faint"),
    ]


def picture() -> str:
    """Draw the whole way, from the model's call to what it reads."""
    once = [*AROUND]
    each: list[Step] = []
    for name in [*BY_NAME][1:]:
        (each if each or name == "hedge" else once).append(LAYERS[name])
    y, drawn = 16.0, []
    registry = Step("registry", "which tool is it?", "no such name: near names, nothing is run")
    for step in (Step("a model's tool call", "name, arguments as JSON text"), registry):
        drawn += box(y, step)
        y += ROW
    top = y + 2
    y += 10
    for step in once:
        drawn += box(y, step)
        y += ROW
    inner = y + 2
    y += 10
    for step in each:
        drawn += box(y, step)
        y += ROW
    drawn += box(
        y, Step("your function", "the executor", "raises: what may be told, masked"), "tool"
    )
    y += ROW + 4
    drawn += group(inner, y, 20, "each attempt")
    y += 8
    for step in AFTER:
        drawn += box(y, step)
        y += ROW
    drawn += group(top, y, 0, "once a call")
    y += 8
    drawn += box(y, Step("ToolResult", "render() for the model, fields for a program"))
    y += ROW + 4
    said = (
        "Dashed boxes are off until a policy asks. A layer with nothing to do is not in the chain."
    )
    drawn.append(text(20, y + 12, said, "faint"))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y + 26:.0f}" role="img">\n'
        f"<title>The way of a call</title>\n<style>{STYLE}</style>\n"
        f'<rect width="100%" height="100%" rx="8" class="ground"/>\n'
        f'<path d="M {(LEFT + RIGHT) / 2} 30 V {y - ROW}"/>\n' + "\n".join(drawn) + "\n</svg>\n"
    )


if __name__ == "__main__":
    (HERE / "call.svg").write_text(picture(), encoding="utf-8")
