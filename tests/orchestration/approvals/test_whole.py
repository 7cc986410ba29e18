"""Whoever approves can see all that is approved, on every store, and no secret by it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from tests.orchestration.approvals.conftest import Place

if TYPE_CHECKING:
    from seawall import PendingApproval, Pipeline

SCHEMA = {
    "type": "object",
    "properties": {
        "to": {"type": "string"},
        "eur": {"type": "number"},
        "pin": {"type": "string", "writeOnly": True},
    },
}
PADDED = {
    "a long text": {"to": "a" * 4_000 + "MIDDLE" + "b" * 4_000, "eur": 1},
    "many members": {**{f"k{number}": "v" for number in range(400)}, "to": "eve", "eur": 5},
    "deep": {"zz": json.loads("[" * 90 + '"MIDDLE"' + "]" * 90), "to": "eve"},
    "a long list": {"zz": ["x" * 200] * 50, "to": "eve", "eur": 9},
}


async def asked(
    place: Place, arguments: dict[str, Any], schema: Any = SCHEMA, **settings: Any
) -> tuple[Pipeline, str]:
    annotations = place.tools[0].annotations
    pay = place.tool("pay", annotations=annotations, input_schema=schema)
    pipeline = place.pipeline([pay], settings=settings)
    result = await pipeline.call("pay", arguments)
    return pipeline, str((result.metadata or {})["approval_id"])


async def parts(pipeline: Pipeline, request: str) -> tuple[PendingApproval, PendingApproval]:
    (first,) = (await pipeline.approvals.show(request)).approvals
    (whole,) = (await pipeline.approvals.show(request, whole=True)).approvals
    return first, whole


@pytest.mark.parametrize("kind", PADDED)
@pytest.mark.parametrize("pin", [None, "4711"], ids=["no secret", "a secret"])
async def test_all_arguments_are_shown_if_all_are_asked_for(
    place: Place, kind: str, pin: str | None
) -> None:
    arguments = PADDED[kind] if pin is None else {**PADDED[kind], "pin": pin}

    first, whole = await parts(*await asked(place, arguments))

    assert (first.arguments_cut, whole.arguments_cut) == (True, False)
    assert len(first.arguments) < 2_500
    expected = arguments if pin is None else {**arguments, "pin": "(not shown)"}
    assert json.loads(whole.arguments) == expected
    assert first.digest == whole.digest
    assert "4711" not in first.arguments + whole.arguments


async def test_what_is_short_is_kept_once(memory: Place) -> None:
    pipeline, request = await asked(memory, {"to": "bob", "eur": 1})

    first, whole = await parts(pipeline, request)

    assert first == whole
    assert not first.arguments_cut
    assert len(await pipeline.approvals.store.payloads(request)) == 4


async def test_what_the_tool_takes_comes_first_and_texts_show_their_end(memory: Place) -> None:
    padding = {f"k{number}": "v" for number in range(400)}

    first, _ = await parts(*await asked(memory, {**padding, "to": "x" * 900 + "END", "eur": 7}))

    assert first.arguments.startswith('{\n  "to": "xxx')
    assert 'END",\n  "eur": 7,\n  "k0"' in first.arguments


async def test_fields_that_are_hidden_stay_so_in_all(place: Place) -> None:
    arguments = {"to": "x" * 5_000, "Account": "DE12"}

    _, whole = await parts(*await asked(place, arguments, hidden=("account",)))

    assert json.loads(whole.arguments) == {"to": "x" * 5_000, "Account": "(not shown)"}


async def test_what_is_too_long_even_so_says_that_it_is(memory: Place) -> None:
    arguments = {"pin": "4711", "to": "x" * 900_000}

    first, whole = await parts(*await asked(memory, arguments))

    assert first.arguments_cut
    assert whole.arguments_cut
    assert len(whole.arguments) < 510_000
    assert "4711" not in whole.arguments


async def test_without_a_key_all_can_be_seen_too(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SEAWALL_STATE_KEY", raising=False)
    place = Place(None, postgres_url)
    try:
        arguments = {"to": "x" * 5_000, "eur": 1}
        _, whole = await parts(*await asked(place, arguments))
        assert json.loads(whole.arguments) == arguments
    finally:
        await place.close()
