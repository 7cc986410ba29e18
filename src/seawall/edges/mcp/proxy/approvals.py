"""Ask the person behind the client, by the protocol's own way, before a call may run.

With a session the client gets `elicitation/create` and answers it. Without one (revision
2026-07-28) the call's answer says what input is required, and the client comes back with it: what
it brings is bound to the tool, its definition and the arguments that were shown, holds for a
bounded time, and opens one call only.

A client that cannot be asked is told that the call waits, if there is a state to keep it in: it is
answered from elsewhere, and runs when the client makes it again.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

import msgspec

from seawall.edges.mcp.proxy.client import can_be_asked
from seawall.edges.mcp.proxy.messages import decoded, encode, notification, request
from seawall.layers.risk_questions import Answer
from seawall.pipeline.arguments.faults.explain import FOR_QUESTION, Redaction
from seawall.pipeline.digest import canonical_text
from seawall.pipeline.visible import visible_json, visible_line

if TYPE_CHECKING:
    from seawall.contract.decision import Decision, Prepared
    from seawall.edges.mcp.proxy.exchange import Exchange
    from seawall.pipeline.chance import Chance
    from seawall.pipeline.clock import Clock

ANSWER_WITHIN_S = 300.0
"""How long an answer to a question opens its call."""

QUESTION = "seawall_approval"
"""The key of the proxy's question among the inputs that are required."""

MAX_USED = 100_000
"""Answers remembered as used; more within their time are refused."""


class State(msgspec.Struct, frozen=True):
    """What a client carries between the rounds of one call."""

    about: str
    """Fingerprint of the tool's definition and the arguments."""
    expires: float
    once: str
    approved: bool = False
    server: Any = None
    """The server's own state, if it asked too."""


class Approvals:
    """Asks, and remembers which answers were used."""

    def __init__(self, clock: Clock, chance: Chance) -> None:
        self._clock = clock
        self._chance = chance
        self._key = bytes.fromhex(chance.token(32))
        self._used: OrderedDict[str, float] = OrderedDict()

    def ask(self, exchange: Exchange, prepared: Prepared, decision: Decision) -> Any:
        """Give the person's answer, or an awaitable of it.

        Where no person can be asked in time the call is refused, and the exchange says why.
        """
        about = _about(prepared)
        brought: State | None = exchange.brought
        exchange.about = about
        if exchange.stateless and brought is not None and brought.about == about:
            answer = self._answer_in(exchange, brought)
            if answer is not None:
                exchange.approved = answer is Answer.ALLOW_ONCE
                return answer
        if not can_be_asked(exchange.capabilities):
            return Answer.LATER
        if exchange.stateless:
            exchange.question = self._question(prepared, decision, about)
            return Answer.DENY_ONCE
        return self._elicited(exchange, prepared, decision)

    def _answer_in(self, exchange: Exchange, brought: State) -> Answer | None:
        if not self._first_use(brought):
            return None
        if brought.approved:
            return Answer.ALLOW_ONCE
        said = exchange.brought_answer
        return _answer(said) if isinstance(said, dict) else None

    def _first_use(self, state: State) -> bool:
        now = self._clock.wall()
        while self._used and next(iter(self._used.values())) < now:
            self._used.popitem(last=False)
        if state.expires < now or state.once in self._used or len(self._used) >= MAX_USED:
            return False
        self._used[state.once] = state.expires
        return True

    async def _elicited(self, exchange: Exchange, prepared: Prepared, decision: Decision) -> Answer:
        request_id = exchange.client.new_question()
        answered = exchange.client.ask(request_id)
        params = _form(prepared, decision, for_session=True)
        asked = request(request_id, "elicitation/create", params)
        exchange.upstream.to_client(asked.raw, exchange)
        try:
            said = await answered
        finally:
            if not answered.done() or answered.cancelled():
                gone = {"requestId": request_id, "reason": "the call is given up"}
                cancel = notification("notifications/cancelled", gone)
                exchange.upstream.to_client(cancel.raw, exchange)
        answer = _answer(said)
        exchange.approved = answer in (Answer.ALLOW_ONCE, Answer.ALLOW_SESSION)
        return answer

    def _question(self, prepared: Prepared, decision: Decision, about: str) -> dict[str, Any]:
        form = {"mode": "form", **_form(prepared, decision, for_session=False)}
        return {
            "resultType": "input_required",
            "inputRequests": {QUESTION: {"method": "elicitation/create", "params": form}},
            "requestState": self._sealed(State(about, self._expiry(), self._chance.token(12))),
        }

    def unpack(self, exchange: Exchange) -> None:
        """Take out of the parameters what the client brings for the proxy, not for the server."""
        text = exchange.params.get("requestState")
        brought = self._opened(text) if isinstance(text, str) else None
        if brought is None:
            return
        exchange.brought = brought
        params = {key: value for key, value in exchange.params.items() if key != "requestState"}
        if brought.server is not None:
            params["requestState"] = brought.server
        answers = params.get("inputResponses")
        if isinstance(answers, dict) and QUESTION in answers:
            exchange.brought_answer = answers[QUESTION]
            params["inputResponses"] = {k: v for k, v in answers.items() if k != QUESTION}
            if not params["inputResponses"]:
                del params["inputResponses"]
        exchange.params = params

    def carried(self, exchange: Exchange, said: dict[str, Any]) -> dict[str, Any]:
        """Let a server's own question keep the yes that the person gave before it."""
        state = State(
            exchange.about,
            self._expiry(),
            self._chance.token(12),
            approved=True,
            server=said.get("requestState"),
        )
        return {**said, "requestState": self._sealed(state)}

    def _expiry(self) -> float:
        return self._clock.wall() + ANSWER_WITHIN_S

    def _sealed(self, state: State) -> str:
        body = encode(msgspec.structs.asdict(state))
        seal = hmac.digest(self._key, body, "sha256")
        return base64.urlsafe_b64encode(seal + body).decode()

    def _opened(self, text: str) -> State | None:
        try:
            data = base64.urlsafe_b64decode(text.encode())
        except (binascii.Error, ValueError):
            return None
        seal, body = data[:32], data[32:]
        if not hmac.compare_digest(seal, hmac.digest(self._key, body, "sha256")):
            return None
        return msgspec.convert(decoded(body), State)


