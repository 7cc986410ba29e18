"""Calls that touch the same thing take turns; others do not."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.waiting import until_idle

import seawall
from seawall.contract.failure import FailureCode
from seawall.contract.result import ToolResult
from seawall.layers.exclusive import MAX_WAITING, Exclusive
from seawall.pipeline.layer import compose
from seawall.testing import FakeClock, LayerBench, scripted

if TYPE_CHECKING:
    from seawall.pipeline.invocation import Handler, Invocation


class Works:
    """Tools that share one table of keys; every call takes ten seconds."""

    def __init__(self, key: str = "$path") -> None:
        self.clock = FakeClock()
        self.bench = LayerBench(clock=self.clock)
        self.handler = self.tool(key)
        self.tasks: list[asyncio.Task[ToolResult]] = []
        self.running: list[Any] = []

    def tool(self, key: str, name: str = "tool") -> Handler:
        self.bench.tool = scripted(name=name, exclusive=key)
        layer = Exclusive.for_tool(self.bench.context)
        assert layer is not None
        return compose([layer], self.run)

    async def run(self, call: Invocation) -> ToolResult:
        self.running.append(call.given)
        try:
            await self.clock.sleep(10)
        finally:
            self.running.remove(call.given)
        return ToolResult.of_text("done")

    async def call(self, arguments: Any, handler: Handler | None = None, **fields: Any) -> None:
        call = self.bench.invocation(arguments, **fields)
        self.tasks.append(asyncio.ensure_future((handler or self.handler)(call)))
        await self.clock.settle()

    @property
    def keys(self) -> dict[str, Any]:
        return self.bench.states.shared("exclusive").slot("rooms", dict)

    @property
    def ends(self) -> list[str]:
        ended = [task.result() for task in self.tasks if task.done() and not task.cancelled()]
        return ["done" if r.failure is None else r.failure.reason for r in ended]


async def test_calls_with_the_same_value_run_one_after_the_other() -> None:
    works = Works()
    for n in range(3):
        await works.call({"path": "/a", "n": n})

    order = []
    while works.running:
        order += works.running
        await works.clock.advance(10)

    assert [arguments["n"] for arguments in order] == [0, 1, 2]
    assert works.ends == ["done"] * 3
    assert works.keys == {}


async def test_calls_with_different_values_run_together() -> None:
    works = Works()
    for path in ("/a", "/b", "/c"):
        await works.call({"path": path})

    assert len(works.running) == 3


@pytest.mark.parametrize(
    ("one", "other", "together"),
    [
        (5, 5.0, False),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, False),
        (5, "5", True),
        (None, "null", True),
        ("/a", "/A", True),
        ("x" * 100_000, "x" * 100_000, False),
        ("x" * 100_000, "x" * 99_999 + "y", True),
        ("\ud800", "\ud800", False),
    ],
)
async def test_values_are_the_same_as_json_is(one: Any, other: Any, *, together: bool) -> None:
    works = Works()
    await works.call({"path": one})
    await works.call({"path": other})

    assert (len(works.running) == 2) is together
    assert all(len(key) < 300 for key in works.keys)


async def test_calls_without_the_argument_share_one_value() -> None:
    works = Works()
    await works.call({})
    await works.call({"path": None})

    assert len(works.running) == 1


async def test_all_calls_of_a_tool_with_a_fixed_key_take_turns() -> None:
    works = Works("db")
    await works.call({"path": "/a"})
    await works.call({"path": "/b"})

    assert len(works.running) == 1


@pytest.mark.parametrize(
    ("first", "second", "together"),
    [
        ("db", "db", False),
        ("$path", "$path", False),
        ("$path", "$target", True),
        ("db", "$path", True),
        ("db", "cache", True),
    ],
)
async def test_tools_with_the_same_key_take_turns(
    first: str, second: str, *, together: bool
) -> None:
    works = Works()
    arguments = {"path": "db", "target": "db"}
    await works.call(arguments, works.tool(first, "one"))
    await works.call(arguments, works.tool(second, "two"))

    assert (len(works.running) == 2) is together


async def test_a_call_waits_no_longer_than_its_deadline() -> None:
    works = Works()
    await works.call({"path": "/a"})
    await works.call({"path": "/a"}, deadline=5.0)

    await works.clock.advance(5)

    failure = works.tasks[1].result().failure
    assert failure is not None
    assert (failure.code, failure.reason) == (FailureCode.TIMEOUT, "deadline_exceeded")
    assert failure.layer == "exclusive"
    assert failure.may_have_run is False


async def test_a_call_whose_deadline_is_over_does_not_stand_in_line() -> None:
    works = Works()
    await works.call({"path": "/a"})
    await works.call({"path": "/a"}, deadline=0.0)

    assert works.ends == ["deadline_exceeded"]


async def test_cancelled_calls_hand_the_key_on_and_leave_nothing_behind() -> None:
    works = Works()
    for n in range(3):
        await works.call({"path": "/a", "n": n})

    works.tasks[1].cancel()
    works.tasks[0].cancel()
    await works.clock.settle()

    assert [arguments["n"] for arguments in works.running] == [2]
    await works.clock.advance(10)
    assert works.keys == {}


async def test_a_key_handed_to_a_call_that_is_cancelled_at_once_is_not_lost() -> None:
    works = Works()
    await works.call({"path": "/a"})
    await works.call({"path": "/a"})

    (room,) = works.keys.values()
    room.leave()  # on behalf of the first
    works.tasks[1].cancel()
    await works.clock.settle()

    assert works.keys == {}


async def test_a_cancelled_call_that_wakes_late_leaves_the_key_of_others_alone() -> None:
    works = Works()
    await works.call({"path": "/a", "n": 0})
    await works.call({"path": "/a", "n": 1})

    works.tasks[1].cancel()
    works.tasks[0].cancel()
    works.keys.popitem()[1].line.clear()  # as if the key had been cleared, and taken again
    await works.call({"path": "/a", "n": 2})

    assert [arguments["n"] for arguments in works.running] == [2]
    assert len(works.keys) == 1


async def test_more_calls_than_may_wait_are_refused() -> None:
    works = Works("db")
    calls = [works.bench.invocation({}) for _ in range(MAX_WAITING + 2)]
    works.tasks = [asyncio.ensure_future(works.handler(call)) for call in calls]
    await works.clock.settle()

    assert works.ends == ["overloaded"]
    for task in works.tasks:
        task.cancel()
    await works.clock.settle()
    assert works.keys == {}


async def test_arguments_that_cannot_run_take_no_key() -> None:
    works = Works()
    call = works.bench.invocation({})
    call.prepare = lambda call: call.refuse(FailureCode.INVALID_ARGUMENT, "no good")

    result = await works.handler(call)

    assert result is call.refusal
    assert works.keys == {}


async def test_a_defect_inside_gives_the_key_back() -> None:
    works = Works()
    layer = Exclusive.for_tool(works.bench.context)
    assert layer is not None

    async def broken(call: Invocation) -> ToolResult:
        raise RuntimeError("a defect")

    with pytest.raises(RuntimeError, match="a defect"):
        await layer(works.bench.invocation({}), broken)

    assert works.keys == {}


async def nesting(works: Works, inner: Handler, outer_key: str = "$path") -> Handler:
    """A handler whose tool calls another one."""
    outer = Exclusive.for_tool(works.bench.context)
    assert outer is not None

    async def run(call: Invocation) -> ToolResult:
        return await inner(works.bench.invocation(call.given))

    return compose([outer], run)


async def test_a_call_made_by_a_call_that_has_the_key_goes_through() -> None:
    works = Works()
    handler = await nesting(works, await nesting(works, works.handler))

    await works.call({"path": "/a"}, handler)
    assert len(works.running) == 1
    await works.clock.advance(10)

    assert works.ends == ["done"]
    assert works.keys == {}


async def test_a_call_made_by_a_call_with_another_key_waits_for_its_own() -> None:
    works = Works()
    fixed = works.tool("db", "fixed")
    works.tool("$path")
    handler = await nesting(works, fixed)
    await works.call({}, fixed)

    await works.call({"path": "/a"}, handler)

    assert len(works.running) == 1
    assert len(works.keys) == 2
    await works.clock.advance(20)
    assert works.ends == ["done", "done"]


class Circle:
    """Tools that hold a key each, and call for another's a second later."""

    def __init__(self, *wants: tuple[str, str]) -> None:
        self.works = Works()
        self.ends: dict[str, str] = {}
        plain = {key: self.works.tool(key) for pair in wants for key in pair}
        self.tools = [self.calling(own, plain[other]) for own, other in wants]

    def calling(self, own: str, inner: Handler) -> Handler:
        self.works.bench.tool = scripted(name=own, exclusive=own)
        outer = Exclusive.for_tool(self.works.bench.context)
        assert outer is not None

        async def run(call: Invocation) -> ToolResult:
            await self.works.clock.sleep(1)
            result = await inner(self.works.bench.invocation({}))
            self.ends[own] = result.failure.reason if result.failure else "done"
            return result

        return compose([outer], run)

    async def run(self) -> dict[str, str]:
        for tool in self.tools:
            await self.works.call({}, tool)
        await self.works.clock.advance(1_000)
        assert all(task.done() for task in self.works.tasks)
        assert self.works.keys == {}
        return self.ends


