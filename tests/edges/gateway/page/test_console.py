"""What a person presses is what they saw, whatever comes or goes meanwhile; in a real browser."""

from __future__ import annotations

import asyncio
import json
import re
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from playwright.async_api import expect
from tests.edges.gateway.looking import (
    TOOLS,
    count,
    deciding,
    divide,
    page_of,
    standing_still,
    waiting,
)
from tests.edges.gateway.serving import ADMIN, bearer

from seawall import Annotations, Pipeline, Policies, Tool
from seawall.pipeline.visible import UNSEEN
from seawall.policy.ready_made import ready_made

if TYPE_CHECKING:
    from playwright.async_api import Locator, Page, Route

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")  # of the browser's driver


async def ask_for(pipeline: Pipeline, *names: str) -> list[str]:
    """Call for what a person has to approve; the ids of the requests."""
    results = [await pipeline.call("drop_table", {"name": name}) for name in names]
    return [(result.metadata or {})["approval_id"] for result in results]


def json_of(name: str) -> str:
    return json.dumps({"name": name}, indent=2)


async def answer_elsewhere(page: Page, request: str, decision: str) -> None:
    # Long: the gateway is of this process, which may have to wait for the machine.
    async with httpx.AsyncClient(base_url=page.url, headers=bearer(ADMIN), timeout=60) as client:
        answer = await client.post(f"/approvals/{request}", json={"decision": decision})
        assert answer.status_code == 200


def button(page: Page, decision: str, request: str) -> Locator:
    return page.locator(f"[data-key={decision}-{request}]")


async def point_at(page: Page, wanted: Locator) -> dict[str, float]:
    """Let the pointer rest on it; where it is."""
    await wanted.scroll_into_view_if_needed()
    box: Any = await wanted.bounding_box()
    await page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    return dict(box)


async def press(page: Page) -> None:
    """Press what is under the pointer, whatever that is."""
    await page.mouse.down()
    await page.mouse.up()


async def test_a_request_that_arrives_takes_no_place_under_the_pointer() -> None:
    pipeline = waiting()
    (bob,) = await ask_for(pipeline, "bob")
    async with deciding(pipeline) as page:
        before = await point_at(page, button(page, "approve", bob))
        (eve,) = await ask_for(pipeline, "eve")
        await expect(page.locator("#waiting")).to_have_text("1 shown, 1 new.")
        assert await button(page, "approve", bob).bounding_box() == before
        await press(page)
        await expect(page.locator(".verdict")).to_have_text("Approved, and run.")

        assert (await pipeline.approvals.show(bob)).status == "done"
        assert (await pipeline.approvals.show(eve)).status == "pending"
        assert await page.locator("#approvals li").count() == 1
        await page.click("#show-new")
        await expect(page.locator("#approvals pre")).to_have_text([json_of("eve")])
        await expect(page.locator("#waiting")).to_have_text("1 shown.")


async def test_a_request_that_is_answered_elsewhere_keeps_its_place() -> None:
    pipeline = waiting()
    below, above = await ask_for(pipeline, "below", "above")
    async with deciding(pipeline) as page:
        before = await point_at(page, button(page, "deny", below))
        await answer_elsewhere(page, above, "withdraw")
        verdict = page.locator(f"[data-request={above}] .verdict")
        await expect(verdict).to_have_text("Taken back by who asked.")
        assert await button(page, "deny", below).bounding_box() == before
        await press(page)
        await expect(page.locator(f"[data-request={below}] .verdict")).to_contain_text("Denied")

    assert (await pipeline.approvals.show(below)).status == "denied"


async def test_a_second_press_at_the_same_place_answers_nothing_else() -> None:
    pipeline = waiting()
    below, above = await ask_for(pipeline, "below", "above")
    async with deciding(pipeline) as page:
        await point_at(page, button(page, "approve", above))
        for _ in range(4):
            await press(page)
        await expect(page.locator(".verdict")).to_have_text("Approved, and run.")
        await press(page)
        await expect(page.locator("#waiting")).to_have_text("1 shown.")

    assert (await pipeline.approvals.show(below)).status == "pending"


