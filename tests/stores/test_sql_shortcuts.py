from pathlib import Path

from seawall import Param, Pipeline, Shortcut, Shortcuts, ShortcutStep, open_state
from seawall.stores import State
from seawall.stores.sql_shortcuts import SqlShortcuts
from seawall.testing import scripted

KEY = bytes(range(32))


def shortcuts_of(state: State) -> SqlShortcuts:
    assert state.shortcuts is not None
    return state.shortcuts


def shortcut(name: str, arguments: str = "{}") -> Shortcut:
    return Shortcut(
        id=f"shortcut.{name}",
        name=name,
        params=(Param(name="a", default=None), Param(name="b", type="integer")),
        steps=(ShortcutStep(tool="look", arguments=arguments),),
    )


async def test_definitions_come_back_in_their_order(state_url: str) -> None:
    async with open_state(state_url, key=KEY) as state:
        for name in ("two", "one"):
            await shortcuts_of(state).save(shortcut(name))

    async with open_state(state_url, key=KEY) as state:
        assert await shortcuts_of(state).all() == [shortcut("two"), shortcut("one")]


async def test_one_with_the_same_id_takes_the_others_place(state_url: str) -> None:
    async with open_state(state_url, key=KEY) as state:
        for name, arguments in (("a", "{}"), ("b", "{}"), ("a", '{"x": 1}')):
            await shortcuts_of(state).save(shortcut(name, arguments))

        assert await shortcuts_of(state).all() == [shortcut("a", '{"x": 1}'), shortcut("b")]


async def test_what_was_removed_is_gone(state_url: str) -> None:
    async with open_state(state_url, key=KEY) as state:
        await shortcuts_of(state).save(shortcut("a"))
        await shortcuts_of(state).remove("shortcut.a")
        await shortcuts_of(state).remove("shortcut.a")

        assert await shortcuts_of(state).all() == []


async def test_what_cannot_be_opened_is_left_out(state_url: str) -> None:
    async with open_state(state_url, key=KEY) as state:
        await shortcuts_of(state).save(shortcut("a"))

    async with open_state(state_url, key=bytes(32)) as other:
        assert await shortcuts_of(other).all() == []


async def test_shortcuts_of_a_pipeline_are_kept_in_its_state(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/state.db"
    definition = {
        "id": "shortcut.twice",
        "name": "Twice",
        "steps": [{"tool": "look", "arguments": {}}, {"tool": "look", "arguments": {}}],
    }
    async with Pipeline([scripted("seen", name="look")], state=url) as pipeline:
        await Shortcuts(pipeline).define(definition)

    async with Pipeline([scripted("seen", name="look")], state=url) as pipeline:
        shortcuts = Shortcuts(pipeline)
        await shortcuts.load()
        result = await pipeline.call("shortcut.twice")

    assert "2 of 2 steps succeeded" in result.text