@pytest.mark.parametrize(
    ("wants", "ends"),
    [
        # The last that asks is the one that would close the circle.
        ([("a", "b"), ("b", "a")], {"a": "done", "b": "overloaded"}),
        ([("a", "b"), ("b", "c"), ("c", "a")], {"a": "done", "b": "done", "c": "overloaded"}),
        ([("a", "b"), ("b", "c")], {"a": "done", "b": "done"}),
        ([("a", "a"), ("b", "a")], {"a": "done", "b": "done"}),
        ([("a", "c"), ("b", "c")], {"a": "done", "b": "done"}),
    ],
)
async def test_tools_that_would_wait_for_each_other_for_ever_do_not(
    wants: list[tuple[str, str]], ends: dict[str, str]
) -> None:
    assert await Circle(*wants).run() == ends


KEYS = st.sampled_from("abcd")


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(KEYS, KEYS), max_size=8))
def test_whatever_keys_tools_call_for_all_come_to_an_end(wants: list[tuple[str, str]]) -> None:
    asyncio.run(Circle(*wants).run())


async def test_a_call_that_was_cancelled_in_line_closes_no_circle() -> None:
    circle = Circle(("a", "b"), ("b", "a"))
    works = circle.works
    await works.call({}, circle.tools[0])
    await works.clock.advance(0.5)
    await works.call({}, circle.tools[1])
    await works.clock.advance(0.6)
    works.tasks[0].cancel()

    await works.clock.advance(100)

    assert circle.ends == {"b": "done"}


