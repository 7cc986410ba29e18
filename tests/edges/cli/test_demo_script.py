from seawall.edges.cli.demo import BUNDLED
from seawall.edges.cli.demo_script import Happening, turns
from seawall.edges.cli.demo_tools import Shop, demo_tools


def test_the_script_calls_tools_that_there_are_and_one_that_there_is_not() -> None:
    there = {tool.name for tool in demo_tools(Shop("127.0.0.1", 1))} | set(BUNDLED)
    called = {ask.tool for turn in turns("127.0.0.1:1") for ask in turn.calls}

    assert called - there == {"functions.wether"}
    assert there - called == {"wait"}


def test_everything_that_can_happen_happens() -> None:
    assert {turn.before for turn in turns("127.0.0.1:1")} - {None} == set(Happening)
