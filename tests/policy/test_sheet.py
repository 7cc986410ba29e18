"""One parsed file, and one laid over another."""

from __future__ import annotations

from seawall.contract.annotations import Risk
from seawall.policy.changes import Changes, Family
from seawall.policy.sheet import SECTIONS, Sheet, read_sheet


def test_a_sheet_has_what_was_said_with_its_units_read() -> None:
    sheet = read_sheet(
        {
            "extends": "default",
            "default": {"timeout_s": "5s"},
            "tools": {"a": {"preset": "network", "breaker": {"cooldown_s": "1m"}}},
            "families": {"f": {"match": "f_*", "annotations": {"read_only": True}, "cost": 2}},
            "presets": {"p": {"breaker": False}},
            "risk": {"strict": True},
            "trace": {"capacity": 5},
        },
        {},
    )

    assert sheet == Sheet(
        extends="default",
        default={"timeout_s": 5.0},
        tools={"a": {"preset": "network", "breaker": {"cooldown_s": 60.0}}},
        families={"f": ({"match": ("f_*",), "annotations": {"read_only": True}}, {"cost": 2})},
        presets={"p": {"breaker": False}},
        risk={"ask_from": Risk.MEDIUM},
        settings={"trace": {"capacity": 5}},
    )


def test_each_section_can_be_read() -> None:
    sheet = read_sheet({name: {} for name in SECTIONS if name != "extends"}, {})

    assert sheet.faults == []


def test_what_is_faulty_is_left_out() -> None:
    sheet = read_sheet({"tools": {"a": {"cost": "x", "max_retries": 2}}}, {})

    assert sheet.tools == {"a": {"max_retries": 2}}
    assert len(sheet.faults) == 1


def test_a_sheet_gives_the_rules_of_policies() -> None:
    sheet = Sheet(
        default={"cost": 2},
        tools={"a": {"preset": "network"}},
        families={"f": ({"tags": ("x",)}, {"cost": 3})},
        presets={"p": {"breaker": {"permits": 2}}},
    )

    assert sheet.rules() == {
        "default": Changes(cost=2),
        "tools": {"a": Changes(preset="network")},
        "families": {"f": Family(tags=("x",), policy=Changes(cost=3))},
        "presets": {"p": Changes(breaker={"permits": 2})},
    }


def test_a_file_without_a_default_gives_none() -> None:
    assert Sheet().rules()["default"] is None


def test_a_section_that_names_a_preset_replaces_the_one_before() -> None:
    base = Sheet(tools={"a": {"cost": 2}}, families={"f": ({"tags": ("x",)}, {"cost": 2})})
    over = Sheet(tools={"a": {"preset": "p"}}, families={"f": ({}, {"preset": "p"})})

    merged = over.over(base)

    assert merged.tools == {"a": {"preset": "p"}}
    assert merged.families == {"f": ({"tags": ("x",)}, {"preset": "p"})}


def test_a_family_keeps_its_turn_when_it_is_changed() -> None:
    base = Sheet(families={"a": ({}, {}), "b": ({}, {})})
    over = Sheet(families={"c": ({}, {}), "a": ({}, {"cost": 2})})

    assert list(over.over(base).families) == ["a", "b", "c"]


def test_an_empty_default_is_a_default() -> None:
    assert Sheet(default={}).over(Sheet()).default == {}
    assert Sheet().over(Sheet(default={})).default == {}
    assert Sheet().over(Sheet()).default is None