async def test_what_outlives_the_call_has_its_key_no_longer() -> None:
    works = Works()
    layer = Exclusive.for_tool(works.bench.context)
    assert layer is not None
    begin = asyncio.Event()
    left_over: list[asyncio.Task[ToolResult]] = []

    async def later() -> ToolResult:
        await begin.wait()
        return await works.handler(works.bench.invocation({"path": "/a"}))

    async def run(call: Invocation) -> ToolResult:
        left_over.append(asyncio.ensure_future(later()))
        return ToolResult.of_text("done")

    await layer(works.bench.invocation({"path": "/a"}), run)
    await works.call({"path": "/a"})
    begin.set()
    await works.clock.settle()

    assert len(works.running) == 1
    await works.clock.advance(20)
    assert left_over[0].result().text == "done"


async def test_pipelines_do_not_share_their_keys() -> None:
    works, others = Works("db"), Works("db")
    layer = Exclusive.for_tool(works.bench.context)
    assert layer is not None
    await works.call({})
    others.clock = works.clock

    await others.call({})

    assert len(works.running) == len(others.running) == 1


def test_a_tool_without_a_key_has_no_such_layer() -> None:
    assert Exclusive.for_tool(LayerBench().context) is None


EVENTS = st.lists(
    st.one_of(
        st.tuples(st.just("call"), st.integers(0, 2)),
        st.tuples(st.just("dated"), st.integers(0, 2)),
        st.tuples(st.just("cancel"), st.integers(0, 9)),
        st.tuples(st.just("advance"), st.integers(1, 12)),
    ),
    max_size=25,
)


@settings(max_examples=150)
@given(events=EVENTS)
def test_in_any_order_one_call_a_value_runs_and_no_key_outlives_its_use(events: Any) -> None:
    asyncio.run(_play(events))


async def _play(events: list[tuple[str, int]]) -> None:
    works = Works()
    values: list[int] = []
    for kind, value in events:
        if kind in ("call", "dated"):
            values.append(value)
            deadline = works.clock.now() + 7 if kind == "dated" else None
            await works.call({"path": value, "n": len(values)}, deadline=deadline)
        elif kind == "cancel" and value < len(works.tasks):
            works.tasks[value].cancel()
            await works.clock.settle()
        elif kind == "advance":
            await works.clock.advance(value)
        used = {v for v, task in zip(values, works.tasks, strict=True) if not task.done()}
        assert sorted(arguments["path"] for arguments in works.running) == sorted(used)
        assert len(works.keys) == len(used)
    for task in works.tasks:
        task.cancel()
    await works.clock.settle()
    assert works.keys == {}


@pytest.mark.parametrize(
    ("one", "other", "together"),
    [
        ({}, {"path": "a.txt"}, False),
        ({"path": "a.txt"}, {}, False),
        ({}, {}, False),
        ({}, {"path": "b.txt"}, True),
    ],
)
async def test_an_argument_that_is_not_given_stands_for_its_default(
    one: Any, other: Any, *, together: bool
) -> None:
    now, most = 0, 0

    @seawall.tool(exclusive="$path")
    async def edit(path: str = "a.txt") -> None:
        """Edit a file."""
        nonlocal now, most
        now += 1
        most = max(most, now)
        await until_idle()
        now -= 1

    pipeline = seawall.Pipeline([edit])
    await asyncio.gather(pipeline.call("edit", one), pipeline.call("edit", other))

    assert most == (2 if together else 1)