def _about(prepared: Prepared) -> str:
    tool = prepared.tool
    seen = [tool.name, tool.description, tool.input_schema, tool.annotations.to_mcp()]
    text = canonical_text([seen, prepared.arguments])
    return hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=16).hexdigest()


_CHOICES = {"once": "Allow this call", "deny": "Do not allow it"}
_SESSION = {"session": "Allow this tool for the session"}


def _form(prepared: Prepared, decision: Decision, *, for_session: bool) -> dict[str, Any]:
    choices = {**_CHOICES, **(_SESSION if for_session else {})}
    redaction = Redaction(prepared.tool.input_schema)
    text, is_cut, _ = redaction.shown(prepared.arguments, FOR_QUESTION)
    shown = visible_json(text)
    warning = " PART OF IT IS TOO LONG AND NOT SHOWN HERE." if is_cut else ""
    name = visible_line(prepared.tool.name)
    return {
        "message": (
            f"{name} needs your approval ({visible_line(decision.reason)}).{warning}"
            f" It would run with {shown}"
        ),
        "requestedSchema": {
            "type": "object",
            "properties": {
                "decision": {
                    "type": "string",
                    "title": "Decision",
                    "description": f"May {name} run?",
                    "enum": list(choices),
                    "enumNames": list(choices.values()),
                }
            },
            "required": ["decision"],
        },
    }


_ANSWERS = {"once": Answer.ALLOW_ONCE, "session": Answer.ALLOW_SESSION}


def _answer(said: dict[str, Any]) -> Answer:
    """Read what the person said: only a yes is a yes."""
    content = said.get("content")
    if said.get("action") != "accept" or not isinstance(content, dict):
        return Answer.DENY_ONCE
    decision = content.get("decision")
    return (
        _ANSWERS.get(decision, Answer.DENY_ONCE) if isinstance(decision, str) else Answer.DENY_ONCE
    )
