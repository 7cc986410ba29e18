"""The token and the stream of events of the page, in a real browser."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest
from playwright.async_api import expect
from tests.edges.gateway.looking import TOOLS, deciding, page_of, waiting
from tests.edges.gateway.page.test_console import ask_for, button
from tests.edges.gateway.serving import ADMIN, APPROVER, CALLER
from tests.waiting import until

from seawall import Pipeline

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from playwright.async_api import Page

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")  # of the browser's driver


async def give(page: Page, token: str) -> None:
    await page.click("#open-token")
    await page.fill("#token", token)
    await page.keyboard.press("Enter")


@pytest.mark.parametrize(
    ("token", "said"),
    [
        ("a-token-of-yesterday-0123", "The gateway does not know this token."),
        ("", "Type or paste a token first."),
        ("two words of no token", "This is no token"),
        ("a-token-with-ümlauts-0123", "This is no token"),
    ],
)
async def test_what_is_wrong_with_a_token_is_said_where_it_was_typed(token: str, said: str) -> None:
    async with page_of() as page:
        await give(page, token)
        await expect(page.locator("#token-dialog")).to_have_attribute("open", "")
        await expect(page.locator("#token-said")).to_contain_text(said)
        field = page.locator("#token")
        await expect(field).to_be_focused()
        await expect(field).to_have_attribute("aria-invalid", "true")
        await expect(page.locator("#banner")).to_be_hidden()
        await expect(page.locator("#live")).to_have_text("live")  # as before, without a token

        await page.fill("#token", ADMIN)
        await page.keyboard.press("Enter")
        await expect(page.locator("#token-dialog")).not_to_have_attribute("open", "")
        await expect(page.locator("#who")).to_contain_text("You are admin")
        await page.click("#open-token")
        await expect(page.locator("#token-said")).to_be_empty()
        await expect(field).to_be_empty()


async def test_a_token_that_lacks_the_right_is_told_from_one_that_is_not_known() -> None:
    async with page_of(tokens=("caller", "admin"), token=CALLER) as page:
        await expect(page.locator("#waiting")).to_have_text(
            "The token of caller may not see and answer approvals: give one that may."
        )
        await give(page, CALLER)
        await expect(page.locator("#token-said")).to_have_text(
            "This token lacks the right. It is in use, and is that of caller, which may list and"
            " call tools; may not see and answer approvals, open and close circuits."
        )
        await expect(page.locator("#token-dialog")).to_have_attribute("open", "")


async def test_a_gateway_that_cannot_be_asked_is_not_told_as_a_wrong_token() -> None:
    async with page_of() as page:
        await page.route("**/client", lambda route: route.abort())
        await give(page, ADMIN)
        await expect(page.locator("#token-said")).to_have_text("The gateway cannot be reached.")


async def test_without_a_token_the_page_says_so_and_with_one_it_is_live_without_waiting() -> None:
    async with page_of(rows=0, tokens=("caller", "admin")) as page:
        await expect(page.locator("#live")).to_have_text("not live: no token")
        await expect(page.locator("#banner")).to_contain_text("wants a token")
        async with without_time(page):
            await give(page, CALLER)
            await expect(page.locator("#live")).to_have_text("live")
            await expect(page.locator("#banner")).to_be_hidden()


async def test_a_token_of_an_earlier_start_is_said_to_be_not_known() -> None:
    async with page_of(rows=0, token="a-token-of-yesterday-0123") as page:
        await expect(page.locator("#live")).to_have_text("not live: the token is not known")
        await expect(page.locator("#banner")).to_contain_text("is not known to the gateway")
        await page.click("#open-token")
        async with without_time(page):
            await page.click("#forget-token")
            await expect(page.locator("#live")).to_have_text("live")
            await expect(page.locator("#list button")).to_have_count(4)


@asynccontextmanager
async def without_time(page: Page) -> AsyncIterator[None]:
    """The page waits before it asks for its stream again, and no wait of it ends by itself."""
    await page.evaluate(
        "window.setTimeout = (_, wait) => { window.waits ||= 100 < wait && wait < 20000; }"
    )
    await until(lambda: page.evaluate("window.waits === true"))
    yield


async def test_closing_the_dialog_changes_nothing_whatever_was_chosen_the_last_time() -> None:
    pipeline = waiting()
    (request,) = await ask_for(pipeline, "users")
    async with page_of(pipeline) as page:
        await give(page, ADMIN)
        await expect(button(page, "approve", request)).to_be_enabled()
        asked = counting(page, "/events")
        await page.click("#open-token")
        await page.fill("#token", APPROVER)
        await page.keyboard.press("Escape")
        await expect(page.locator("#token-dialog")).not_to_have_attribute("open", "")
        await expect(button(page, "approve", request)).to_be_enabled()
        assert asked == []


def counting(page: Page, path: str) -> list[str]:
    """What the page asks for at a path from now on."""
    found: list[str] = []
    page.on("request", lambda one: found.append(one.url) if one.url.endswith(path) else None)
    return found


async def test_a_stream_that_is_silent_for_too_long_is_asked_for_again() -> None:
    async with page_of(Pipeline(TOOLS)) as page:
        await page.clock.install()
        asked = counting(page, "/events")
        await page.reload()
        await expect(page.locator("#live")).to_have_text("live")
        assert len(asked) == 1
        await page.clock.fast_forward(46_000)
        await until(lambda: len(asked) == 2)
        await expect(page.locator("#live")).to_have_text("live")


async def test_a_stream_that_ends_at_once_is_asked_for_less_and_less_often() -> None:
    async with page_of(Pipeline(TOOLS)) as page:
        hello = {"body": "event: hello\ndata: {}\n\n", "content_type": "text/event-stream"}
        await page.route("**/events", lambda route: route.fulfill(**hello))
        await expect(page.locator("#list button").first).to_be_enabled()
        await page.evaluate(QUICKLY)
        await give(page, ADMIN)  # another token, another stream
        waits = await until(lambda: page.evaluate("waits.length > 5 && waits"))

    assert waits[:5] == sorted(waits[:5])
    assert waits[0] < 700
    assert 7_000 < waits[5] < 13_000


QUICKLY = """() => {
  const was = setTimeout;
  window.waits = [];
  window.setTimeout = (work, wait) => {
    if (wait >= 375 && wait < 20000) waits.push(wait);
    return was(work, wait / 50);
  };
}"""
"""Waits of the page between streams are noted, and take a fiftieth of their time."""


async def test_what_was_asked_for_with_a_former_token_is_not_drawn_under_another() -> None:
    pipeline = waiting()
    await ask_for(pipeline, "users")
    async with deciding(pipeline) as page:
        await page.click("#open-token")
        await page.click("#forget-token")
        await expect(page.locator("#who")).to_contain_text("You are anybody")
        await expect(page.locator("#approvals li")).to_have_count(0)
        await expect(page.locator("#waiting")).to_contain_text("give a token that may approve")


async def test_an_answer_that_is_none_of_a_gateway_is_said_to_be_so() -> None:
    async with page_of(Pipeline(TOOLS)) as page:
        html = {"body": "<h1>Please log in</h1>", "content_type": "text/html"}
        await page.route("**/tools/divide", lambda route: route.fulfill(**html))
        await page.click("#list [data-key=divide]")
        await expect(page.locator("#detail-body")).to_contain_text("is no answer of a gateway")