async def test_what_has_just_moved_takes_no_press_and_says_so() -> None:
    pipeline = waiting()
    below, above = await ask_for(pipeline, "below", "above")
    async with deciding(pipeline) as page:
        aimed = await point_at(page, button(page, "approve", below))
        other: Any = await button(page, "approve", above).bounding_box()
        async with standing_still(page):
            # As a page translator or an extension would: nothing of ours moves it so far.
            await page.evaluate(
                """by => { const all = document.createElement("div"); all.style.height = `${by}px`;
                document.getElementById("approvals-title").before(all); }""",
                aimed["y"] - other["y"],
            )
            await press(page)
            await expect(page.locator("#banner")).to_contain_text("has just moved")
            await expect(button(page, "approve", above)).to_have_attribute("aria-disabled", "true")
            assert [one.status for one in await pipeline.approvals.list()] == ["pending", "pending"]

        await expect(button(page, "approve", above)).to_be_enabled()
        await button(page, "approve", above).click()
        await expect(page.locator("#banner")).to_be_hidden()
        await expect(page.locator(f"[data-request={above}] .verdict")).to_contain_text("Approved")

    assert (await pipeline.approvals.show(below)).status == "pending"


async def test_a_new_card_takes_no_press_in_its_first_moment() -> None:
    pipeline = waiting()
    async with page_of(pipeline, token=ADMIN) as page:
        await expect(page.locator("#waiting")).to_have_text("Nothing waits.")
        async with standing_still(page):
            (request,) = await ask_for(pipeline, "users")
            approve = button(page, "approve", request)
            await expect(approve).to_have_attribute("aria-disabled", "true")
            await approve.dispatch_event("click")
            await expect(page.locator("#banner")).to_contain_text("has just moved")
        await expect(approve).to_be_enabled()

    assert (await pipeline.approvals.show(request)).status == "pending"


async def test_the_page_and_python_have_one_table_and_it_has_all_that_unicode_ignores() -> None:
    async with page_of(Pipeline([]), rows=0) as page:
        found = await page.evaluate(TABLES)

    table = {point for first, last in UNSEEN for point in range(first, last + 1)}
    assert set(found["table"]) == table
    assert set(found["ignored"]) <= table
    assert len(found["ignored"]) > 4_000


TABLES = """async () => {
  const { UNSEEN } = await import("/assets/unseen.js");
  const ignored = /[\\p{Default_Ignorable_Code_Point}\\p{Bidi_Control}\\p{Z}]/u;
  const found = { table: [], ignored: [] };
  for (let point = 0; point <= 0x10ffff; point += 1) {
    const one = String.fromCodePoint(point);
    if (one.search(UNSEEN) === 0) found.table.push(point);
    if (point !== 0x20 && ignored.test(one)) found.ignored.push(point);
  }
  return found;
}"""


async def test_what_nobody_sees_is_written_out_on_the_page() -> None:
    pipeline = waiting()
    hidden = "\u3164\u2800\ufe0f\U000e0100\u034f\u115f\uffa0\u00a0"
    await ask_for(pipeline, f"bob{hidden}")
    async with deciding(pipeline) as page:
        written = "\\u3164\\u2800\\ufe0f\\udb40\\udd00\\u034f\\u115f\\uffa0\\u00a0"
        await expect(page.locator("#approvals pre")).to_contain_text(f'"bob{written}"')
        assert not set(hidden) & set(await page.locator("body").inner_text())


async def test_scrolling_holds_up_no_press_and_being_scrolled_back_does() -> None:
    pipeline = waiting()
    asked = await ask_for(pipeline, *(f"table {number}" for number in range(12)))
    async with (
        deciding(pipeline, viewport={"width": 1200, "height": 500}) as page,
        standing_still(page),
    ):
        # Both at once, before the page is told of the scrolling.
        await page.evaluate("scrollTo(0, 600); document.getElementById('who').hidden = true")
        await page.evaluate(FRAMES)
        await expect(button(page, "deny", asked[5])).to_be_enabled()
        await page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
        await page.evaluate(FRAMES)
        lower = "document.querySelector('.side > section:last-child').hidden = true"
        await page.evaluate(f"document.body.style.paddingBottom = 0; {lower}")
        await expect(button(page, "deny", asked[0])).to_have_attribute("aria-disabled", "true")


FRAMES = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
"""By then the page was told of a scrolling."""


