"""The page in a real browser."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from playwright.async_api import expect
from tests.edges.gateway.looking import TOOLS, count, drop_table, page_of, secret, to, waiting
from tests.edges.gateway.serving import ADMIN, APPROVER
from tests.found import npm_package

from seawall import Annotations, BreakerPolicy, Pipeline, Policies, RunPolicy, Tool, tool
from seawall.contract.span import Outcome
from seawall.policy.ready_made import ready_made

if TYPE_CHECKING:
    from playwright.async_api import Page

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")  # of the browser's driver


async def test_the_counts_and_states_are_said_in_words() -> None:
    async with page_of() as page:
        await expect(page.locator("#counts")).to_contain_text("4all")
        await expect(page.locator("#counts")).to_contain_text("2runnable now")
        await expect(page.locator("#counts")).to_contain_text("1needs approval")
        await expect(page.locator("#counts")).to_contain_text("1not released")
        row = page.locator("#list li", has_text="drop_table")
        await expect(row).to_contain_text("locked: needs approval")
        row = page.locator("#list li", has_text="secret")
        await expect(row).to_contain_text("not released on this console")


async def test_filters_narrow_the_list() -> None:
    async with page_of() as page:
        names = page.locator("#list .name")
        await page.fill("#search", "aloud")
        await expect(names).to_have_text(["count"])
        await page.fill("#search", "")
        await page.select_option("#risk", "high")
        await expect(names).to_have_text(["drop_table"])
        await page.select_option("#risk", "")
        await page.select_option("#family", "storage")
        await expect(names).to_have_text(["drop_table", "secret"])
        await page.check("#confirm")
        await expect(names).to_have_text(["drop_table"])


async def test_a_call_is_run_and_shown_in_place_under_the_id_of_the_page() -> None:
    pipeline = Pipeline(TOOLS, policies=Policies.load(ready_made("gateway")))
    async with page_of(pipeline) as page:
        await page.click("[data-key=divide]")
        await page.fill("[data-name=a]", "3")
        await page.fill("[data-name=b]", "2")
        await page.click("#run")
        await expect(page.locator("#outcome pre")).to_have_text("1.5")
        said = await page.locator("#outcome .quiet").inner_text()
        await expect(page.locator("#spans")).to_contain_text("divide")

    request_id = said.split(" · ")[0].removeprefix("request ")
    assert request_id.startswith("console-")
    assert [span.call_id for span in pipeline.trace.spans(tool="divide")] == [request_id]


async def test_a_failure_names_the_argument_and_what_to_do() -> None:
    async with page_of() as page:
        await page.click("[data-key=divide]")
        await page.fill("[data-name=a]", "three")
        await page.click("#run")
        outcome = page.locator("#outcome")
        await expect(outcome).to_contain_text("/b: ")
        await expect(outcome).to_contain_text("Correct the arguments")
        await expect(outcome).to_contain_text("nothing was run")


async def test_what_a_tool_gives_is_text_and_never_markup() -> None:
    @tool(name="divide", annotations=Annotations.for_reading())
    def hostile() -> str:
        """<img src=x onerror=alert(1)>."""
        return "<img src=x onerror=alert(1)><script>alert(2)</script>"

    tools = [hostile, count, drop_table, secret]
    async with page_of(Pipeline(tools)) as page:
        await page.click("[data-key=divide]")
        await page.click("#run")
        await expect(page.locator("#outcome pre")).to_have_text(
            "<img src=x onerror=alert(1)><script>alert(2)</script>"
        )
        assert await page.locator("img").count() == 0


async def test_an_approval_is_asked_for_given_and_shown_by_keyboard_alone() -> None:
    pipeline = waiting()
    async with page_of(pipeline) as page:
        keys = page.keyboard
        await to(page, "#open-token")
        await keys.press("Enter")
        await keys.type(ADMIN)
        await keys.press("Enter")
        await expect(page.locator("#waiting")).to_have_text("Nothing waits.")

        await to(page, "[data-key=drop_table]")
        await keys.press("Enter")
        await to(page, "[data-name=name]")
        await keys.type("users")
        await to(page, "#run")
        await keys.press("Enter")
        await expect(page.locator("#outcome")).to_contain_text("waits for approval")
        await expect(page.locator("#approvals pre")).to_contain_text("users")

        await to(page, "#approvals button.primary")
        await expect(page.locator("#approvals button.primary")).to_be_enabled()
        await keys.press("Enter")
        await expect(page.locator("#outcome pre")).to_have_text("<b>users</b> is gone")
        await expect(page.locator("#waiting")).to_have_text("Nothing waits.")


async def test_what_is_not_seen_or_turns_the_order_is_written_out_before_it_is_approved() -> None:
    pipeline = waiting()
    async with page_of(pipeline) as page:
        await page.click("#open-token")
        await page.fill("#token", ADMIN)
        await page.keyboard.press("Enter")
        await page.click("[data-key=drop_table]")
        await page.fill("[data-name=name]", "\u202emoc.live\u200b")
        await page.click("#run")
        shown = page.locator("#approvals pre")
        await expect(shown).to_contain_text(r"\u202emoc.live\u200b")
        assert "null" not in (await page.locator("#detail-body").inner_text()).split("\n")


async def test_what_is_not_released_cannot_be_run_from_the_page() -> None:
    async with page_of() as page:
        await page.click("[data-key=secret]")
        await expect(page.locator("#run")).to_be_disabled()


@pytest.mark.parametrize(
    "context",
    [
        {"viewport": {"width": 1280, "height": 800}},
        {"viewport": {"width": 1920, "height": 1080}, "color_scheme": "dark"},
        {"viewport": {"width": 390, "height": 844}, "color_scheme": "dark"},
        {"viewport": {"width": 390, "height": 844}},
    ],
    ids=["wide and light", "wider and dark", "narrow and dark", "narrow and light"],
)
async def test_the_accessibility_check_finds_nothing_in_any_view(context: dict[str, Any]) -> None:
    axe = (npm_package("axe-core") / "axe.min.js").read_text()
    pipeline = waiting()
    async with page_of(pipeline, **context) as page:
        await page.evaluate(axe)

        async def check(view: str) -> None:
            found = await page.evaluate("axe.run()")
            said = [(one["impact"], one["id"], len(one["nodes"])) for one in found["violations"]]
            wide = await page.evaluate("document.documentElement.scrollWidth - innerWidth")
            assert (view, said, wide <= 0) == (view, [], True)

        await check("no tool is chosen, and the token is none that may approve")
        await page.click("#open-token")
        await page.keyboard.press("Enter")
        await expect(page.locator("#token-said")).not_to_be_empty()
        await check("a token that is refused")
        await page.fill("#token", ADMIN)
        await page.keyboard.press("Enter")
        await expect(page.locator("#waiting")).to_have_text("Nothing waits.")

        await page.click("[data-key=divide]")
        await page.fill("[data-name=a]", "x")
        await page.click("#run")
        await expect(page.locator("#outcome strong")).to_be_visible()
        for details in await page.locator("details").all():
            await details.locator("summary").click()
        await check("a call that failed, and all of its tool")
        await page.fill("[data-name=a]", "1")
        await page.fill("[data-name=b]", "2")
        await page.click("#run")
        await expect(page.locator("#outcome pre")).to_have_text("0.5")
        await check("a call that went well")
        await page.click("#outcome .link")
        await expect(page.locator("#attempts-body td").first).to_be_visible()
        await check("its attempts")
        await page.keyboard.press("Escape")

        for name in ("x" * 5_000, "orders", "users"):
            await pipeline.call("drop_table", {"name": name})
        await expect(page.locator("#approvals li")).to_have_count(3)
        await check("requests that wait, and have just come")
        for verb, text in (("Approve", "is gone"), ("Deny", "The model is told:")):
            card = page.locator("#approvals li", has=page.get_by_role("button", name=verb)).first
            await card.get_by_role("button", name=verb).click()
            await expect(page.locator(".came").filter(has_text=text)).to_have_count(1)
        await check("one that was approved, and one that was denied")

        pipeline.registry.unregister("divide")
        await expect(page.locator("#detail")).to_contain_text("This tool is gone")
        await page.evaluate("document.getElementById('banner').hidden = false")
        await page.evaluate("document.getElementById('banner').textContent = 'Look again.'")
        await check("a tool that is gone, and a banner")
        await page.fill("#search", "nothing is named so")
        await check("no tool is found")


async def test_the_accessibility_check_finds_nothing_where_a_token_may_do_little() -> None:
    axe = (npm_package("axe-core") / "axe.min.js").read_text()
    async with page_of(rows=0, tokens=("caller", "approver", "admin")) as page:
        await page.evaluate(axe)
        await expect(page.locator("#banner")).to_contain_text("wants a token")
        nobody = await page.evaluate("axe.run()")
        await page.click("#open-token")
        await page.fill("#token", APPROVER)
        await page.keyboard.press("Enter")
        await expect(page.locator("#live")).to_have_text("live")
        approver = await page.evaluate("axe.run()")

    assert [one["id"] for one in (*nobody["violations"], *approver["violations"])] == []


def many(number: int) -> list[Tool]:
    """As many tools as a large platform has; one of them fails."""

    async def run(arguments: dict[str, Any], _: Any) -> str:
        if arguments.get("fail"):
            raise ConnectionError
        return "done"

    schema = {"type": "object", "properties": {"fail": {"type": "boolean"}}}
    return [
        Tool(
            f"tool_{index:04}",
            f"The {index}th of many tools, with words enough to be searched in.",
            schema,
            run,
            annotations=Annotations.for_reading(),
            category=f"group {index % 7}",
        )
        for index in range(number)
    ]


async def test_thousands_of_tools_are_listed_by_pages_and_looked_at_one_by_one() -> None:
    breaker = BreakerPolicy(threshold=1)
    policies = Policies(default=RunPolicy(breaker=breaker, max_retries=0, timeout_s=5))
    pipeline = Pipeline(many(5_000), policies=policies)
    async with page_of(pipeline, rows=100) as page:
        await expect(page.locator("#shown")).to_have_text("5000 of 5000 tools, 1 to 100 shown")
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url.partition("/")[2]))
        before = await heap(page)

        await pipeline.call("tool_0007", {"fail": True})
        for index in range(2_000):
            await pipeline.call(f"tool_{index % 150:04}", {})
            if index % 100 == 0:
                await page.wait_for_timeout(20)
        row = page.locator("#list li", has_text="tool_0007")
        await expect(row).to_contain_text("circuit open")
        await expect(page.locator("#spans tr")).to_have_count(50)
        assert asked == []
        assert await heap(page) - before < 8

        await page.fill("#search", "4999")
        await expect(page.locator("#list .name")).to_have_text(["tool_4999"])
        took_ms = await page.evaluate(SEARCHING)
        assert took_ms < 500  # a tenth of it where nobody else uses the machine

        await page.fill("#search", "")
        await page.focus("#more")
        await page.keyboard.press("Enter")
        await expect(page.locator("#shown")).to_contain_text("101 to 200 shown")
        await expect(page.locator("#list button").first).to_be_focused()
        await expect(page.locator("#list .name").first).to_have_text("tool_0100")
        await page.click("#earlier")
        await expect(page.locator("#earlier")).to_be_disabled()
        await expect(page.locator("#list .name").first).to_have_text("tool_0000")


SEARCHING = """() => {
  const search = document.getElementById("search");
  const began = performance.now();
  for (const text of ["t", "to", "tool", "tool_1", "of many", "words", "none such"]) {
    search.value = text;
    search.dispatchEvent(new Event("input"));
    document.body.offsetHeight;
  }
  return (performance.now() - began) / 7;
}"""


async def heap(page: Page) -> float:
    """MiB that the page holds."""
    return float(await page.evaluate("gc(), gc(), performance.memory.usedJSHeapSize / 1048576"))


async def test_tools_that_come_and_go_are_seen() -> None:
    pipeline = Pipeline(TOOLS)
    async with page_of(pipeline) as page:
        await page.click("[data-key=count]")
        pipeline.registry.register(many(1)[0])
        await expect(page.locator("#list .name")).to_have_count(5)
        await expect(page.locator("#counts")).to_contain_text("5all")
        pipeline.registry.unregister("count")
        await expect(page.locator("#list .name")).to_have_count(4)
        await expect(page.locator("#detail")).to_contain_text("This tool is gone")


async def test_a_token_that_may_only_approve_sees_and_answers_what_waits() -> None:
    pipeline = waiting()
    await pipeline.call("drop_table", {"name": "users"})
    async with page_of(pipeline, rows=0, tokens=("caller", "approver", "admin")) as page:
        await expect(page.locator("#banner")).to_contain_text("wants a token")
        await page.click("#open-token")
        await page.fill("#token", APPROVER)
        await page.keyboard.press("Enter")
        await expect(page.locator("#who")).to_have_text(
            "You are approver: may see and answer approvals;"
            " may not list and call tools, open and close circuits."
        )
        await expect(page.locator("#banner")).to_be_hidden()
        await expect(page.locator("#list")).to_contain_text("give a token that may call")
        for part in ("#filters", "#pages", "#counts", "#detail", "#spans"):
            await expect(page.locator(part)).to_be_hidden()
        await expect(page.locator("#live")).to_have_text("live")
        await expect(page.locator("#approvals pre")).to_contain_text("users")

        await pipeline.call("drop_table", {"name": "orders"})
        await page.click("#show-new")
        await expect(page.locator("#approvals pre")).to_have_count(2)
        await page.locator("#approvals button.primary").last.click()
        await expect(page.locator("#approvals button.primary")).to_have_count(1)
        await page.get_by_role("button", name="Deny").click()
        await expect(page.locator("#waiting")).to_have_text("Nothing waits.")

    spans = pipeline.trace.spans(tool="drop_table")
    assert [span.outcome for span in spans].count(Outcome.SUCCESS) == 1
