"""Approvals in LangGraph's own way, where one step of a graph runs several calls."""

import asyncio
import dataclasses
from collections.abc import Callable
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import ToolException
from langchain_core.tools import tool as langchain_tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.graph.message import add_messages
from langgraph.prebuilt import ToolNode
from langgraph.types import Command, Send, interrupt

import seawall
from seawall import (
    Annotations,
    Answer,
    Hook,
    HookContext,
    Pipeline,
    Risk,
    to_langchain,
    wrap,
)
from seawall.edges.adapters import _langchain_questions

THREAD: Any = {"configurable": {"thread_id": "t"}}
APPROVE, REJECT = {"type": "approve"}, {"type": "reject", "message": "too much"}


class Shop:
    """Three tools that ask, one that does not, and what they have done."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.tools = [
            seawall.tool(self.pay, risk=Risk.HIGH),
            seawall.tool(self.give, risk=Risk.HIGH),
            seawall.tool(self.drop, risk=Risk.HIGH),
            seawall.tool(self.note, risk=Risk.LOW),
        ]

    async def pay(self, to: str) -> str:
        """Pay somebody."""
        self.done.append(f"pay {to}")
        return f"paid {to}"

    async def give(self, to: str) -> str:
        """Give somebody something."""
        self.done.append(f"give {to}")
        return f"given to {to}"

    async def drop(self, table: str) -> str:
        """Drop a table."""
        self.done.append(f"drop {table}")
        return f"dropped {table}"

    async def note(self, text: str) -> str:
        """Write something down."""
        self.done.append(f"note {text}")
        return "noted"


class Uneven(Hook):
    """Lets one call be overtaken by the others."""

    async def before(self, context: HookContext) -> None:
        for _ in range(20 if context.tool.name == "pay" else 0):
            await asyncio.sleep(0)


def calls(*asked: tuple[str, str, str]) -> dict[str, Any]:
    made: list[Any] = [
        {"name": name, "args": {argument: value}, "id": f"{name}-{value}", "type": "tool_call"}
        for name, argument, value in asked
    ]
    return {"messages": [AIMessage("", tool_calls=made)]}


BOTH = calls(("pay", "to", "ann"), ("drop", "table", "users"))


def graph_of(pipeline: Any) -> Any:
    tools = ToolNode(to_langchain(pipeline, approvals="framework"))
    graph = StateGraph(MessagesState).add_node("tools", tools).add_edge(START, "tools")
    return graph.compile(checkpointer=InMemorySaver())


def requests(paused: dict[str, Any]) -> list[list[tuple[str, Any]]]:
    asked = [one.value["action_requests"] for one in paused["__interrupt__"]]
    return [[(one["name"], one["args"]) for one in some] for some in asked]


async def test_the_calls_of_one_step_are_asked_about_together() -> None:
    shop = Shop()

    paused = await graph_of(shop.tools).ainvoke(BOTH, THREAD)

    assert requests(paused) == [[("pay", {"to": "ann"}), ("drop", {"table": "users"})]]
    assert [one["action_name"] for one in paused["__interrupt__"][0].value["review_configs"]] == [
        "pay",
        "drop",
    ]
    assert shop.done == []


@pytest.mark.parametrize(
    ("decisions", "done"),
    [
        ([APPROVE, APPROVE], {"pay ann", "drop users"}),
        ([APPROVE, REJECT], {"pay ann"}),
        ([REJECT, APPROVE], {"drop users"}),
        ([APPROVE], set[str]()),
        ([APPROVE, APPROVE, APPROVE], set[str]()),
    ],
)
async def test_each_decision_is_for_its_own_call_whichever_comes_first(
    decisions: list[Any], done: set[str]
) -> None:
    shop = Shop()
    graph = graph_of(Pipeline(shop.tools, hooks=[Uneven()]))
    await graph.ainvoke(BOTH, THREAD)

    found = await graph.ainvoke(Command(resume={"decisions": decisions}), THREAD)

    assert "__interrupt__" not in found
    assert set(shop.done) == done
    assert len(shop.done) == len(done)


async def test_one_plain_yes_is_for_all_that_was_shown() -> None:
    shop = Shop()
    graph = graph_of(shop.tools)
    await graph.ainvoke(BOTH, THREAD)

    await graph.ainvoke(Command(resume=True), THREAD)

    assert sorted(shop.done) == ["drop users", "pay ann"]


async def test_one_decision_for_several_calls_says_what_is_missing() -> None:
    graph = graph_of(Shop().tools)
    await graph.ainvoke(BOTH, THREAD)

    found = await graph.ainvoke(Command(resume=APPROVE), THREAD)

    said = [str(message.content) for message in found["messages"][-2:]]
    assert all("2 calls need one decision each" in one for one in said)


async def test_nothing_of_the_step_runs_before_the_answer_and_nothing_twice() -> None:
    shop = Shop()
    graph = graph_of(shop.tools)
    paused = await graph.ainvoke(calls(("note", "text", "a"), ("pay", "to", "ann")), THREAD)
    before = list(shop.done)

    await graph.ainvoke(Command(resume={"decisions": [APPROVE]}), THREAD)

    assert requests(paused) == [[("pay", {"to": "ann"})]]
    assert before == []
    assert sorted(shop.done) == ["note a", "pay ann"]


def test_calls_of_a_graph_that_is_not_async_are_asked_about_together_too() -> None:
    shop = Shop()
    graph = graph_of(shop.tools)
    paused = graph.invoke(BOTH, THREAD)

    graph.invoke(Command(resume={"decisions": [APPROVE, REJECT]}), THREAD)

    assert len(requests(paused)) == 1
    assert shop.done == ["pay ann"]


async def test_equal_calls_are_decided_one_by_one() -> None:
    shop = Shop()
    graph = graph_of(shop.tools)
    await graph.ainvoke(calls(("pay", "to", "ann"), ("pay", "to", "bob")), THREAD)

    await graph.ainvoke(Command(resume={"decisions": [REJECT, APPROVE]}), THREAD)

    assert shop.done == ["pay bob"]


def under_one_id(*asked: tuple[str, str, str], shared: str = "call-0") -> dict[str, Any]:
    made = calls(*asked)
    for one in made["messages"][0].tool_calls:
        one["id"] = shared
    return made


SAME = [("pay", "to", "ann"), ("pay", "to", "ann")]
ALIKE = [("pay", "to", "ann"), ("give", "to", "ann")]


@pytest.mark.parametrize("shared", ["call-0", ""])
@pytest.mark.parametrize(
    ("asked", "decisions", "done"),
    [
        (SAME, [APPROVE, REJECT], ["pay ann"]),
        (SAME, [REJECT, APPROVE], ["pay ann"]),
        (SAME, [REJECT, REJECT], []),
        (SAME, [APPROVE, APPROVE], ["pay ann", "pay ann"]),
        (ALIKE, [APPROVE, REJECT], ["pay ann"]),
        (ALIKE, [REJECT, APPROVE], ["give ann"]),
    ],
)
async def test_calls_under_one_id_need_a_yes_each(
    asked: list[Any], decisions: list[Any], done: list[str], shared: str
) -> None:
    shop = Shop()
    graph = graph_of(shop.tools)
    paused = await graph.ainvoke(under_one_id(*asked, shared=shared), THREAD)

    await graph.ainvoke(Command(resume={"decisions": decisions}), THREAD)

    assert requests(paused) == [[(name, {"to": "ann"}) for name, _, _ in asked]]
    assert shop.done == done


async def own_node(state: MessagesState, config: RunnableConfig) -> dict[str, Any]:
    """Run a message's tools as many graphs do, with a loop of their own."""
    tools = config["metadata"]["tools"]
    asked: Any = next(one for one in reversed(state["messages"]) if isinstance(one, AIMessage))
    told = [
        ToolMessage(str(await tools[one["name"]].ainvoke(one["args"], config)), tool_call_id="c")
        for one in asked.tool_calls
    ]
    return {"messages": told}