async def test_what_is_not_shown_cannot_be_approved_before_it_is() -> None:
    pipeline = waiting()
    (request,) = await ask_for(pipeline, "x" * 3_000 + "; DROP TABLE users;" + "y" * 3_000)
    async with page_of(pipeline, token=ADMIN) as page:
        approve = button(page, "approve", request)
        await expect(page.locator("#approvals .outcome")).to_contain_text("is not shown")
        await expect(approve).to_be_disabled()
        await page.locator(f"[data-key=all-{request}]").focus()
        await page.keyboard.press("Enter")
        await expect(page.locator("#approvals pre")).to_contain_text("DROP TABLE users")
        await expect(page.locator("#approvals pre")).to_be_focused()
        await expect(page.locator("#approvals .outcome")).to_contain_text("All of the arguments")
        await approve.click()
        await expect(page.locator(".verdict")).to_have_text("Approved, and run.")


async def test_the_keyboard_stays_at_the_request_that_it_was_at() -> None:
    pipeline = waiting()
    bob, ann = await ask_for(pipeline, "bob", "ann")
    async with deciding(pipeline) as page:
        await button(page, "approve", bob).focus()
        await ask_for(pipeline, "eve")
        await expect(page.locator("#waiting")).to_have_text("2 shown, 1 new.")
        await expect(button(page, "approve", bob)).to_be_focused()
        await page.keyboard.press("Enter")
        await expect(page.locator(f"[data-request={bob}] .verdict")).to_be_focused()
        await expect(page.locator(f"[data-request={bob}] .verdict")).to_contain_text("Approved")

        await button(page, "approve", ann).focus()
        await answer_elsewhere(page, ann, "deny")
        verdict = page.locator(f"[data-request={ann}] .verdict")
        await expect(verdict).to_have_text("Denied, by admin.")
        await expect(verdict).to_be_focused()


async def test_a_button_says_to_a_screen_reader_what_it_answers() -> None:
    pipeline = waiting()
    (request,) = await ask_for(pipeline, "users")
    async with deciding(pipeline) as page:
        approve = page.get_by_role("button", name="Approve drop_table", exact=True)
        await expect(approve).to_have_accessible_description(re.compile(rf"^{request} · asked "))
        await expect(page.get_by_role("status").filter(has_text="1 shown.")).to_be_visible()


async def test_a_decision_is_held_to_what_was_shown() -> None:
    pipeline = waiting()
    (request,) = await ask_for(pipeline, "users")
    sent: list[Any] = []
    async with deciding(pipeline) as page:
        page.on("request", lambda one: sent.append(one.post_data_json) if one.post_data else None)
        shown = await page.locator("#approvals .digest").inner_text()
        await button(page, "deny", request).click()
        await expect(page.locator(".verdict")).to_contain_text("Denied")

    assert sent == [{"decision": "deny", "reason": "", "digests": [shown.split()[1]]}]


async def test_a_stream_that_begins_anew_moves_nothing_either() -> None:
    pipeline = waiting()
    (bob,) = await ask_for(pipeline, "bob")
    async with page_of(pipeline, token=ADMIN) as page:
        await expect(button(page, "approve", bob)).to_be_enabled()
        # From here on each stream is over as soon as it has begun.
        hello = {"body": "event: hello\ndata: {}\n\n", "content_type": "text/event-stream"}
        await page.route("**/events", lambda route: route.fulfill(**hello))
        await page.reload()
        await expect(button(page, "approve", bob)).to_be_enabled()
        before = await point_at(page, button(page, "approve", bob))
        await ask_for(pipeline, "eve")
        await expect(page.locator("#waiting")).to_have_text("1 shown, 1 new.")
        assert await button(page, "approve", bob).bounding_box() == before
        await answer_elsewhere(page, bob, "withdraw")
        await expect(page.locator(".verdict")).to_have_text("Taken back by who asked.")


async def test_older_requests_are_counted_and_shown_below_when_they_are_asked_for() -> None:
    pipeline = waiting()
    asked = await ask_for(pipeline, *(f"table {number}" for number in range(103)))
    async with deciding(pipeline) as page:
        await expect(page.locator("#left")).to_have_text("3 older wait")
        newest = await button(page, "approve", asked[-1]).bounding_box()
        await page.locator("#older").focus()
        await page.keyboard.press("Enter")
        await expect(page.locator("#approvals li")).to_have_count(103)
        await expect(page.locator(f"[data-request={asked[2]}]")).to_be_focused()
        await expect(page.locator("#older")).to_be_hidden()
        await expect(page.locator("#waiting")).to_have_text("103 shown.")
        await page.evaluate("scrollTo(0, 0)")
        assert await button(page, "approve", asked[-1]).bounding_box() == newest


