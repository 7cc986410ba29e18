"""What a client is given to show to the person who decides."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from seawall import Tool
from seawall.contract.decision import Action, Decision, Prepared
from seawall.edges.mcp.proxy.approvals import QUESTION, Approvals
from seawall.pipeline.chance import SystemChance
from seawall.testing import FakeClock

HIDDEN = ["\u3164", "\u2800", "\ufe0f", "\U000e0100", "\u034f", "\u202e", "\u00a0", "\u3000"]


@pytest.mark.parametrize("hidden", HIDDEN)
async def test_a_question_writes_out_what_nobody_sees(hidden: str) -> None:
    tool = Tool(f"pay{hidden}", "Pay.", {"type": "object"}, executor=lambda _, __: None)
    exchange: Any = SimpleNamespace(
        stateless=True, brought=None, capabilities={"elicitation": {}}, question=None, about=""
    )
    prepared = Prepared(tool=tool, arguments={"to": f"bob{hidden}"})

    decision = Decision(Action.ASK, f"to bob{hidden}\nand run")
    Approvals(FakeClock(), SystemChance()).ask(exchange, prepared, decision)

    params = exchange.question["inputRequests"][QUESTION]["params"]
    description = params["requestedSchema"]["properties"]["decision"]["description"]
    assert hidden not in params["message"]
    assert hidden not in description
    written = "".join(f"\\u{unit}" for unit in units(hidden))
    assert f'"bob{written}"' in params["message"]
    assert f"(to bob\\u{{{ord(hidden):04x}}}\\u{{000a}}and run)" in params["message"]


async def test_a_question_shows_more_and_says_where_it_is_a_part() -> None:
    tool = Tool("pay", "Pay.", {"type": "object"}, executor=lambda _, __: None)
    messages = []
    for length in (8_000, 80_000):
        exchange: Any = SimpleNamespace(
            stateless=True, brought=None, capabilities={"elicitation": {}}, question=None, about=""
        )
        prepared = Prepared(tool=tool, arguments={"to": "x" * length + "THE END"})
        decision = Decision(Action.ASK, "high risk")
        Approvals(FakeClock(), SystemChance()).ask(exchange, prepared, decision)
        messages.append(exchange.question["inputRequests"][QUESTION]["params"]["message"])

    assert ["NOT SHOWN" in message for message in messages] == [False, True]
    assert all("THE END" in message for message in messages)


def units(char: str) -> list[str]:
    found = char.encode("utf-16-be").hex()
    return [found[at : at + 4] for at in range(0, len(found), 4)]
