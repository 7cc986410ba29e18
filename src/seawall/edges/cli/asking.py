"""Ask the person at the terminal before a tool does what may do harm."""

from __future__ import annotations

import asyncio
import sys
import threading
from typing import TYPE_CHECKING

from seawall.edges.cli.paper import printable
from seawall.layers.risk_questions import Answer
from seawall.pipeline.arguments.faults.explain import (
    ALL_THERE_IS,
    FOR_PERSON,
    Extent,
    Redaction,
)
from seawall.pipeline.visible import visible_json, visible_line

if TYPE_CHECKING:
    from typing import TextIO

    from seawall.contract.decision import Decision, Prepared

TRIES = 3

_ANSWERS = {
    "y": Answer.ALLOW_ONCE,
    "yes": Answer.ALLOW_ONCE,
    "once": Answer.ALLOW_ONCE,
    "s": Answer.ALLOW_SESSION,
    "session": Answer.ALLOW_SESSION,
    "n": Answer.DENY,
    "no": Answer.DENY,
    "deny": Answer.DENY,
}


async def allowed_once(prepared: Prepared, decision: Decision) -> Answer:  # noqa: ARG001  # nobody is asked
    """Answer for a person who said so beforehand, by `--yes`."""
    return Answer.ALLOW_ONCE


class Terminal:
    """Asks on `said_to`, reads the answer from `heard_from`. No answer at all is a denial."""

    def __init__(self, heard_from: TextIO | None = None, said_to: TextIO | None = None) -> None:
        self._heard_from = sys.stdin if heard_from is None else heard_from
        self._said_to = sys.stderr if said_to is None else said_to

    @property
    def is_there(self) -> bool:
        """Whether a person can be asked."""
        return self._heard_from.isatty() and self._said_to.isatty()

    async def confirm(self, prepared: Prepared, decision: Decision) -> Answer:
        """Ask about one call."""
        name, reason = visible_line(prepared.tool.name), visible_line(decision.reason)
        self._say(f"{name} needs your word ({reason}). It would run with\n")
        shown, is_cut = shown_arguments(prepared)
        self._say(f"{shown}\n")
        if is_cut:
            self._say("Part of it is not shown.\n")
        for _ in range(TRIES):
            more = " [a] show all of it," if is_cut else ""
            self._say(f"Allow it?{more} [y] this once, [s] for this session, [n] no: ")
            heard = await self._line()
            if not heard:
                break
            word = heard.strip().lower()
            if is_cut and word in ("a", "all"):
                self._say(f"{shown_arguments(prepared, ALL_THERE_IS)[0]}\n")
                continue
            answer = _ANSWERS.get(word)
            if answer is not None:
                return answer
        self._say("\n")
        return Answer.DENY_ONCE

    async def _line(self) -> str:
        """Read a line in a thread of its own, so that time limits and Ctrl-C still work."""
        loop = asyncio.get_running_loop()
        heard: asyncio.Future[str] = loop.create_future()

        def tell(line: str) -> None:
            if not heard.done():
                heard.set_result(line)

        def read() -> None:
            line = self._heard_from.readline()
            if not loop.is_closed():
                loop.call_soon_threadsafe(tell, line)

        # A daemon: nobody may ever answer, and the program ends all the same.
        threading.Thread(target=read, name="seawall-answer", daemon=True).start()
        return await heard

    def _say(self, text: str) -> None:
        self._said_to.write(printable(text))
        self._said_to.flush()


def shown_arguments(prepared: Prepared, extent: Extent = FOR_PERSON) -> tuple[str, bool]:
    """Write the arguments for the person who decides, without secrets; whether that is a part."""
    text, is_cut, _ = Redaction(prepared.tool.input_schema).shown(prepared.arguments, extent)
    return visible_json(text), is_cut