async def test_a_tool_that_takes_the_place_under_the_pointer_is_not_chosen() -> None:
    pipeline = Pipeline(TOOLS)
    async with page_of(pipeline) as page:
        await point_at(page, page.locator("#list [data-key=drop_table]"))
        async with standing_still(page):
            pipeline.registry.unregister("divide")
            await expect(page.locator("#list .name")).to_have_count(3)
            await press(page)
            await expect(page.locator("#banner")).to_contain_text("has just moved")
        await expect(page.locator("#detail-title")).to_have_text("No tool chosen")


async def run(arguments: dict[str, Any], _: Any) -> Any:
    return {"ran": arguments}


def taking(name: str, **properties: Any) -> Tool:
    """A harmless tool with these arguments."""
    schema = {"type": "object", "properties": properties}
    return Tool(name, f"The tool {name}.", schema, run, annotations=Annotations.for_reading())


TEXT = {"type": "string"}


async def test_a_schema_that_is_true_is_a_field_for_any_json() -> None:
    pipeline = Pipeline([taking("divide", q=TEXT), taking("count", x=True, y={"anyOf": [True]})])
    async with page_of(pipeline, rows=2) as page:
        await page.click("#list [data-key=divide]")
        await expect(page.locator("#try label")).to_have_text(["q"])
        await page.click("#list [data-key=count]")
        await expect(page.locator("#detail-title")).to_have_text("count")
        await expect(page.locator("#try label")).to_have_text(["x", "y"])
        await page.fill("#field-0", "[1]")
        await page.fill("#field-1", "two")
        await page.click("#run")
        await expect(page.locator("#outcome pre")).to_contain_text('{"x":[1],"y":"two"}')


@pytest.mark.parametrize(
    "names",
    [
        ("elements", "submit", "length", "querySelectorAll", "dataset"),
        ("__proto__", "constructor", "toString", "append", "id"),
    ],
)
async def test_an_argument_may_be_named_as_what_a_form_has_itself(names: tuple[str, ...]) -> None:
    pipeline = Pipeline([taking("divide", **dict.fromkeys(names, TEXT))])
    async with page_of(pipeline, rows=1) as page:
        await page.click("#list [data-key=divide]")
        for number in range(len(names)):
            await page.fill(f"#field-{number}", f"value {number}")
        await page.click("#run")
        given = {name: f"value {number}" for number, name in enumerate(names)}
        shown = page.locator("#outcome pre")
        await expect(shown).to_contain_text(json.dumps({"ran": given}, separators=(",", ":")))


async def test_only_what_was_sent_and_not_answered_is_told_as_the_gateway_gone() -> None:
    pipeline = Pipeline([taking("divide", q=TEXT)])
    async with page_of(pipeline, rows=1) as page:
        await page.click("#list [data-key=divide]")
        await page.evaluate(
            "() => { HTMLFormElement.prototype.querySelectorAll ="
            " () => { throw Error('of the page'); }; }"
        )
        await page.click("#run")
        await expect(page.locator("#outcome")).to_have_text("This page cannot do that: of the page")

        await page.reload()
        await page.route("**/console/call", lambda route: route.abort())
        await page.click("#list [data-key=divide]")
        await page.click("#run")
        await expect(page.locator("#outcome")).to_contain_text("Whether the call ran is not known")
        await expect(page.locator("#run")).to_be_enabled()
        cut = {"content_type": "text/event-stream", "body": ": begun\n\n"}
        await page.route("**/console/call", lambda route: route.fulfill(**cut))
        await page.click("#run")
        await expect(page.locator("#outcome")).to_contain_text("went away")


async def test_the_form_of_a_tool_never_stands_under_the_name_of_another() -> None:
    pipeline = Pipeline([taking("divide", q=TEXT), taking("count", q=TEXT)])
    async with page_of(pipeline, rows=2) as page:
        await page.click("#list [data-key=divide]")
        await expect(page.locator("#run")).to_be_enabled()
        # What nobody can draw: the gateway, or something on the way, answers no tool at all.
        await page.route("**/tools/count", lambda route: route.fulfill(json={"name": "count"}))
        await page.click("#list [data-key=count]")
        await expect(page.locator("#detail-body")).to_contain_text("It cannot be shown")
        await expect(page.locator("#detail-title")).to_have_text("count")
        await expect(page.locator("#run")).to_have_count(0)


