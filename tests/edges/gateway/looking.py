"""The console in a real browser, for a test to look at."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from playwright.async_api import async_playwright, expect
from tests.edges.gateway.serving import ADMIN, listening, with_tokens
from tests.found import program

from seawall import Annotations, ApprovalSettings, Pipeline, Policies, ToolContext, tool
from seawall.policy.ready_made import ready_made

expect.set_options(timeout=20_000)  # a busy machine draws slowly

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from playwright.async_api import Page


@tool(annotations=Annotations.for_reading(), category="arithmetic")
def divide(a: float, b: float, exact: bool = False) -> float:
    """Divide one number by another."""
    return a / b


@tool(annotations=Annotations.for_reading(), category="arithmetic")
async def count(n: int, context: ToolContext) -> str:
    """Count aloud."""
    context.progress("counting", 1, n)
    return f"counted to {n}"


@tool(annotations=Annotations.for_destroying(), category="storage")
def drop_table(name: str) -> str:
    """Drop a table."""
    return f"<b>{name}</b> is gone"


@tool(annotations=Annotations.for_reading(), category="storage")
def secret(word: str) -> str:
    """Not for the console."""
    return word


TOOLS = [divide, count, drop_table, secret]
FLAGS = ["--no-sandbox", "--enable-precise-memory-info", "--js-flags=--expose-gc"]


@asynccontextmanager
async def page_of(
    pipeline: Pipeline | None = None,
    *,
    rows: int = 4,
    tokens: tuple[str, ...] = ("admin",),
    token: str | None = None,
    **context: Any,
) -> AsyncIterator[Page]:
    """The console in Chromium; any error on the page fails the test."""
    settings = with_tokens(console_allow=("divide", "count", "drop_*", "tool_*"))
    settings["tokens"] = settings["tokens"].only(*tokens)
    chromium = program("chromium", "chromium-browser", "google-chrome")
    policies = Policies.load(ready_made("gateway"))
    async with (
        listening(pipeline or Pipeline(TOOLS, policies=policies), **settings) as base,
        async_playwright() as driver,
    ):
        browser = await driver.chromium.launch(executable_path=chromium, args=FLAGS)
        page = await (await browser.new_context(**context)).new_page()
        errors: list[str] = []
        page.on("pageerror", lambda error: errors.append(str(error)))
        if token is not None:
            await page.add_init_script(f"sessionStorage.setItem('seawall-token', '{token}')")
        await page.goto(base)
        await expect(page.locator("#list button")).to_have_count(rows)
        if rows:
            await expect(page.locator("#live")).to_have_text("live")
        yield page
        await browser.close()
        assert errors == []


def waiting() -> Pipeline:
    """A pipeline whose calls wait for a person where one has to answer."""
    policies = Policies.load(ready_made("gateway"))
    return Pipeline(TOOLS, policies=policies, approvals=ApprovalSettings())


@asynccontextmanager
async def deciding(pipeline: Pipeline, **context: Any) -> AsyncIterator[Page]:
    """The console for whom may approve, as far as the first request is shown and can be pressed."""
    async with page_of(pipeline, token=ADMIN, **context) as page:
        await expect(page.locator("#approvals [data-key^=approve]").first).to_be_enabled()
        yield page


@asynccontextmanager
async def standing_still(page: Page) -> AsyncIterator[None]:
    """What has moved does not settle meanwhile, however long a busy machine takes to look."""
    await page.evaluate("{ const now = performance.now(); performance.now = () => now; }")
    yield
    await page.evaluate("delete performance.now")


async def to(page: Page, selector: str) -> None:
    """Go on by Tab until the focus is there."""
    for _ in range(80):
        await page.keyboard.press("Tab")
        if await page.evaluate("wanted => document.activeElement.matches(wanted)", selector):
            return
    raise AssertionError(f"{selector} cannot be reached by Tab")
