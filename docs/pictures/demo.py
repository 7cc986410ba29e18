"""Draws `demo.svg`: what `seawall demo` writes to a terminal, with its colours and its pauses.

python docs/pictures/demo.py

The run is a real one. The picture scrolls as the terminal did; where nothing may move
(`prefers-reduced-motion`) it shows the end. It holds no font and no script.
"""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import time  # noqa: TID251 - a picture of real time
from pathlib import Path
from typing import NamedTuple
from xml.sax.saxutils import escape

from rich.text import Text

HERE = Path(__file__).parent
COMMAND = "seawall demo"
COLUMNS, ROWS = 104, 26
LINE, CHARACTER, MARGIN, HEAD = 17.0, 7.85, 14.0, 34.0
HOLD_S = 6.0
"""How long the end stands before it begins again."""
GROUND, TEXT, FAINT = "#14181d", "#d5dae0", "#7d8793"
COLORS = {
    "color(1)": "#ff7b72",
    "color(2)": "#7ee787",
    "color(3)": "#e3b341",
    "color(4)": "#79c0ff",
    "color(5)": "#d2a8ff",
    "color(6)": "#76e3ea",
}
"""Red, green, yellow, blue, magenta and cyan, as rich reads them."""


class Line(NamedTuple):
    """One line of the terminal, and when it came."""

    at_s: float
    text: Text


def recorded() -> list[Line]:
    """Run the demo in a terminal of its own, and keep what it writes, with its times."""
    ours, theirs = pty.openpty()
    program = str(Path(sys.executable).with_name("seawall"))
    wide = {"COLUMNS": str(COLUMNS), "LINES": "50", "TERM": "xterm-256color"}
    environment = {**os.environ, **wide}
    environment.pop("NO_COLOR", None)
    running = subprocess.Popen(  # noqa: S603 - our own program
        [program, *COMMAND.split()[1:]], stdout=theirs, stderr=theirs, env=environment
    )
    os.close(theirs)
    lines = list(_lines(ours))
    os.close(ours)
    if running.wait():
        sys.exit("the demo failed")
    return lines


def _lines(terminal: int) -> list[Line]:
    began, found, rest = time.monotonic(), [], b""
    while True:
        try:
            read = os.read(terminal, 65536)
        except OSError:  # what a terminal says when its program has ended
            return found
        *whole, rest = (rest + read).split(b"\n")
        at_s = time.monotonic() - began
        found += [Line(at_s, Text.from_ansi(one.decode().rstrip("\r"))) for one in whole]


def spans_of(line: Text) -> str:
    """Write a line as coloured pieces."""
    pieces = []
    for piece in line.divide(sorted({at for span in line.spans for at in span[:2]})):
        style = " ".join(str(span.style) for span in piece.spans)
        colour = next((COLORS[name] for name in COLORS if name in style), TEXT)
        colour = FAINT if "dim" in style else colour
        weight = ' font-weight="bold"' if "bold" in style else ""
        if piece.plain:
            pieces.append(f'<tspan fill="{colour}"{weight}>{escape(piece.plain)}</tspan>')
    return "".join(pieces)


def drawn(lines: list[Line]) -> str:
    """Draw what was recorded as an SVG that scrolls."""
    width, height = 2 * MARGIN + COLUMNS * CHARACTER, HEAD + ROWS * LINE + MARGIN
    ends_s = lines[-1].at_s + HOLD_S
    texts = "\n".join(
        f'<text y="{(number + 1) * LINE - 4:.0f}">{spans_of(line.text)}</text>'
        for number, line in enumerate(lines)
        if line.text.plain.strip()
    )
    shown: dict[float, int] = {}
    for number, line in enumerate(lines, 1):
        shown[round(100 * line.at_s / ends_s, 2)] = number
    frames = "".join(f"{at}%{{transform:{moved(count)}}}" for at, count in shown.items())
    end = moved(len(lines))
    size = f"0 0 {width:.0f} {height:.0f}"
    prompt = f'$ <tspan fill="{TEXT}" font-weight="bold">{COMMAND}</tspan>'
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="{size}" role="img">
<title>{COMMAND} in a terminal</title>
<style>
text {{
  font: 13px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace;
  white-space: pre;
}}
#lines {{ transform: {end}; animation: run {ends_s:.1f}s step-end infinite; }}
@keyframes run {{ 0% {{ transform: {moved(0)} }} {frames} 100% {{ transform: {end} }} }}
@media (prefers-reduced-motion: reduce) {{ #lines {{ animation: none; }} }}
</style>
<rect width="100%" height="100%" rx="8" fill="{GROUND}"/>
<text x="{MARGIN}" y="22" fill="{FAINT}">{prompt}</text>
<svg x="{MARGIN}" y="{HEAD}" width="{COLUMNS * CHARACTER:.0f}" height="{ROWS * LINE:.0f}">
<g id="lines">
{texts}
</g>
</svg>
</svg>
"""


def moved(count: int) -> str:
    """Say where the lines stand when so many are there: the newest at the bottom."""
    return f"translateY({(ROWS - count) * LINE:.0f}px)"


if __name__ == "__main__":
    (HERE / "demo.svg").write_text(drawn(recorded()), encoding="utf-8")