async def test_a_form_keeps_what_was_typed_when_its_tool_is_defined_anew() -> None:
    other = taking("divide", a={"type": "number"})
    pipeline = Pipeline([divide, count])
    async with page_of(pipeline, rows=2) as page:
        await page.click("#list [data-key=divide]")
        await page.fill("[data-name=a]", "3")
        async with standing_still(page):
            pipeline.registry.register(other, on_duplicate="replace")
            await expect(page.locator("#detail-body")).to_contain_text("The tool divide.")
            await expect(page.locator("[data-name=a]")).to_have_value("3")
            await expect(page.locator("#run")).to_have_attribute("aria-disabled", "true")


async def test_rows_of_attempts_stay_while_others_come() -> None:
    pipeline = Pipeline(TOOLS)
    await pipeline.call("divide", {"a": 1, "b": 2})
    async with page_of(pipeline) as page:
        await expect(page.locator("#spans tr")).to_have_count(1)
        await page.evaluate("document.querySelector('#spans tr').dataset.mine = 'yes'")
        for _ in range(9):
            await pipeline.call("count", {"n": 1})
        await expect(page.locator("#spans tr")).to_have_count(10)
        await expect(page.locator("#spans tr").last).to_have_attribute("data-mine", "yes")
        for _ in range(60):
            await pipeline.call("count", {"n": 1})
        await expect(page.locator("#spans tr")).to_have_count(50)
        await expect(page.locator("#spans [data-mine]")).to_have_count(0)


class Held:
    """Answers of the gateway that come to the page when they are let go, as they were made."""

    def __init__(self) -> None:
        self.made = asyncio.Event()
        self.let = asyncio.Event()

    async def __call__(self, route: Route) -> None:
        answer = await route.fetch()
        self.made.set()
        await self.let.wait()
        await route.fulfill(response=answer)


async def test_a_request_that_arrives_while_the_list_is_asked_for_is_still_counted() -> None:
    pipeline = waiting()
    await ask_for(pipeline, "bob")
    async with deciding(pipeline) as page:
        await ask_for(pipeline, "eve")
        await expect(page.locator("#waiting")).to_have_text("1 shown, 1 new.")
        held = Held()
        await page.route("**/approvals?status=pending", held, times=1)
        await page.click("#show-new")
        await held.made.wait()
        await ask_for(pipeline, "ann")
        await expect(page.locator("#waiting")).to_have_text("1 shown, 2 new.")
        held.let.set()
        await expect(page.locator("#waiting")).to_have_text("2 shown, 1 new.")


async def test_a_request_that_is_answered_while_the_list_is_asked_for_is_not_shown_as_waiting() -> (
    None
):
    pipeline = waiting()
    (bob,) = await ask_for(pipeline, "bob")
    async with deciding(pipeline) as page:
        (eve,) = await ask_for(pipeline, "eve")
        await expect(page.locator("#waiting")).to_have_text("1 shown, 1 new.")
        held = Held()
        await page.route("**/approvals?status=pending", held, times=1)
        await page.click("#show-new")
        await held.made.wait()
        for request in (eve, bob):
            await answer_elsewhere(page, request, "withdraw")
        await expect(page.locator(f"[data-request={bob}] .verdict")).to_be_visible()
        held.let.set()
        await expect(page.locator("#approvals li")).to_have_count(0)
        await expect(page.locator("#waiting")).to_have_text("Nothing waits.")


async def test_an_answer_about_a_tool_that_was_slow_takes_no_newer_one_s_place() -> None:
    pipeline = Pipeline([taking("divide", old=TEXT), taking("count", q=TEXT)])
    async with page_of(pipeline, rows=2) as page:
        held = Held()
        await page.route("**/tools/divide", held, times=1)
        await page.click("#list [data-key=divide]")
        await held.made.wait()
        pipeline.registry.register(taking("divide", new=TEXT), on_duplicate="replace")
        await expect(page.locator("#try label")).to_have_text(["new"])
        held.let.set()
        await page.evaluate("fetch('/healthz').then((answer) => answer.text())")
        await expect(page.locator("#try label")).to_have_text(["new"])


async def test_what_a_button_does_is_said_anew_when_the_policy_changes_and_it_settles() -> None:
    schema = {"type": "object", "properties": {"name": TEXT}}
    changing = Tool("divide", "Rename it.", schema, run, annotations=Annotations.for_changing())
    pipeline = Pipeline([changing, count])
    async with page_of(pipeline, rows=2) as page:
        await page.click("#list [data-key=divide]")
        await page.fill("[data-name=name]", "users")
        await expect(page.locator("#run")).to_have_text("Run")
        async with standing_still(page):
            pipeline.replace_policies(Policies.load(ready_made("gateway")))
            await pipeline.call("count", {"n": 1})  # it is told with what is called next
            await expect(page.locator("#run")).to_have_text("Ask for approval")
            await expect(page.locator("#run")).to_have_attribute("aria-disabled", "true")
        await expect(page.locator("[data-name=name]")).to_have_value("users")


