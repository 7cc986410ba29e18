"""The form of a tool, in a real browser: what it says of arguments, and what it sends."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.async_api import expect
from tests.edges.gateway.looking import page_of
from tests.edges.gateway.page.test_console import run, taking

from seawall import Annotations, Pipeline, Tool

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")  # of the browser's driver

ITEM = {
    "type": "object",
    "properties": {"sku": {"type": "string"}, "count": {"type": "integer"}},
    "required": ["sku"],
}
DEFINED = {
    "Item": ITEM,
    "Loop": {"type": "object", "properties": {"next": {"$ref": "#/$defs/Loop"}}},
    "Away": {"$ref": "#/$defs/Away"},
}


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({"type": "array", "items": {"type": "string"}}, "array of string"),
        ({"type": "array", "items": ITEM}, "array of {sku: string, count?: integer}"),
        (
            {"type": "array", "items": {"$ref": "#/$defs/Item"}},
            "array of {sku: string, count?: inte",
        ),
        (
            {"$ref": "#/$defs/Item", "default": None},
            "{sku: string, count?: integer} · default null",
        ),
        (
            {"anyOf": [{"type": "array", "items": ITEM}, {"type": "null"}]},
            "array of {sku: string, c",
        ),
        ({"type": "array", "items": {"enum": ["a", 1]}}, 'array of "a" | 1'),
        ({"type": "array", "items": {"type": ["string", "null"]}}, "array of string"),
        (
            {"type": "array", "items": {"anyOf": [{"type": "string"}, True]}},
            "array of string or any",
        ),
        ({"type": "array", "items": True}, "array of any JSON"),
        ({"type": "array"}, "array"),
        ({"$ref": "#/$defs/Loop"}, "{next?: {next?: {next?: object}}}"),
        ({"type": "array", "items": {"$ref": "#/$defs/Away"}}, "array of any JSON"),
        ({"$ref": "https://example.org/item"}, "any JSON"),
        ({"type": "array", "items": {"enum": ["x" * 300]}}, 'array of "' + "x" * 190 + "…"),
    ],
)
async def test_a_nested_argument_says_what_its_parts_are(schema: Any, said: str) -> None:
    whole = {"type": "object", "properties": {"q": schema}, "$defs": DEFINED}
    tool = Tool("divide", "Take it.", whole, run, annotations=Annotations.for_reading())
    async with page_of(Pipeline([tool]), rows=1) as page:
        await page.click("#list [data-key=divide]")
        await expect(page.locator("#field-0-hint")).to_contain_text(said)


@pytest.mark.parametrize(
    ("typed", "sent"),
    [
        ("12345678901234567890", 12345678901234567890),
        ("-9007199254740993", -9007199254740993),
        ("[9007199254740993]", [9007199254740993]),
        ("twelve", "twelve"),
    ],
)
async def test_numbers_are_sent_with_all_digits_that_were_typed(typed: str, sent: Any) -> None:
    given: list[Any] = []

    async def take(arguments: dict[str, Any], _: Any) -> str:
        given.append(arguments)
        return "done"

    schema = {"type": "object", "properties": {"q": {"type": ["integer", "array", "string"]}}}
    tool = Tool("divide", "Take it.", schema, take, annotations=Annotations.for_reading())
    async with page_of(Pipeline([tool]), rows=1) as page:
        await page.click("#list [data-key=divide]")
        await page.fill("#field-0", typed)
        await page.click("#run")
        await expect(page.locator("#outcome pre")).to_have_text("done")

    assert given == [{"q": sent}]


async def test_a_form_that_is_drawn_anew_keeps_the_focus_and_the_place_in_the_text() -> None:
    text = {"type": "string"}
    pipeline = Pipeline([taking("divide", a=text, b=text)])
    async with page_of(pipeline, rows=1) as page:
        await page.click("#list [data-key=divide]")
        await page.fill("[data-name=b]", "12345678901234567890 pieces")
        await page.focus("[data-name=b]")
        await page.evaluate("document.activeElement.setSelectionRange(3, 5)")
        other = taking("divide", c=text, b={**text, "description": "How many."})
        pipeline.registry.register(other, on_duplicate="replace")
        await expect(page.locator("#try")).to_contain_text("How many.")
        field = page.locator("[data-name=b]")
        await expect(field).to_be_focused()
        await expect(field).to_have_value("12345678901234567890 pieces")
        at = "[document.activeElement.selectionStart, document.activeElement.selectionEnd]"
        assert await page.evaluate(at) == [3, 5]
