"""What layers remember, by tool name."""

from __future__ import annotations

from seawall.pipeline.state import MAX_RETIRED, StateTable


def test_what_is_remembered_is_made_once_and_may_be_none() -> None:
    slots = StateTable().of_tool("t")
    made: list[int] = []

    for _ in range(2):
        assert slots.slot("list", lambda: made.append(1)) is None

    assert made == [1]
    assert slots.find("list") is None
    assert slots.find("other") is None


def test_a_dropped_thing_is_made_anew() -> None:
    slots = StateTable().of_tool("t")
    first = slots.slot("thing", object)

    slots.drop("thing")
    slots.drop("thing")

    assert slots.slot("thing", object) is not first


def test_a_tool_that_comes_back_finds_what_it_left() -> None:
    table = StateTable()
    slots = table.of_tool("t")

    table.retire("t")
    table.retire("never there")

    assert len(table) == 0
    assert table.find("t") is slots
    assert table.of_tool("t") is slots
    assert len(table) == 1
    assert table.find("u") is None


def test_of_tools_that_went_only_the_newest_are_remembered() -> None:
    table = StateTable()
    for number in range(MAX_RETIRED + 10):
        table.of_tool(str(number))
        table.retire(str(number))

    assert table.find("9") is None
    assert table.find("10") is not None


def test_shared_slots_are_not_those_of_a_tool_of_the_same_name() -> None:
    table = StateTable()

    assert table.shared("x") is table.shared("x")
    assert table.shared("x") is not table.of_tool("x")


class Counted:
    """Counts how often it began anew."""

    def __init__(self) -> None:
        self.times = 0

    def forget_loop(self) -> None:
        self.times += 1


def test_everything_bound_to_the_loop_begins_anew_and_all_else_stays() -> None:
    table = StateTable()
    here, gone, shared = table.of_tool("here"), table.of_tool("gone"), table.shared("name")
    held = [slots.slot("counted", Counted) for slots in (here, gone, shared)]
    plain = here.slot("plain", object)
    table.retire("gone")

    table.forget_loop()

    assert [one.times for one in held] == [1, 1, 1]
    assert here.find("plain") is plain