async def test_a_request_says_its_risk_once_and_its_reason_field_what_it_is_for() -> None:
    pipeline = waiting()
    await ask_for(pipeline, "users")
    async with deciding(pipeline) as page:
        card = page.locator("#approvals li")
        assert (await card.inner_text()).count("high risk") == 1
        field = page.get_by_label("Reason", exact=True)
        await expect(field).to_have_accessible_description(
            "If you deny it, the model is told this."
        )


async def test_what_waits_for_a_person_is_not_painted_as_a_failure() -> None:
    pipeline = waiting()
    await ask_for(pipeline, "users")
    await pipeline.call("divide", {"a": 1, "b": 0})
    async with deciding(pipeline) as page:
        outcomes = page.locator("#spans td:nth-child(3)")
        await expect(outcomes).to_have_text(["tool failed", "approval required"])
        await expect(outcomes.nth(0)).to_have_class("bad")
        await expect(outcomes.nth(1)).to_have_class("warn")


LINES = """() => [...document.querySelectorAll("#spans .whole, #spans .number")].map((one) => {
  const range = document.createRange();
  range.selectNodeContents(one);
  return new Set([...range.getClientRects()].map((line) => line.top)).size;
})"""


@pytest.mark.parametrize("width", [1280, 1920, 390])
async def test_times_and_milliseconds_stand_on_one_line(width: int) -> None:
    pipeline = Pipeline([taking("a_tool_that_has_a_rather_long_name", q=TEXT)])
    await pipeline.call("a_tool_that_has_a_rather_long_name", {"q": "x"})
    context: dict[str, Any] = {"viewport": {"width": width, "height": 800}, "locale": "en-US"}
    async with page_of(pipeline, rows=1, **context) as page:
        await expect(page.locator("#spans tr")).to_have_count(1)
        long = "document.querySelector('#spans .number').textContent = '1001.2'"
        await page.evaluate(long)
        assert await page.evaluate(LINES) == [1, 1]
        await expect(page.locator("#spans .whole")).to_contain_text(re.compile(r"[AP]M$"))
        scrolls = "one => one.scrollWidth > one.clientWidth"
        assert not await page.locator(".scroll:has(#spans)").evaluate(scrolls)


async def test_an_attempt_that_is_told_and_asked_for_is_one_row() -> None:
    pipeline = Pipeline(TOOLS)
    async with page_of(pipeline) as page:
        held = Held()
        await page.route("**/client", held, times=1)  # before all else that is asked for
        await page.reload()
        await held.made.wait()
        await pipeline.call("count", {"n": 1})  # after the stream began, and before the attempts
        held.let.set()
        await expect(page.locator("#live")).to_have_text("live")
        await pipeline.call("divide", {"a": 1, "b": 2})
        names = page.locator("#spans td:nth-child(2)")
        await expect(names).to_have_text(["divide", "count"])


async def test_what_is_told_while_all_is_asked_for_is_not_lost_to_the_older_answer() -> None:
    text = {"type": "object", "properties": {}}
    made = [
        Tool(f"tool_{index:03}", "It.", text, run, annotations=Annotations.for_reading())
        for index in range(3)
    ]
    pipeline = Pipeline(made)
    async with page_of(pipeline, rows=3) as page:
        held = Held()
        await page.route("**/tools?view=brief", held, times=1)
        pipeline.replace_policies(Policies.load(ready_made("gateway")))
        await pipeline.call("tool_000", {})  # with this the page is told to ask for all
        await held.made.wait()
        pipeline.registry.unregister("tool_001")
        await expect(page.locator("#list .name")).to_have_text(["tool_000", "tool_002"])
        await pipeline.call("tool_002", {})
        await expect(page.locator("#spans tr")).to_have_count(2)
        held.let.set()
        await expect(page.locator("#spans tr")).to_have_count(2)
        await page.evaluate("fetch('/healthz').then((answer) => answer.text())")
        await expect(page.locator("#list .name")).to_have_text(["tool_000", "tool_002"])
