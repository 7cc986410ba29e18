"""How the demo is shown while it runs: lines for a reader, or JSON lines for a program."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from seawall.edges.cli.paper import Paper

MAX_LINES = 4
MAX_LINE = 300
LEAD = 25
"""Columns before what is said: the call's number, and who says it."""

_EVENTS_SAID = {
    ("breaker", "open"): ("the circuit of {tool} opens", "bold red"),
    ("breaker", "half_open"): ("one call of {tool} may probe, all others are refused", "yellow"),
    ("breaker", "closed"): ("the circuit of {tool} closes", "bold green"),
    ("timeout", "expired"): ("the time for {tool} is over; the attempt is cancelled", "yellow"),
}
"""The others are said by the lines of the calls themselves."""


class JsonView:
    """One JSON object a line, as it happens."""

    def __init__(self, paper: Paper) -> None:
        self._paper = paper

    def show(self, event: str, **fields: object) -> None:
        """Write one event."""
        self._paper.text(json.dumps({"event": event, **fields}, default=str))


class LineView:
    """Lines: the call, what each layer made of it, and what came back."""

    def __init__(self, paper: Paper) -> None:
        self._paper = paper
        self._guided: set[str] = set()
        self._shown: dict[str, Callable[[dict[str, Any]], None]] = {
            "start": self._start,
            "turn": self._turn,
            "happens": self._happens,
            "call": self._call,
            "asked": self._asked,
            "answered": self._answered,
            "mended": self._mended,
            "attempt": self._attempt,
            "layer": self._layer,
            "result": self._result,
            "server": self._server,
            "server_call": self._server_call,
        }

    def show(self, event: str, **fields: object) -> None:
        """Write one event; one that has no lines is left out."""
        lines = self._shown.get(event)
        if lines is not None:
            lines(fields)

    def _start(self, said: dict[str, Any]) -> None:
        self._paper.line(("Seawall demo", "bold"))
        self._paper.line(
            f"A scripted agent calls {said['tools']} tools. Some talk to a service at"
            f" {said['service']} that is flaky, slow and down at times."
            " Every line below is what really happened."
        )

    def _server(self, said: dict[str, Any]) -> None:
        trusted = ", trusted" if said["trusted"] else ""
        about = (
            f"{said['tools']} tools, revision {said['version']}{trusted}"
            if said["state"] == "up"
            else f"not connected: {said['why']}"
        )
        self._paper.line("")
        self._paper.line((f"MCP server {said['name']}", "bold"), f"  {about}", lead="    ")

    def _server_call(self, said: dict[str, Any]) -> None:
        how = "is called" if said["ran"] else "is only checked, without arguments"
        colour = "green" if said["ok"] else "yellow"
        text = " ".join(said["text"].split())[:MAX_LINE]
        self._paper.line((said["tool"], "bold"), f" {how}: ", (text, colour), lead="      ")

    def _turn(self, said: dict[str, Any]) -> None:
        self._paper.line("")
        self._paper.line((said["says"], "bold"), lead=(f"{said['turn']:>2}  ", "bold"))

    def _happens(self, said: dict[str, Any]) -> None:
        self._paper.line((f"({said['what']})", "italic magenta"), lead="    ")

    def _call(self, said: dict[str, Any]) -> None:
        arguments = " ".join(said["arguments"].split())
        self._paper.line((said["tool"], "bold"), f" {arguments}", lead=_lead(said, "calls"))

    def _asked(self, said: dict[str, Any]) -> None:
        arguments = json.dumps(said["arguments"])
        self._put(said, "risk gate", f"{said['reason']}: may it run with {arguments}?", "yellow")

    def _answered(self, said: dict[str, Any]) -> None:
        self._put(said, "person", said["answer"].replace("_", " "), "yellow")

    def _mended(self, said: dict[str, Any]) -> None:
        self._put(said, "argument check", f"mended: {'; '.join(said['mended'])}", "yellow")

    def _attempt(self, said: dict[str, Any]) -> None:
        if said["waited_ms"] is not None:
            self._put(said, "retry", f"waited {said['waited_ms']:.0f} ms, tried again", "yellow")
        if said["reason"]:
            why = said["reason"].replace("_", " ")
            what = f"attempt {said['attempt']} failed: {why}, after {said['duration_ms']:.1f} ms"
            self._put(said, "executor", what, "")

    def _layer(self, said: dict[str, Any]) -> None:
        what = _EVENTS_SAID.get((said["layer"], said["did"]))
        if what is not None:
            self._put({}, said["layer"], what[0].format(tool=said["tool"]), what[1])

    def _result(self, said: dict[str, Any]) -> None:
        if said["ok"]:
            self._answer(said)
            return
        text, reason = said["text"], said["reason"]
        if reason in self._guided:  # what to do then was said the first time
            text = f"Error: {reason.replace('_', ' ')}: {said['message']}."
        self._guided.add(reason)
        lines = [line for line in text.splitlines() if line.strip()]
        who = said["layer"].replace("_", " ")
        for line in lines[:MAX_LINES]:
            self._put(said, who, _cut(line, MAX_LINE), "red")
            who = ""
        if len(lines) > MAX_LINES:
            self._put(said, "", f"… and {len(lines) - MAX_LINES} lines more", "red")

    def _answer(self, said: dict[str, Any]) -> None:
        tries = f"{said['attempts']} attempts, " if said["attempts"] > 1 else ""
        took = f"  {tries}{said['duration_ms']:.1f} ms"
        room = self._paper.width - LEAD - len(took) if self._paper.is_terminal else MAX_LINE
        answer = _cut(said["text"], max(room, LEAD))
        self._paper.line((answer, "green"), (took, "dim"), lead=_lead(said, "answers"))

    def _put(self, said: dict[str, Any], who: str, what: str, style: str) -> None:
        self._paper.line((what, style), lead=_lead(said, who))


def _lead(said: dict[str, Any], who: str) -> str:
    return f"    {said.get('call', ''):<4}{who:<17}"


def _cut(line: str, most: int) -> str:
    return line if len(line) <= most else f"{line[: most - 1]}…"
