"""Shortcuts as tools: what they run, what they are worth, what is refused, where they are kept."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from seawall.contract.annotations import Annotations, Risk
from seawall.contract.errors import ConfigurationError
from seawall.contract.failure import FailureCode
from seawall.contract.policy import RunPolicy
from seawall.orchestration.batch import BatchRunner
from seawall.orchestration.pipeline import Pipeline
from seawall.orchestration.shortcut_definition import read_shortcut
from seawall.orchestration.shortcut_store import MemoryShortcuts
from seawall.orchestration.shortcuts import (
    MAX_NESTED,
    MAX_SHORTCUTS,
    Shortcuts,
    worst_annotations,
    worst_risk,
)
from seawall.pipeline.context import MAX_DEPTH
from seawall.policy.model import Policies
from seawall.testing import FakeClock, scripted

if TYPE_CHECKING:
    from seawall.contract.decision import Decision, Prepared
    from seawall.contract.result import ToolResult
    from seawall.contract.shortcut import Shortcut
    from seawall.contract.tool import Tool
    from seawall.pipeline.context import ToolContext
    from seawall.pipeline.layer import LayerContext

TESTS = Path(__file__).parents[1]
VECTORS = {
    one["id"]: one for one in json.loads((TESTS / "vectors" / "shortcut.json").read_text())["cases"]
}

NOTE_PAGE: dict[str, Any] = {
    "id": "shortcut.note_page",
    "name": "Note a page",
    "params": [{"name": "q", "required": True}, {"name": "to", "required": True}],
    "steps": [
        {"tool": "search", "arguments": '{"query": "{q}"}'},
        {"tool": "write", "arguments": {"path": "{to}", "content": "{0}"}},
    ],
}


class Bench:
    """A pipeline on a fake clock with `search`, `write` and more tools, and its shortcuts."""

    def __init__(self, *tools: Tool, store: Any = None, **options: Any) -> None:
        self.clock = FakeClock()
        self.search = scripted("R", name="search", annotations=Annotations.for_reading())
        self.write = scripted("ok", name="write", annotations=Annotations.for_changing())
        options.setdefault("policies", Policies(default=RunPolicy(timeout_s=900)))
        self.pipeline = Pipeline([self.search, self.write, *tools], clock=self.clock, **options)
        self.shortcuts = Shortcuts(self.pipeline, store)
        for tool in self.shortcuts.tools:
            self.pipeline.registry.register(tool)

    async def call(self, name: str, arguments: Any = None) -> ToolResult:
        return await self.clock.run(self.pipeline.call(name, arguments))

    def tool(self, name: str = "shortcut.note_page") -> Tool:
        tool = self.pipeline.registry.get(name)
        assert tool is not None
        return tool

    def replace(self, name: str, **fields: Any) -> None:
        self.pipeline.registry.register(
            scripted("other", name=name, **fields), on_duplicate="replace"
        )

    def ran(self) -> list[str]:
        return [span.tool for span in reversed(self.pipeline.trace.spans()) if span.attempt]


def seen_by(tool: Tool) -> list[dict[str, Any]]:
    executor: Any = tool.executor
    calls: list[dict[str, Any]] = executor.calls
    return calls


def of(*steps: Any, name: str = "shortcut.ab", **fields: Any) -> dict[str, Any]:
    return {
        "id": name,
        "name": "X",
        "steps": [{"tool": step} if isinstance(step, str) else step for step in steps],
        **fields,
    }


async def fault_of(bench: Bench, definition: Any) -> str:
    with pytest.raises(ConfigurationError) as caught:
        await bench.shortcuts.define(definition)
    return str(caught.value)


# Vectors.


def test_every_vector_is_played() -> None:
    assert set(VECTORS) == {f"sh-{n:02}" for n in (2, 3, 5, 6, 7, 8, 9, 13, 15, 16)}


@pytest.mark.parametrize("vector", ["sh-02", "sh-03"])
async def test_ids_are_accepted_as_the_vectors_say(vector: str) -> None:
    bench = Bench()
    accepted = []
    for step in VECTORS[vector]["steps"]:
        try:
            await bench.shortcuts.define({**NOTE_PAGE, "id": step["id"]})
        except ConfigurationError:
            accepted.append(False)
        else:
            accepted.append(True)

    assert accepted == VECTORS[vector]["expect"]["accepted"]


async def test_values_and_outputs_land_in_texts_as_the_vector_says() -> None:
    bench = Bench()
    await bench.shortcuts.define(NOTE_PAGE)

    await bench.call("shortcut.note_page", VECTORS["sh-05"]["steps"][0]["call"])

    seen = [*seen_by(bench.search), *seen_by(bench.write)]
    assert seen == [json.loads(text) for text in VECTORS["sh-05"]["expect"]["args_seen"]]


async def test_numbers_and_booleans_go_in_bare_as_the_vector_says() -> None:
    vector = VECTORS["sh-06"]
    params = [{"name": name, "type": kind} for name, kind in vector["given"]["params"].items()]
    bench = Bench()
    await bench.shortcuts.define(
        of({"tool": "search", "arguments": vector["given"]["template"]}, params=params)
    )

    await bench.call("shortcut.ab", vector["steps"][0]["call"])

    assert seen_by(bench.search) == [json.loads(vector["expect"]["args_seen"])]


async def test_missing_or_unreadable_arguments_run_no_step_as_the_vector_says() -> None:
    bench = Bench()
    await bench.shortcuts.define(NOTE_PAGE)

    for step in VECTORS["sh-07"]["steps"]:
        result = await bench.call("shortcut.note_page", step["call"])
        assert result.failure is not None
        assert result.failure.code is FailureCode.INVALID_ARGUMENT
        if isinstance(step["call"], dict):
            assert "to" in result.failure.fields

    assert len(bench.ran()) == VECTORS["sh-07"]["expect"]["tool_runs"]


async def test_a_shortcut_is_as_risky_as_its_worst_step_as_the_vector_says() -> None:
    vector = VECTORS["sh-08"]
    risks = [Risk.parse(name) for name in vector["given"]["steps_risk"]]
    bench = Bench(*(scripted(name=f"t{at}", risk=risk) for at, risk in enumerate(risks)))

    await bench.shortcuts.define(of("t0", "t1", "t2"))

    assert bench.tool("shortcut.ab").effective_risk is Risk.parse(vector["expect"]["risk"])
    assert bench.tool("shortcut.ab").category == vector["expect"]["category"]


async def test_hints_are_inherited_as_the_vector_asks_for() -> None:
    vector = VECTORS["sh-09"]
    hints = {"read_only": Annotations.for_reading(), "mutating": Annotations.for_changing()}
    tools = [
        scripted(name=f"t{at}", annotations=hints[name], risk=Risk.parse(risk))
        for at, (name, risk) in enumerate(
            zip(vector["given"]["steps_annotations"], vector["given"]["steps_risk"], strict=True)
        )
    ]
    bench = Bench(*tools)

    await bench.shortcuts.define(of("t0", "t1"))

    tool = bench.tool("shortcut.ab")
    assert tool.annotations.read_only is vector["expect"]["read_only"]
    assert tool.retry_safe is vector["expect"]["retry_safe"]


async def test_recursion_is_refused_as_the_vector_asks_for() -> None:
    bench = Bench()
    await bench.shortcuts.define(of("search", name="shortcut.loop_me"))
    await bench.shortcuts.define(of("shortcut.loop_me", name="shortcut.other"))

    alone = await fault_of(bench, of("shortcut.loop_me", name="shortcut.loop_me"))
    both = await fault_of(bench, of("shortcut.other", name="shortcut.loop_me"))

    assert "call itself without end" in alone
    assert "shortcut.loop_me → shortcut.other → shortcut.loop_me" in both
    assert bench.shortcuts.list()[0].steps[0].tool == "search"


async def test_a_skeleton_is_accepted_as_the_vector_asks_for() -> None:
    first, second = VECTORS["sh-15"]["given"]["pair"]
    bench = Bench(scripted(name=first), scripted(name=second))
    for _ in range(3):
        await bench.call(first)
        await bench.clock.advance(1)
        await bench.call(second)
        await bench.clock.advance(100)

    (found,) = bench.shortcuts.mine()
    await bench.shortcuts.define(found.definition)

    assert found.tools == (first, second)
    assert len(found.definition["id"]) <= len("shortcut.") + 40


async def test_a_definition_can_be_replaced_listed_run_and_removed_as_the_vector_says() -> None:
    expect = VECTORS["sh-16"]["expect"]
    bench = Bench()

    replaced = [(await bench.shortcuts.define(NOTE_PAGE)).replaced for _ in range(2)]
    result = await bench.call("shortcut.note_page", {"q": "x", "to": "y"})
    unknown = await bench.shortcuts.run("shortcut.note_pag")

    assert replaced == expect["replaced"]
    assert len(bench.shortcuts.list()) == expect["size_after_two"]
    assert result.is_error is not expect["callable_at_once"]
    assert unknown.failure is not None
    assert unknown.failure.code == expect["unknown"]
    assert unknown.failure.hints == ("shortcut.note_page",)
    assert await bench.shortcuts.remove("shortcut.note_page") is expect["removed"]
    assert await bench.shortcuts.remove("shortcut.note_page") is False
    assert "shortcut.note_page" not in bench.pipeline.registry
    assert bench.shortcuts.list() == ()


# Running.


async def test_what_a_shortcut_gives_is_the_numbered_report_of_its_steps() -> None:
    bench = Bench()
    await bench.shortcuts.define(NOTE_PAGE)

    result = await bench.shortcuts.run("shortcut.note_page", {"q": "x", "to": "y"})

    assert result.text == "2 of 2 steps succeeded.\n\n[0] search: done\nR\n\n[1] write: done\nok"
    assert bench.ran() == ["search", "write", "shortcut.note_page"]


async def test_a_value_of_a_caller_is_never_read_as_a_reference() -> None:
    bench = Bench()
    await bench.shortcuts.define(NOTE_PAGE)

    await bench.call("shortcut.note_page", {"q": "{0} {to}", "to": "{0}"})

    assert seen_by(bench.search) == [{"query": "{0} {to}"}]
    assert seen_by(bench.write) == [{"path": "{0}", "content": "R"}]


async def test_a_param_that_is_not_given_has_its_default_or_is_left_out() -> None:
    bench = Bench()
    params = [{"name": "n", "type": "integer", "default": 3}, {"name": "m"}]
    step = {"tool": "search", "arguments": '{"n": {n}, "m": {m}, "said": "<{m}>"}'}
    await bench.shortcuts.define(of(step, params=params))

    await bench.call("shortcut.ab")
    await bench.call("shortcut.ab", {"n": 5, "m": "x"})

    assert seen_by(bench.search) == [{"n": 3, "said": "<>"}, {"n": 5, "m": "x", "said": "<x>"}]


@pytest.mark.parametrize("layers", [None, []])
async def test_a_value_too_large_to_be_inserted_is_refused_before_the_first_step(
    layers: Any,
) -> None:
    bench = Bench(layers=layers)
    params = [{"name": "text"}, {"name": "rows", "type": "array"}]
    step = {"tool": "write", "arguments": '{"text": "{text}", "rows": {rows}}'}
    await bench.shortcuts.define(of("search", step, params=params))

    for arguments in ({"text": "y" * 4001}, {"rows": list(range(5000))}):
        result = await bench.call("shortcut.ab", arguments)
        assert result.failure is not None
        assert result.failure.code is FailureCode.INVALID_ARGUMENT
        assert list(arguments) == list(result.failure.fields)

    assert bench.ran().count("search") == 0


async def test_without_an_argument_check_a_missing_param_is_still_refused() -> None:
    bench = Bench(layers=[])
    await bench.shortcuts.define(NOTE_PAGE)

    result = await bench.call("shortcut.note_page", {"q": "x"})

    assert result.failure is not None
    assert result.failure.fields == ("to",)
    assert seen_by(bench.search) == []


async def test_arguments_known_beforehand_are_checked_before_the_first_step() -> None:
    whole = {"type": "object", "properties": {"n": {"type": "integer"}}}
    bench = Bench(scripted(name="put", input_schema=whole))
    params = [{"name": "n", "required": True}]
    step = {"tool": "put", "arguments": {"n": "{n}"}}
    await bench.shortcuts.define(of("search", step, params=params))

    result = await bench.call("shortcut.ab", {"n": "many"})

    assert result.failure is not None
    assert result.failure.code is FailureCode.INVALID_ARGUMENT
    assert "Step 1 (put)" in result.failure.message
    assert seen_by(bench.search) == []


async def test_a_failed_step_is_an_error_of_the_shortcut_that_is_not_tried_again() -> None:
    broken = scripted(ValueError("boom"), name="broken", annotations=Annotations.for_reading())
    bench = Bench(broken, policies=Policies.default())
    await bench.shortcuts.define(of("search", "broken", "search"))

    result = await bench.call("shortcut.ab")

    assert result.is_error
    assert result.failure is not None
    assert result.failure.code is FailureCode.EXECUTION_FAILED
    assert "step 1 (broken) of shortcut.ab failed" in result.failure.message
    assert seen_by(bench.search) == [{}]
    assert bench.tool("shortcut.ab").retry_safe
    assert result.attempts == 1


async def test_a_shortcut_whose_tool_is_gone_says_so_and_runs_nothing() -> None:
    bench = Bench()
    await bench.shortcuts.define(NOTE_PAGE)
    bench.pipeline.registry.unregister("write")

    result = await bench.call("shortcut.note_page", {"q": "x", "to": "y"})

    assert result.failure is not None
    assert result.failure.code is FailureCode.NOT_FOUND
    assert bench.shortcuts.missing("shortcut.note_page") == ("write",)
    assert seen_by(bench.search) == []
    assert "cannot run now, as these are missing: write" in (await bench.call("shortcut_list")).text


async def test_shortcuts_may_use_shortcuts() -> None:
    bench = Bench()
    await bench.shortcuts.define(NOTE_PAGE)
    step = {"tool": "shortcut.note_page", "arguments": {"q": "{q}", "to": "n.md"}}
    await bench.shortcuts.define(of(step, params=[{"name": "q"}]))

    result = await bench.call("shortcut.ab", {"q": "x"})

    assert not result.is_error
    assert bench.ran() == ["search", "write", "shortcut.note_page", "shortcut.ab"]


# What it is worth, now.


async def test_risk_and_hints_follow_the_tools_they_come_from() -> None:
    bench = Bench()
    await bench.shortcuts.define(of("search"))
    await bench.shortcuts.define(of("shortcut.ab", name="shortcut.outer"))
    assert bench.tool("shortcut.outer").retry_safe
    assert bench.tool("shortcut.outer").effective_risk is Risk.LOW

    bench.replace("search", annotations=Annotations.for_destroying(), execution="sequential")

    for name in ("shortcut.ab", "shortcut.outer"):
        assert bench.tool(name).effective_risk is Risk.HIGH
        assert not bench.tool(name).retry_safe
        assert bench.tool(name).execution == "sequential"


async def test_a_tool_that_becomes_harmless_makes_its_shortcut_so_when_it_is_next_looked_at() -> (
    None
):
    bench = Bench()
    await bench.shortcuts.define(of("write"))
    bench.replace("write", annotations=Annotations.for_reading())
    assert bench.tool("shortcut.ab").effective_risk is Risk.MEDIUM

    await bench.call("shortcut_list")

    assert bench.tool("shortcut.ab").effective_risk is Risk.LOW
    assert bench.tool("shortcut.ab").annotations.read_only is True


async def test_steps_are_asked_about_by_what_they_are_now() -> None:
    asked: list[str] = []

    def confirm(prepared: Prepared, decision: Decision) -> bool:
        asked.append(f"{prepared.tool.name} {decision.reason}")
        return False

    bench = Bench(confirm=confirm)
    await bench.shortcuts.define(NOTE_PAGE)
    await bench.call("shortcut.note_page", {"q": "x", "to": "y"})
    assert asked == []
    bench.replace("write", risk=Risk.HIGH)

    result = await bench.call("shortcut.note_page", {"q": "x", "to": "y"})

    assert len(asked) == 1
    assert asked[0].startswith("write high risk; step 1 of shortcut.note_page, asked before any")
    assert result.failure is not None
    assert result.failure.reason == "approval_denied"
    assert len(seen_by(bench.search)) == 1


def test_the_worst_of_nothing_known_is_careful() -> None:
    assert worst_risk([None]) is Risk.MEDIUM
    assert worst_annotations([None]) == Annotations(
        read_only=False, destructive=True, idempotent=False, open_world=True
    )


def test_repeatable_steps_are_repeatable_together() -> None:
    tools = [
        scripted(name="a", annotations=Annotations.for_reading()),
        scripted(name="b", annotations=Annotations.for_overwriting()),
    ]

    found = worst_annotations(tools)

    assert found.retry_safe
    assert found.read_only is False
    assert found.destructive is True


# Definitions that are refused.


async def test_shortcuts_may_use_each_other_so_deep_and_no_deeper() -> None:
    bench = Bench()
    await bench.shortcuts.define(of("search", name="shortcut.d1"))
    for depth in range(2, MAX_NESTED + 1):
        await bench.shortcuts.define(of(f"shortcut.d{depth - 1}", name=f"shortcut.d{depth}"))

    deeper = await fault_of(bench, of(f"shortcut.d{MAX_NESTED}", name="shortcut.ab"))
    await bench.shortcuts.define(of("search", name="shortcut.base"))
    below = await fault_of(bench, of("shortcut.base", name="shortcut.d1"))

    assert f"more than {MAX_NESTED} deep" in deeper
    assert f"more than {MAX_NESTED} deep" in below


async def test_an_id_that_is_the_name_of_another_tool_is_refused() -> None:
    bench = Bench(scripted(name="shortcut.taken"))

    assert "is the name of a tool" in await fault_of(bench, of("search", name="shortcut.taken"))


async def test_there_may_be_so_many_and_no_more() -> None:
    bench = Bench()
    for number in range(MAX_SHORTCUTS):
        await bench.shortcuts.define(of("search", name=f"shortcut.n{number:03}"))

    assert "remove one first" in await fault_of(bench, of("search"))
    await bench.shortcuts.define(of("write", name="shortcut.n000"))


# The store.


class Failing(MemoryShortcuts):
    """Keeps nothing while it is `broken`."""

    broken = True

    async def save(self, shortcut: Shortcut) -> None:
        if self.broken:
            raise OSError("disk full")
        await super().save(shortcut)


async def test_what_the_store_does_not_keep_is_not_defined() -> None:
    store = Failing()
    bench = Bench(store=store)
    with pytest.raises(OSError, match="disk full"):
        await bench.shortcuts.define(NOTE_PAGE)
    assert "shortcut.note_page" not in bench.pipeline.registry

    store.broken = False
    await bench.shortcuts.define(of("search"))
    store.broken = True
    with pytest.raises(OSError, match="disk full"):
        await bench.shortcuts.define(of("write"))

    assert bench.shortcuts.list()[0].steps[0].tool == "search"
    assert not (await bench.call("shortcut.ab")).is_error
    assert bench.ran()[0] == "search"


async def test_another_pipeline_brings_back_what_was_stored() -> None:
    store = MemoryShortcuts()
    await Bench(store=store).shortcuts.define(NOTE_PAGE)
    bench = Bench(store=store)

    await bench.shortcuts.load()
    result = await bench.call("shortcut.note_page", {"q": "x", "to": "y"})

    assert not result.is_error
    assert [one.id for one in bench.shortcuts.list()] == ["shortcut.note_page"]


async def test_a_stored_definition_that_is_no_good_is_told_and_the_others_are_there() -> None:
    store = MemoryShortcuts()
    good = read_shortcut(NOTE_PAGE).shortcut
    await store.save(msgspec.structs.replace(good, id="shortcut.Bad"))
    await store.save(good)
    bench = Bench(store=store)

    with pytest.raises(ConfigurationError, match=r"shortcut\.Bad/id"):
        await bench.shortcuts.load()

    assert [one.id for one in bench.shortcuts.list()] == ["shortcut.note_page"]


async def test_a_shortcut_whose_tool_was_unregistered_is_forgotten() -> None:
    bench = Bench()
    await bench.shortcuts.define(of("search"))

    bench.pipeline.registry.unregister("shortcut.ab")

    assert bench.shortcuts.list() == ()
    assert (await bench.shortcuts.run("shortcut.ab")).is_error


# The model's tools.


async def test_a_model_defines_lists_and_runs_a_shortcut() -> None:
    bench = Bench()
    assert "There are no shortcuts" in (await bench.call("shortcut_list")).text

    first = await bench.call("shortcut_define", {"definition": NOTE_PAGE})
    again = await bench.call("shortcut_define", {"definition": json.dumps(NOTE_PAGE)})
    listed = await bench.call("shortcut_list")
    ran = await bench.call(
        "shortcut_run", {"id": "shortcut.note_page", "arguments": '{"q": "x", "to": "y"}'}
    )

    assert "shortcut.note_page is defined" in first.text
    assert "was replaced" in again.text
    assert "shortcut.note_page: Note a page" in listed.text
    assert "params: q (string, required), to (string, required)" in listed.text
    assert "steps: search, write; risk: medium" in listed.text
    assert listed.structured_content["shortcuts"][0]["missing"] == []
    assert "[1] write: done" in ran.text
    assert not ran.is_error


async def test_what_is_wrong_with_a_definition_is_told_to_the_model_with_its_place() -> None:
    bench = Bench()

    result = await bench.call("shortcut_define", {"definition": of("nope", name="x")})

    assert result.failure is not None
    assert result.failure.code is FailureCode.INVALID_ARGUMENT
    assert result.failure.fields == ("definition.id", "definition.steps.0.tool")
    assert result.failure.may_have_run is False


async def test_an_unknown_id_is_not_found_with_ids_of_shortcuts_only() -> None:
    bench = Bench()
    await bench.shortcuts.define(of("search", name="shortcut.search"))

    result = await bench.call("shortcut_run", {"id": "shortcut.serch"})

    assert result.failure is not None
    assert result.failure.code is FailureCode.NOT_FOUND
    assert result.failure.hints == ("shortcut.search",)
    assert "Nothing was run" in result.text


async def test_a_shortcut_that_is_out_of_time_does_not_count_against_what_runs_it() -> None:
    bench = Bench(scripted(("sleep", 400, "late"), name="slow"), policies=Policies.default())
    await bench.shortcuts.define(of("slow"))

    for _ in range(6):
        result = await bench.call("shortcut_run", {"id": "shortcut.ab"})

    assert result.is_error
    assert bench.pipeline.breakers.state("shortcut_run") == "closed"


async def test_a_limit_of_the_operators_for_one_shortcut_is_no_fault_of_what_runs_it() -> None:
    limits = {"shortcut.ab": RunPolicy(timeout_s=5)}
    policies = Policies(default=RunPolicy(timeout_s=900), tools=limits)
    bench = Bench(scripted(("sleep", 400, "late"), name="slow"), policies=policies)
    await bench.shortcuts.define(of("slow"))

    result = await bench.call("shortcut_run", {"id": "shortcut.ab"})

    assert result.failure is not None
    assert result.failure.code is FailureCode.EXECUTION_FAILED
    assert "shortcut.ab gave no answer within 5 s" in result.text


async def test_a_shortcut_is_not_run_by_its_id_where_tools_call_tools_too_deep() -> None:
    bench = Bench()
    await bench.shortcuts.define(of("search"))
    results: list[ToolResult] = []

    async def down(arguments: dict[str, Any], context: ToolContext) -> None:
        if arguments["depth"] > 1:
            await context.call_tool("down", {"depth": arguments["depth"] - 1})
        else:
            results.append(await context.call_tool("shortcut_run", {"id": "shortcut.ab"}))

    tool = msgspec.structs.replace(scripted(name="down"), executor=down)
    bench.pipeline.registry.register(tool)

    await bench.call("down", {"depth": MAX_DEPTH - 1})

    assert "too deep" in results[0].text
    assert seen_by(bench.search) == []


class Picky:
    """A layer that cannot be made for shortcuts with `write` in them."""

    def for_tool(self, context: LayerContext) -> None:
        if context.tool.name.startswith("shortcut.") and "write" in context.tool.description:
            raise ConfigurationError("no writing here")


async def test_a_shortcut_whose_chain_cannot_be_composed_is_not_taken() -> None:
    bench = Bench(layers=[Picky()])
    await bench.shortcuts.define(of("search"))

    refused = await bench.call("shortcut_define", {"definition": of("write")})
    other = await fault_of(bench, of("write", name="shortcut.cd"))

    assert refused.failure is not None
    assert "no writing here" in refused.failure.message
    assert "no writing here" in other
    assert [one.id for one in bench.shortcuts.list()] == ["shortcut.ab"]
    assert not (await bench.call("shortcut.ab")).is_error
    assert bench.ran() == ["shortcut_define", "search", "shortcut.ab"]


async def test_a_redefined_shortcut_that_still_runs_ends_as_it_began() -> None:
    bench = Bench(scripted(("sleep", 5, "slept"), name="slow"))
    await bench.shortcuts.define(of("slow", "search"))
    running = asyncio.ensure_future(bench.pipeline.call("shortcut.ab"))
    await bench.clock.advance(1)

    await bench.shortcuts.define(of("write"))
    result = await bench.clock.run(running)

    assert not result.is_error
    assert bench.ran() == ["slow", "search", "shortcut.ab"]
    assert bench.shortcuts.list()[0].steps[0].tool == "write"


# In a batch.


async def test_a_shortcut_that_cannot_run_keeps_the_whole_batch_from_running() -> None:
    bench = Bench(scripted("sent", name="send", risk=Risk.HIGH))
    await bench.shortcuts.define(of("search", "send"))
    await bench.shortcuts.define(of("search", "write", name="shortcut.cd"))
    bench.pipeline.registry.unregister("write")
    runner = BatchRunner(bench.pipeline)

    for name, reason in (("shortcut.ab", "approval_required"), ("shortcut.cd", "tool_not_found")):
        outcome = await bench.clock.run(runner.run([{"tool": "search"}, {"tool": name}]))
        assert outcome.refusal is not None
        assert (outcome.refusal.reason, outcome.at_step) == (reason, 1)

    assert bench.ran() == []


async def test_nobody_is_asked_about_a_shortcuts_step_that_is_refused_when_it_comes() -> None:
    asked: list[str] = []

    def confirm(prepared: Prepared, decision: Decision) -> bool:
        asked.append(prepared.tool.name)
        return True

    whole = {"type": "object", "properties": {"n": {"type": "integer"}}}
    bench = Bench(
        scripted("sent", name="send", risk=Risk.HIGH, input_schema=whole), confirm=confirm
    )
    await bench.shortcuts.define(of({"tool": "send", "arguments": {"n": "many"}}))

    outcome = await bench.clock.run(BatchRunner(bench.pipeline).run([{"tool": "shortcut.ab"}]))

    assert outcome.statuses == ("failed",)
    assert asked == []


async def test_the_steps_of_a_shortcut_in_a_batch_are_asked_about_before_the_batch_begins() -> None:
    asked: list[tuple[str, dict[str, Any]]] = []

    def confirm(prepared: Prepared, decision: Decision) -> bool:
        asked.append((prepared.tool.name, prepared.arguments))
        assert bench.ran() == []
        return True

    bench = Bench(scripted("sent", name="send", risk=Risk.HIGH), confirm=confirm)
    step = {"tool": "send", "arguments": {"to": "{to}", "text": "{text}"}}
    params = [{"name": "to", "required": True}, {"name": "text", "required": True}]
    await bench.shortcuts.define(of("search", step, params=params))
    runner = BatchRunner(bench.pipeline)

    outcome = await bench.clock.run(
        runner.run(
            [
                {"tool": "shortcut.ab", "arguments": {"to": "me", "text": "hi"}},
                {
                    "tool": "shortcut_run",
                    "arguments": {"id": "shortcut.ab", "arguments": {"to": "you", "text": "{0}"}},
                },
            ]
        )
    )

    assert outcome.complete
    assert asked == [
        ("send", {"to": "me", "text": "hi"}),
        ("send", {"to": "{to}", "text": "{text}"}),
    ]
    assert bench.ran().count("send") == 2


async def test_what_was_allowed_does_not_hold_for_a_shortcut_that_was_redefined_on_the_way() -> (
    None
):
    asked: list[dict[str, Any]] = []

    def confirm(prepared: Prepared, decision: Decision) -> bool:
        asked.append(prepared.arguments)
        return len(asked) == 1

    bench = Bench(scripted("sent", name="send", risk=Risk.HIGH), confirm=confirm)
    await bench.shortcuts.define(of({"tool": "send", "arguments": {"text": "good"}}))
    evil = of({"tool": "send", "arguments": {"text": "evil"}})
    runner = BatchRunner(bench.pipeline)

    outcome = await bench.clock.run(
        runner.run(
            [
                {"tool": "shortcut_define", "arguments": {"definition": evil}},
                {"tool": "shortcut.ab"},
            ]
        )
    )

    assert outcome.statuses == ("executed", "failed")
    assert asked == [{"text": "good"}, {"text": "evil"}]
    assert "send" not in bench.ran()


async def test_a_batch_cannot_be_a_step_of_a_shortcut() -> None:
    bench = Bench()
    bench.pipeline.registry.register(BatchRunner(bench.pipeline).tool)

    assert "cannot be a step" in await fault_of(bench, of("tool_batch_run"))