def sent_graph_of(pipeline: Any, sends: Callable[[Any], Any], node: Any = None) -> Any:
    """A graph whose tools' node is started by what `sends` makes of the state."""
    tools = to_langchain(pipeline, approvals="framework")
    graph: Any = StateGraph(MessagesState)
    graph.add_node("model", lambda _: {})
    graph.add_node(
        "tools", node or ToolNode(tools), metadata={"tools": {one.name: one for one in tools}}
    )
    graph.add_edge(START, "model").add_conditional_edges("model", sends, ["tools"])
    return graph.compile(checkpointer=InMemorySaver())


def asked_by(state: Any) -> Any:
    return state["messages"][-1].tool_calls


TOGETHER: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "an edge": (lambda _: "tools", None),
    "a sent state": (lambda state: Send("tools", state), None),
    "sent calls": (lambda state: Send("tools", asked_by(state)), None),
    "a node of one's own": (lambda _: "tools", own_node),
    "a state sent to a node of one's own": (lambda state: Send("tools", state), own_node),
}


@pytest.mark.parametrize(("sends", "node"), TOGETHER.values(), ids=TOGETHER)
async def test_each_call_runs_once_however_its_step_was_started(
    sends: Callable[[Any], Any], node: Any
) -> None:
    shop = Shop()
    graph = sent_graph_of(shop.tools, sends, node)
    three = calls(("note", "text", "a"), ("pay", "to", "ann"), ("drop", "table", "users"))

    paused = await graph.ainvoke(three, THREAD)
    before = list(shop.done)
    found = await graph.ainvoke(Command(resume=True), THREAD)

    assert requests(paused) == [[("pay", {"to": "ann"}), ("drop", {"table": "users"})]]
    assert before == []
    assert "__interrupt__" not in found
    assert sorted(shop.done) == ["drop users", "note a", "pay ann"]


