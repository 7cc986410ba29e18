"""What a registry takes in, and whom it tells."""

from __future__ import annotations

import gc
import threading
from typing import Any

import pytest

from seawall.contract.annotations import Annotations, Risk
from seawall.contract.errors import ConfigurationError
from seawall.contract.tool import Tool
from seawall.registry.registry import MAX_NAME, Registry, name_faults


def make(name: str = "t", **fields: Any) -> Tool:
    found = {"description": f"Does {name}.\nMore.", "input_schema": {"type": "object"}, **fields}
    return Tool(name=name, executor=found.pop("executor", print), **found)


BROKEN = {"type": "string"}


class Watch:
    """Notes what it is told; raises if it is made to."""

    def __init__(self, refuses: str = "") -> None:
        self.heard: list[str] = []
        self.refuses = refuses

    def tool_added(self, tool: Tool) -> None:
        if tool.description == self.refuses:
            raise ConfigurationError("cannot be composed")
        self.heard.append(f"+{tool.name}")

    def tool_removed(self, name: str) -> None:
        self.heard.append(f"-{name}")


def refused(work: Any) -> list[str]:
    with pytest.raises(ConfigurationError) as error:
        work()
    return [str(fault) for fault in error.value.faults]


def test_tools_are_found_by_their_exact_name_in_the_order_they_came() -> None:
    b, a = make("b"), make("a")
    registry = Registry([b, a])

    assert registry.names() == ("b", "a")
    assert list(registry) == [b, a]
    assert len(registry) == 2
    assert registry.get("a") is a
    assert registry.get("A") is None
    assert "a" in registry
    assert "c" not in registry


def test_a_function_becomes_a_tool() -> None:
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    registry = Registry([add])

    found = registry.get("add")
    assert found is not None
    assert found.description == "Add two numbers."


@pytest.mark.parametrize(
    "name", ["a", "read_file", "files/read", "mcp__git__push", "météo", "two words", "x" * MAX_NAME]
)
def test_names_may_be_what_servers_make_them(name: str) -> None:
    assert name_faults(name) == []


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("", "must not be blank"),
        ("  ", "must not be blank"),
        (" a", "blanks around it"),
        ("a\n", "blanks around it"),
        ("a\x00b", "unprintable"),
        ("x" * (MAX_NAME + 1), f"{MAX_NAME} at most"),
        (5, "must be a text, not int"),
        (None, "must be a text, not NoneType"),
    ],
)
def test_a_name_that_cannot_be_shown_or_typed_is_refused(name: Any, said: str) -> None:
    assert any(said in str(fault) for fault in name_faults(name))


def test_all_faults_of_all_tools_are_told_together() -> None:
    nothing: Any = None
    tools = [make("a"), make("a", input_schema=BROKEN, executor=nothing), make(" b")]

    said = refused(lambda: Registry(tools))

    assert len(said) == 4
    assert any("a: is registered already" in line for line in said)
    assert any("a.executor: has no callable executor" in line for line in said)
    assert any(line.startswith("a.input_schema") for line in said)
    assert any("blanks around" in line for line in said)


def test_a_fault_in_the_schema_of_the_answer_is_told_too() -> None:
    said = refused(lambda: Registry([make(output_schema={"type": "nonsense"})]))

    assert said[0].startswith("t.output_schema")
    assert Registry([make(output_schema={"type": "string"})])


def test_a_second_tool_of_a_name_is_an_error_unless_said_otherwise() -> None:
    first, second = make(description="first"), make(description="second")
    registry = Registry([first])

    assert "is registered already" in refused(lambda: registry.register(second))[0]
    assert registry.register(second, on_duplicate="keep") is first
    assert registry.get("t") is first
    assert registry.register(second, on_duplicate="replace") is second
    assert registry.get("t") is second
    assert len(registry) == 1


def test_a_tool_with_a_faulty_schema_may_be_set_aside_with_the_reason() -> None:
    registry = Registry([make("good")])

    registry.register(make("bad", input_schema=BROKEN), on_invalid="quarantine")

    reason = registry.quarantine_reason("bad")
    assert reason is not None
    assert registry.quarantined() == {"bad": reason}
    assert registry.quarantine_reason("good") is None
    assert [shape["name"] for shape in registry.declarations()] == ["good"]
    assert "bad" not in registry.overview()
    assert registry.get("bad") is not None


def test_even_then_a_faulty_name_is_refused() -> None:
    registry = Registry()

    refused(lambda: registry.register(make(" x", input_schema=BROKEN), on_invalid="quarantine"))

    assert len(registry) == 0


def test_a_tool_that_is_mended_is_set_aside_no_longer() -> None:
    registry, watch = Registry(), Watch()
    registry.watch(watch)
    registry.register(make(input_schema=BROKEN), on_invalid="quarantine")

    registry.register(make(), on_duplicate="replace")

    assert registry.quarantined() == {}
    assert watch.heard == ["+t"]


def test_a_tool_that_is_replaced_by_a_faulty_one_can_no_longer_be_called() -> None:
    registry, watch = Registry([make()]), Watch()
    registry.watch(watch)

    for _ in range(2):
        registry.register(
            make(input_schema=BROKEN), on_duplicate="replace", on_invalid="quarantine"
        )

    assert watch.heard == ["-t"]
    registry.unregister("t")
    assert watch.heard == ["-t"], "it was gone already"


