"""What the demo's agent does, turn by turn, and what happens around it meanwhile.

Nothing here says how a call ends: that is decided by the service, the clock and the layers.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

import msgspec

from seawall.layers.risk_questions import Answer

if TYPE_CHECKING:
    from collections.abc import Mapping


class Happening(Enum):
    """Something that changes in the world, said as it is shown."""

    PRINTER_ON = "somebody switches the label printer on"
    WAREHOUSE_DOWN = "the warehouse's computer breaks down"
    WAREHOUSE_UP = "the warehouse's computer is repaired"


class Ask(msgspec.Struct, frozen=True):
    """A call as the agent's model sends it: arguments are JSON text."""

    tool: str
    arguments: str


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """What the agent does at once."""

    says: str
    calls: tuple[Ask, ...] = ()
    together: bool = False
    """In parallel, instead of one after the other."""
    waits: bool = False
    """First wait, with the tool `wait`, as long as the answers of the last turn said."""
    patience: int = 0
    """How often a call that was told to come back later does so."""
    before: Happening | None = None


PERSON: Mapping[str, Answer] = {
    "ship_order": Answer.ALLOW_ONCE,
    "delete_records": Answer.DENY,
}
"""What the demo's person says about a tool; no answer stands for: not this time."""


_BEGINNING = (
    Turn(
        says="The agent looks around: plain calls, side by side",
        calls=(
            Ask("time_now", '{"zone": "Europe/Berlin"}'),
            Ask("local_status", "{}"),
            Ask("calculate", '{"expression": "3 * 12.50 * 1.19"}'),
        ),
        together=True,
    ),
    Turn(
        says="It gets a tool's name wrong",
        calls=(Ask("functions.wether", '{"city": "Oslo"}'),),
    ),
    Turn(
        says="It asks for the weather; that service is flaky",
        calls=(Ask("weather", '{"city": "Oslo"}'), Ask("weather", '{"city": "Lima"}')),
    ),
)
"""Plain calls, a wrong name, a tool that fails now and then."""

_HARM = (
    Turn(
        says="It ships an order with arguments that cannot be right",
        calls=(Ask("ship_order", '{"order_id": "17", "quantity": 0, "express": "maybe"}'),),
    ),
    Turn(
        says="It tries again with what a model takes for JSON, and a person is asked",
        calls=(
            Ask(
                "ship_order",
                '```json\n{"order_id": "A-17", "quantity": "2", "express": "true",}\n```',
            ),
        ),
    ),
    Turn(
        says="It wants to clean up, and the person does not",
        calls=(Ask("delete_records", '{"table": "customers", "older_than_days": 0}'),),
    ),
)
"""What is refused, or needs a person."""

_PRINTER = (
    Turn(
        says="It prints the label while the printer is off",
        calls=(Ask("print_label", '{"order_id": "A-17"}'),),
    ),
    Turn(
        says="And once more",
        before=Happening.PRINTER_ON,
        calls=(Ask("print_label", '{"order_id": "A-17"}'),),
    ),
)
"""A tool whose surroundings are not there."""

_BOLTS = Ask("inventory_lookup", '{"item": "bolt"}')
_NUTS = Ask("inventory_lookup", '{"item": "nut"}')
_WAREHOUSE = (
    Turn(
        says="It looks into the warehouse again and again",
        before=Happening.WAREHOUSE_DOWN,
        calls=(_BOLTS, _NUTS, _BOLTS),
    ),
    Turn(
        says="It waits as long as it was told; three calls come, one of them is the probe",
        waits=True,
        calls=(_BOLTS, _NUTS, _BOLTS),
        together=True,
    ),
    Turn(
        says="It waits again, and longer: a probe that fails doubles the time",
        before=Happening.WAREHOUSE_UP,
        waits=True,
        patience=3,
        calls=(_BOLTS, _NUTS),
    ),
)
"""A tool that is down, and comes back."""

_REPORT = (
    Turn(
        says="It asks for a report that takes too long",
        calls=(Ask("sales_report", '{"month": "2024-05"}'),),
    ),
)
"""A tool that takes too long."""

_NOTES = (
    Turn(
        says="It writes down what it learnt",
        calls=(
            Ask("note_add", '{"text": "A-17 is shipped; nothing was deleted."}'),
            Ask("note_search", '{"query": "shipped"}'),
        ),
    ),
)
"""The end."""


def turns(address: str) -> tuple[Turn, ...]:
    """Write the script for a service at `host:port`."""
    return (
        *_BEGINNING,
        *_HARM,
        *_PRINTER,
        *_too_often(Ask("http_check", f'{{"url": "http://{address}/health"}}')),
        *_REPORT,
        *_WAREHOUSE,
        *_NOTES,
    )


def _too_often(check: Ask) -> tuple[Turn, ...]:
    return (
        Turn(
            says="It checks the service's health too often",
            calls=(check, check, check),
            together=True,
        ),
        Turn(
            says="It waits as long as it was told, and checks again",
            waits=True,
            patience=3,
            calls=(check,),
        ),
    )