ALONE: dict[str, Callable[[Any], Any]] = {
    "a list of one": lambda state: [Send("tools", [one]) for one in asked_by(state)],
    "a call with its state": lambda state: [
        Send("tools", {"__type": "tool_call_with_context", "tool_call": one, "state": state})
        for one in asked_by(state)
    ],
}


@pytest.mark.parametrize("sends", ALONE.values(), ids=ALONE)
async def test_a_call_that_was_sent_alone_is_asked_about_alone(
    sends: Callable[[Any], Any],
) -> None:
    shop = Shop()
    graph = sent_graph_of(shop.tools, sends)

    paused = await graph.ainvoke(BOTH, THREAD)
    asked = {one.value["action_requests"][0]["name"]: one.id for one in paused["__interrupt__"]}
    await graph.ainvoke(Command(resume={asked["pay"]: APPROVE, asked["drop"]: REJECT}), THREAD)

    assert sorted(requests(paused)) == [[("drop", {"table": "users"})], [("pay", {"to": "ann"})]]
    assert shop.done == ["pay ann"]


@dataclasses.dataclass
class Held:
    """A state that is no dictionary."""

    messages: Annotated[list[Any], add_messages]


class Chat(TypedDict):
    """A state that keeps its messages under a name of its own."""

    chat: Annotated[list[Any], add_messages]


async def test_a_state_that_is_no_dictionary_is_looked_into_too() -> None:
    shop = Shop()
    node = ToolNode(to_langchain(shop.tools, approvals="framework"))
    graph: Any = StateGraph(Held).add_node("tools", node).add_edge(START, "tools")
    graph = graph.compile(checkpointer=InMemorySaver())

    paused = await graph.ainvoke(BOTH, THREAD)

    assert requests(paused) == [[("pay", {"to": "ann"}), ("drop", {"table": "users"})]]