def test_unregistering_gives_the_tool_and_forgets_it() -> None:
    tool, watch = make(), Watch()
    registry = Registry([tool])
    registry.watch(watch)

    assert registry.unregister("t") is tool
    assert registry.unregister("t") is None
    assert registry.suggest("t") == ()
    assert watch.heard == ["-t"]
    registry.register(tool)
    assert registry.get("t") is tool


def test_a_chain_that_cannot_be_composed_keeps_the_tool_out() -> None:
    registry, first, second = Registry(), Watch(), Watch(refuses="impossible")
    registry.watch(first)
    registry.watch(second)

    refused(lambda: registry.register(make(description="impossible")))

    assert "t" not in registry
    assert registry.suggest("t") == ()
    assert first.heard in ([], ["+t", "-t"]), "who was told is told that it came to nothing"


def test_a_replacement_that_cannot_be_composed_leaves_what_was_there() -> None:
    old = make(description="old")
    registry, first, second = Registry([old]), Watch(), Watch(refuses="impossible")
    registry.watch(first)
    registry.watch(second)

    refused(lambda: registry.register(make(description="impossible"), on_duplicate="replace"))

    assert registry.get("t") is old
    assert first.heard in ([], ["+t", "+t"])


def test_a_watcher_is_told_for_as_long_as_it_lives() -> None:
    registry = Registry()
    watch = Watch()
    registry.watch(watch)
    heard = watch.heard
    del watch
    gc.collect()

    registry.register(make())

    assert heard == []


def test_the_decorator_registers_and_gives_the_function_back() -> None:
    registry = Registry()

    @registry.tool
    def plain(a: int) -> int:
        """Plain."""
        return a

    @registry.tool(name="other", risk=Risk.HIGH)
    def named(a: int) -> int:
        """Named."""
        return a

    assert plain(1) == named(1) == 1
    assert registry.names() == ("plain", "other")
    other = registry.get("other")
    assert other is not None
    assert other.risk is Risk.HIGH


def test_a_copy_leaves_out_what_it_should_and_keeps_what_is_set_aside() -> None:
    registry = Registry([make("a"), make("b")])
    registry.register(make("bad", input_schema=BROKEN), on_invalid="quarantine")

    copy = registry.copy(excluding=["a"])
    copy.unregister("b")

    assert copy.names() == ("bad",)
    assert set(copy.quarantined()) == {"bad"}
    assert registry.names() == ("a", "b", "bad")


def test_excluding_a_name_that_is_not_there_is_an_error() -> None:
    assert refused(lambda: Registry([make()]).copy(excluding=["T"])) == [
        "T: is not registered, so it cannot be excluded; name one that is"
    ]


def test_a_copy_into_another_registry_does_not_replace_what_is_there() -> None:
    target = Registry([make("mine")])

    assert Registry([make("a")]).copy(into=target) is target
    assert target.names() == ("mine", "a")
    refused(lambda: Registry([make("mine")]).copy(into=target))


def test_an_overview_groups_tools_and_says_one_line_of_each() -> None:
    registry = Registry(
        [
            make("b", category="files", family="disk"),
            make("a", category="files", annotations=Annotations.for_destroying()),
            make("c", category="web", description="x" * 200),
        ]
    )

    assert registry.overview() == "\n".join(
        ["files:", "  b: Does b.", "  a: Does a.", "web:", f"  c: {'x' * 119}…"]
    )
    assert registry.overview("risk").startswith("HIGH:\n  a: Does a.\nLOW:")
    assert registry.overview("family").startswith("disk:\n  b")
    assert registry.categories() == ("files", "web")


@pytest.mark.parametrize("by", ["categories", "zzz"])
def test_an_overview_by_something_else_is_an_error_that_says_by_what_it_can_be(by: str) -> None:
    (said,) = refused(lambda: Registry().overview(by))

    assert said.endswith(f"an overview is by one of category, family and risk, not by {by!r}")


def test_hints_are_few_and_only_of_names_that_are_allowed() -> None:
    registry = Registry([make(f"read_file_{n}") for n in range(9)])

    hints = registry.suggest("read_file", allowed=lambda name: not name.endswith("0"))

    assert 1 <= len(hints) <= 3
    assert "read_file_0" not in hints


def test_declarations_are_in_the_shape_that_is_asked_for() -> None:
    registry = Registry([make("files/read")])

    (mcp,), (openai,) = registry.declarations(), registry.declarations("openai")

    assert mcp["name"] == "files/read"
    assert openai["function"]["name"] == registry.provider_names.export(["files/read"])[0]
    unknown: Any = "latin"
    assert "is not known" in refused(lambda: registry.declarations(unknown))[0]


def test_tools_may_come_and_go_from_many_threads() -> None:
    registry, watch = Registry(), Watch()
    registry.watch(watch)

    def work(number: int) -> None:
        for turn in range(20):
            registry.register(make(f"t{number}_{turn}"))
            registry.suggest("t1")
            if turn % 2:
                registry.unregister(f"t{number}_{turn}")

    threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(registry) == 6 * 10
    assert len(watch.heard) == 6 * 30


def test_categories_are_those_of_the_tools_that_are_here_now() -> None:
    registry = Registry()
    for name, category in (("a", "files"), ("b", "web"), ("c", "files")):
        registry.register(make(name, category=category))
        assert category in registry.categories()

    registry.unregister("b")
    assert registry.categories() == ("files",)
    registry.register(make("c", category="mail"), on_duplicate="replace")
    assert registry.categories() == ("files", "mail")
