"""What came of a call, on the card of its request and at the form; in a real browser."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Literal

import pytest
from playwright.async_api import expect
from tests.edges.gateway.looking import deciding, page_of, waiting
from tests.edges.gateway.page.test_console import answer_elsewhere, ask_for, button
from tests.edges.gateway.serving import ADMIN, APPROVER

from seawall import (
    Annotations,
    ApprovalSettings,
    Pipeline,
    Policies,
    Session,
    Tool,
    tool,
)
from seawall.policy.ready_made import ready_made

if TYPE_CHECKING:
    from playwright.async_api import Route

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")  # of the browser's driver


async def test_what_an_approved_call_gave_is_shown_on_its_card_and_leads_to_its_attempts() -> None:
    pipeline = waiting()
    (request,) = await ask_for(pipeline, "users")
    async with deciding(pipeline) as page:
        await button(page, "approve", request).click()
        came = page.locator(f"[data-request={request}] .came")
        await expect(came.locator("strong")).to_have_text("done")
        await expect(came.locator("pre")).to_have_text("<b>users</b> is gone")
        await expect(came.locator(".quiet")).to_contain_text("1 attempt · ")

        link = came.get_by_role("button", name="its attempts of")
        await link.focus()
        await page.keyboard.press("Enter")
        outcomes = page.locator("#attempts-body td:nth-child(3) > span")
        await expect(outcomes).to_have_text(["approval required", "success"])
        await page.keyboard.press("Escape")
        await expect(link).to_be_focused()


async def test_who_may_only_approve_sees_what_came_of_it_without_its_attempts() -> None:
    pipeline = waiting()
    (request,) = await ask_for(pipeline, "users")
    tokens = ("caller", "approver", "admin")
    async with page_of(pipeline, rows=0, tokens=tokens, token=APPROVER) as page:
        await button(page, "approve", request).click()
        await expect(page.locator(".came pre")).to_have_text("<b>users</b> is gone")
        await expect(page.locator(".came button")).to_have_count(0)


async def test_of_a_denied_call_it_is_shown_what_the_model_is_told() -> None:
    pipeline = waiting()
    async with page_of(pipeline, token=ADMIN) as page:
        await page.click("#list [data-key=drop_table]")
        await page.fill("[data-name=name]", "users")
        await page.click("#run")
        await expect(page.locator("#outcome strong")).to_have_text("waits for approval")
        await page.get_by_label("Reason", exact=True).fill("not on a <b>Friday</b>")
        await page.get_by_role("button", name="Deny").click()
        said = "a person denied it: not on a <b>Friday</b>"
        await expect(page.locator(".verdict")).to_have_text("Denied, by admin.")
        await expect(page.locator(".came")).to_contain_text("The model is told:")
        await expect(page.locator(".came")).to_contain_text(said)
        await expect(page.locator("#outcome strong")).to_have_text("approval denied")
        await expect(page.locator("#outcome")).to_contain_text(said)


async def test_a_call_of_this_page_that_is_taken_back_is_said_at_its_form() -> None:
    pipeline = waiting()
    async with page_of(pipeline, token=ADMIN) as page:
        await page.click("#list [data-key=drop_table]")
        await page.fill("[data-name=name]", "users")
        await page.click("#run")
        await expect(page.locator("#outcome strong")).to_have_text("waits for approval")
        (waits,) = await pipeline.approvals.list()
        await answer_elsewhere(page, waits.id, "withdraw")
        said = "Taken back by who asked; nothing was run."
        await expect(page.locator("#outcome")).to_have_text(said)


async def test_a_result_moves_no_request_that_waits_below_it() -> None:
    pipeline = waiting()
    below, above = await ask_for(pipeline, "below", "words and " * 20)
    async with deciding(pipeline, viewport={"width": 1280, "height": 1600}) as page:
        before = await button(page, "deny", below).bounding_box()
        await button(page, "approve", above).click()
        came = page.locator(f"[data-request={above}] .came")
        await expect(came.locator("pre")).to_contain_text("words and words")
        assert await button(page, "deny", below).bounding_box() == before
        card: Any = await page.locator(f"[data-request={above}]").bounding_box()
        shown: Any = await came.bounding_box()
        assert shown["height"] > 40
        assert shown["y"] + shown["height"] <= card["y"] + card["height"]


async def test_a_slow_answer_to_a_decision_takes_back_nothing_of_what_came_of_it() -> None:
    pipeline = waiting()
    (request,) = await ask_for(pipeline, "users")
    shown = asyncio.Event()
    sent = asyncio.Event()

    async def hold(route: Route) -> None:
        answer = await route.fetch()
        await shown.wait()
        await route.fulfill(response=answer)
        sent.set()

    async with deciding(pipeline) as page:
        await page.route(f"**/approvals/{request}", hold)
        await button(page, "approve", request).click()
        await expect(page.locator(".verdict")).to_have_text("Approved, and run.")
        shown.set()
        await sent.wait()
        # Asked in the page after the answer: what the answer does is done by then.
        await page.evaluate("fetch('/healthz').then((answer) => answer.text())")
        await expect(page.locator(".verdict")).to_have_text("Approved, and run.")
        await expect(page.locator(".came pre")).to_have_text("<b>users</b> is gone")


async def test_what_came_of_it_while_there_was_no_stream_is_asked_for() -> None:
    pipeline = waiting()
    (request,) = await ask_for(pipeline, "users")
    async with deciding(pipeline) as page:
        hello = {"body": "event: hello\ndata: {}\n\n", "content_type": "text/event-stream"}
        await page.route("**/events", lambda route: route.fulfill(**hello))
        await page.reload()
        await expect(button(page, "approve", request)).to_be_enabled()
        await button(page, "approve", request).click()
        await expect(page.locator(".came pre")).to_have_text("<b>users</b> is gone")
        await expect(page.locator(".verdict")).to_have_text("Approved, and run.")


async def test_of_a_very_long_text_a_part_is_drawn_and_the_rest_is_counted() -> None:
    async def run(_: dict[str, Any], __: Any) -> str:
        return "x" * 120_000

    schema = {"type": "object", "properties": {}}
    long = Tool("divide", "Say much.", schema, run, annotations=Annotations.for_reading())
    async with page_of(Pipeline([long], policies=_gateway()), rows=1) as page:
        await page.click("#list [data-key=divide]")
        await page.click("#run")
        await expect(page.locator("#outcome pre")).to_have_text("x" * 100_000)
        await expect(page.locator("#outcome")).to_contain_text(
            "20,000 more characters are not drawn here."
        )


def _gateway() -> Policies:
    return Policies.load(ready_made("gateway"))


async def test_the_result_of_an_earlier_call_does_not_stand_for_that_of_a_later_one() -> None:
    let = asyncio.Event()

    async def slow(_: dict[str, Any], __: Any) -> str:
        await let.wait()
        return "of the first"

    async def quick(_: dict[str, Any], __: Any) -> str:
        return "of the second"

    schema = {"type": "object", "properties": {}}
    reading = Annotations.for_reading()
    tools = [
        Tool("divide", "Take long.", schema, slow, annotations=reading),
        Tool("count", "Take no time.", schema, quick, annotations=reading),
    ]
    async with page_of(Pipeline(tools), rows=2) as page:
        await page.click("#list [data-key=divide]")
        await page.click("#run")
        await expect(page.locator("#outcome")).to_contain_text("running as")
        await page.click("#list [data-key=count]")
        await page.click("#run")
        await expect(page.locator("#outcome pre")).to_have_text("of the second")
        let.set()
        await expect(page.locator("#spans tr")).to_have_count(2)
        await page.evaluate("fetch('/healthz').then((answer) => answer.text())")
        await expect(page.locator("#outcome pre")).to_have_text("of the second")


MARKUP = "<img src=x onerror=alert(1)><b>bold</b>"


async def test_whatever_is_shown_is_text_and_never_markup() -> None:
    @tool(name="divide", title=MARKUP, category=MARKUP, annotations=Annotations.for_destroying())
    def hostile(word: str = MARKUP, kind: Literal["<b>a</b>", "b"] = "b") -> dict[str, str]:
        """Say <b>it</b>."""
        if word == "fail":
            raise ValueError(MARKUP)
        return {MARKUP: word}

    policies = Policies.load(ready_made("gateway"))
    pipeline = Pipeline([hostile], policies=policies, approvals=ApprovalSettings())
    session = Session(MARKUP, caller=MARKUP)
    async with page_of(pipeline, rows=1, token=ADMIN) as page:
        await page.click("#list [data-key=divide]")
        await expect(page.locator("#detail-title")).to_have_text(f"divide: {MARKUP}")
        words = (MARKUP, "fail", "denied")
        made = [
            await pipeline.call("divide", {"word": word}, session=session, call_id=f"{MARKUP}{at}")
            for at, word in enumerate(words)
        ]
        requests = [(one.metadata or {})["approval_id"] for one in made]
        await expect(page.locator("#approvals li")).to_have_count(3)
        await button(page, "approve", requests[0]).click()
        await button(page, "approve", requests[1]).click()
        await page.fill(f"#reason-{requests[2]}", MARKUP)
        await button(page, "deny", requests[2]).click()
        came = page.locator(".came")
        await expect(came).to_have_count(3)
        await expect(came.filter(has_text="a person denied it:")).to_contain_text(MARKUP)
        await expect(page.locator(f"#which-{requests[0]}")).to_contain_text(f"by {MARKUP}")
        await came.last.get_by_role("button", name="its attempts of").click()
        await expect(page.locator("#attempts-title")).to_contain_text(MARKUP)
        await expect(page.locator("#attempts-body tr")).not_to_have_count(0)
        assert await page.locator("img, #approvals b, #detail b, dialog b").count() == 0