async def test_a_call_of_which_no_message_speaks_is_asked_about_alone() -> None:
    shop = Shop()
    tools = {one.name: one for one in to_langchain(shop.tools, approvals="framework")}

    async def run(_: Chat) -> dict[str, Any]:
        return {"chat": [AIMessage(await tools["pay"].ainvoke({"to": "ann"}))]}

    graph: Any = StateGraph(Chat)
    graph = graph.add_node("run", run).add_edge(START, "run").compile(checkpointer=InMemorySaver())
    paused = await graph.ainvoke({"chat": []}, THREAD)

    found = await graph.ainvoke(Command(resume=True), THREAD)

    assert requests(paused) == [[("pay", {"to": "ann"})]]
    assert found["chat"][-1].content == "paid ann"
    assert shop.done == ["pay ann"]


async def test_calls_that_come_together_after_one_that_was_allowed_are_not_asked_about() -> None:
    shop = Shop()
    refused: list[str] = []

    async def run(_: MessagesState, config: RunnableConfig) -> dict[str, Any]:
        tools = config["metadata"]["tools"]
        await tools["give"].ainvoke({"to": "ann"}, config)
        for name, arguments in (("pay", {"to": "ann"}), ("drop", {"table": "users"})):
            with pytest.raises(ToolException, match="give has run in the same step") as raised:
                await tools[name].ainvoke(arguments, config)
            refused.append(str(raised.value))
        return {}

    graph = sent_graph_of(shop.tools, lambda _: "tools", run)
    await graph.ainvoke(BOTH, THREAD)

    found = await graph.ainvoke(Command(resume=True), THREAD)

    assert "__interrupt__" not in found
    assert shop.done == ["give ann"]
    assert len(refused) == 2


async def test_what_is_remembered_of_steps_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_langchain_questions, "MAX_SESSIONS", 2)
    shop = Shop()
    graph = graph_of(shop.tools)

    for number in range(5):
        thread = {"configurable": {"thread_id": str(number)}}
        await graph.ainvoke(calls(("pay", "to", str(number))), thread)
    for number in range(5):
        thread = {"configurable": {"thread_id": str(number)}}
        await graph.ainvoke(Command(resume=True), thread)

    assert shop.done == [f"pay {number}" for number in range(5)]


@pytest.mark.parametrize("is_async", [True, False])
async def test_a_tool_that_asks_its_person_more_questions_is_no_loop(*, is_async: bool) -> None:
    @langchain_tool
    def survey(topic: str) -> str:
        """Ask."""
        return topic + "".join(str(interrupt(f"question {n}")) for n in range(7))

    risky = {"survey": Annotations.for_destroying()}
    pipeline = Pipeline(wrap([survey], annotations=risky))
    graph = graph_of(pipeline)
    found = await graph.ainvoke(calls(("survey", "topic", "a")), THREAD)

    for answer in (True, 0, 1, 2, 3, 4, 5, 6):
        assert "__interrupt__" in found
        command: Command[Any] = Command(resume=answer)
        found = (
            await graph.ainvoke(command, THREAD)
            if is_async
            else await asyncio.to_thread(graph.invoke, command, THREAD)
        )

    assert found["messages"][-1].content == "a0123456"
    assert [str(one.outcome) for one in pipeline.trace.spans()].count("denied") == 1


async def test_what_a_person_allowed_is_not_run_again_by_a_later_question_of_its_step() -> None:
    shop = Shop()

    async def invents(_: MessagesState, config: RunnableConfig) -> dict[str, Any]:
        tools = config["metadata"]["tools"]
        paid = await tools["pay"].ainvoke({"to": "ann"}, config)
        with pytest.raises(ToolException, match="pay has run in the same step") as refused:
            await tools["drop"].ainvoke({"table": "users"}, config)
        return {"messages": [AIMessage(paid), AIMessage(str(refused.value))]}

    graph = sent_graph_of(shop.tools, lambda _: "tools", invents)
    await graph.ainvoke({"messages": []}, THREAD)

    found = await graph.ainvoke(Command(resume=True), THREAD)

    assert "__interrupt__" not in found
    assert shop.done == ["pay ann"]


@pytest.mark.parametrize(
    ("decisions", "paid"),
    [
        ([REJECT, APPROVE], 1),
        ([APPROVE, REJECT], 1),
        ([APPROVE, APPROVE], 2),
        ([REJECT, REJECT], 0),
    ],
)
async def test_one_yes_is_for_one_run_where_calls_have_no_ids(
    decisions: list[Any], paid: int
) -> None:
    shop = Shop()
    graph = graph_of(shop.tools)
    pay: Any = {"name": "pay", "args": {"to": "ann"}, "id": None, "type": "tool_call"}
    await graph.ainvoke({"messages": [AIMessage("", tool_calls=[pay, pay])]}, THREAD)

    found = await graph.ainvoke(Command(resume={"decisions": decisions}), THREAD)

    said = [str(message.content) for message in found["messages"][-2:]]
    assert shop.done == ["pay ann"] * paid
    assert ["paid ann" in one for one in said] == [one is APPROVE for one in decisions]


@pytest.mark.parametrize(
    ("decisions", "done"), [([APPROVE, REJECT], ["pay ann"]), ([REJECT, APPROVE], ["pay bob"])]
)
async def test_a_decision_is_for_the_arguments_that_were_shown_where_ids_are_equal(
    decisions: list[Any], done: list[str]
) -> None:
    shop = Shop()
    graph = graph_of(shop.tools)
    made: list[Any] = [
        {"name": "pay", "args": {"to": to}, "id": "c1", "type": "tool_call"}
        for to in ("ann", "bob")
    ]
    await graph.ainvoke({"messages": [AIMessage("", tool_calls=made)]}, THREAD)

    await graph.ainvoke(Command(resume={"decisions": decisions}), THREAD)

    assert shop.done == done


async def allowed(shop: Shop, wrapper: Any) -> Any:
    """What comes of both calls, made through a wrapper, once a person has said yes to both."""
    node = ToolNode(to_langchain(shop.tools, approvals="framework"), awrap_tool_call=wrapper)
    graph = StateGraph(MessagesState).add_node("tools", node).add_edge(START, "tools")
    compiled: Any = graph.compile(checkpointer=InMemorySaver())
    await compiled.ainvoke(BOTH, THREAD)
    return await compiled.ainvoke(Command(resume=True), THREAD)


async def test_a_yes_is_used_up_by_the_call_that_ran_under_it() -> None:
    shop = Shop()

    async def twice(request: Any, execute: Any) -> Any:
        await execute(request)
        return await execute(request)

    found = await allowed(shop, twice)

    assert sorted(shop.done) == ["drop users", "pay ann"]
    assert "approval required" in str(found["messages"][-1].content)


async def test_a_call_that_was_changed_since_it_was_shown_is_not_approved() -> None:
    shop = Shop()

    async def to_mallory(request: Any, execute: Any) -> Any:
        call = {**request.tool_call, "args": {"to": "mallory"}}
        changed = (
            request.override(tool_call=call) if request.tool_call["name"] == "pay" else request
        )
        return await execute(changed)

    found = await allowed(shop, to_mallory)

    assert shop.done == ["drop users"]
    assert "approval required" in str(found["messages"][-2].content)


async def test_a_pipeline_that_asks_by_itself_interrupts_nothing() -> None:
    shop = Shop()
    graph = graph_of(Pipeline(shop.tools, confirm=lambda *_: Answer.ALLOW_ONCE))

    found = await graph.ainvoke(BOTH, THREAD)

    assert "__interrupt__" not in found
    assert sorted(shop.done) == ["drop users", "pay ann"]


async def test_outside_of_a_graph_nobody_can_be_asked() -> None:
    shop = Shop()
    pay = next(one for one in to_langchain(shop.tools, approvals="framework") if one.name == "pay")

    message = await pay.ainvoke(BOTH["messages"][0].tool_calls[0])
    with pytest.raises(ToolException, match="approval required"):
        await pay.ainvoke({"to": "ann"})

    assert message.status == "error"
    assert "approval required" in str(message.content)
    assert shop.done == []


class Counted(TypedDict):
    """The state of a graph that keeps no messages."""

    said: list[str]


def in_turn(shop: Shop, *asked: tuple[str, dict[str, Any]], is_async: bool = True) -> Any:
    """A graph with one node that makes calls one after another, which no message asks for."""
    pipeline = Pipeline(shop.tools)
    tools = {one.name: one for one in to_langchain(pipeline, approvals="framework")}
    wanted = [
        (tools[name], {"name": name, "args": given, "id": f"c{at}", "type": "tool_call"})
        for at, (name, given) in enumerate(asked)
    ]

    async def makes(_: Counted, config: RunnableConfig) -> dict[str, Any]:
        return {"said": [(await one.ainvoke(call, config)).text for one, call in wanted]}

    def makes_plainly(_: Counted, config: RunnableConfig) -> dict[str, Any]:
        return {"said": [one.invoke(call, config).text for one, call in wanted]}

    graph: Any = StateGraph(Counted)
    graph.add_node("makes", makes if is_async else makes_plainly).add_edge(START, "makes")
    return graph.compile(checkpointer=InMemorySaver())


NOTE = ("note", {"text": "fee"})
PAY = ("pay", {"to": "ann"})


@pytest.mark.parametrize(
    ("asked", "questions", "done"),
    [
        ([PAY, PAY], 1, ["pay ann"]),
        ([NOTE, PAY], 0, ["note fee"]),
        ([NOTE, NOTE, PAY], 0, ["note fee", "note fee"]),
        ([PAY, NOTE, PAY], 1, ["pay ann", "note fee"]),
        ([PAY, NOTE], 1, ["pay ann", "note fee"]),
        ([("note", {}), PAY], 1, ["pay ann"]),
    ],
)
async def test_no_answer_runs_again_what_a_node_has_run_before_its_question(
    asked: list[Any], questions: int, done: list[str]
) -> None:
    shop = Shop()
    graph = in_turn(shop, *asked)

    found, answered = await graph.ainvoke({"said": []}, THREAD), 0
    while "__interrupt__" in found and answered < 5:
        found, answered = await graph.ainvoke(Command(resume=True), THREAD), answered + 1

    assert (answered, shop.done) == (questions, done)
    refused = [said for said in found["said"] if "approval required" in said]
    assert len(refused) == sum(one[0] == "pay" for one in asked) - questions
    assert all("which would run again when the answer comes" in said for said in refused)


def test_the_same_holds_for_a_graph_that_is_not_async() -> None:
    shop = Shop()
    graph = in_turn(shop, NOTE, PAY, is_async=False)

    found = graph.invoke({"said": []}, THREAD)

    assert "__interrupt__" not in found
    assert shop.done == ["note fee"]


async def test_what_may_be_repeated_stands_in_the_way_of_no_question() -> None:
    shop = Shop()
    shop.tools[-1] = seawall.tool(shop.note, risk=Risk.LOW, annotations=Annotations.for_reading())
    graph = in_turn(shop, NOTE, PAY)

    paused = await graph.ainvoke({"said": []}, THREAD)
    found = await graph.ainvoke(Command(resume=True), THREAD)

    assert "__interrupt__" in paused
    assert found["said"] == ["noted", "paid ann"]
    assert shop.done == ["note fee", "note fee", "pay ann"]
