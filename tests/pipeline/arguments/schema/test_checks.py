from __future__ import annotations

from typing import Any

import jsonschema_rs
import pytest

from seawall.pipeline.arguments.schema.checks import Check, Checks

HOME = "https://arguments.invalid/schema"
SCHEMA: dict[str, Any] = {
    "properties": {f"p{n}": {"type": "integer", "minimum": n} for n in range(20)},
    "$defs": {"next": {"properties": {"next": {"$ref": "#/$defs/next"}, "n": {"minimum": 1}}}},
}
PLACES = [f"{HOME}#/properties/p{n}" for n in range(20)]


class Compiler:
    def __init__(self, refused: str = "") -> None:
        self.compiled: list[dict[str, Any]] = []
        self._refused = refused
        self._registry = jsonschema_rs.Registry([(HOME, SCHEMA)])

    def __call__(self, schema: dict[str, Any]) -> Check | None:
        self.compiled.append(schema)
        if self._refused and self._refused in str(schema):
            return None
        return jsonschema_rs.validator_for(schema, registry=self._registry).is_valid


@pytest.mark.parametrize("position", [0, 7, 8, 19])
def test_each_place_is_checked_for_itself(position: int) -> None:
    checks = Checks(Compiler(), lambda: PLACES)
    found = [checks.at(place) for place in PLACES]

    assert found[position](position)
    assert not found[position](position - 1)
    assert not found[position]("x")


def test_many_places_are_compiled_at_one_go() -> None:
    compiler = Compiler()
    checks = Checks(compiler, lambda: PLACES)

    for place in PLACES:
        checks.at(place)

    assert len(compiler.compiled) == 9
    assert set(compiler.compiled[-1]["properties"]) == set(PLACES)


def test_a_check_is_made_once() -> None:
    compiler = Compiler()
    checks = Checks(compiler, lambda: PLACES)

    assert checks.at(PLACES[0]) is checks.at(PLACES[0])
    assert len(compiler.compiled) == 1


def test_a_place_that_nobody_listed_is_compiled_alone() -> None:
    checks = Checks(Compiler(), lambda: PLACES[:10])

    found = [checks.at(place) for place in PLACES]

    assert not found[15](1)


def test_one_place_that_cannot_be_compiled_takes_no_other_with_it() -> None:
    checks = Checks(Compiler(refused="p19"), lambda: PLACES)

    found = [checks.at(place) for place in PLACES]

    assert found[19]("anything")
    assert not found[18]("x")


def test_what_refers_to_itself_is_checked_at_any_depth() -> None:
    places = [*PLACES, f"{HOME}#/$defs/next"]
    checks = Checks(Compiler(), lambda: places)
    value: dict[str, Any] = {"n": 0}
    for _ in range(50):
        value = {"next": value}

    found = [checks.at(place) for place in places]

    assert not found[-1](value)
    assert found[-1]({"next": {"n": 1}})


def test_of_those_compiled_by_themselves_only_so_many_are_kept() -> None:
    many = {"properties": {f"p{n}": {"minimum": n} for n in range(200)}}
    registry = jsonschema_rs.Registry([(HOME, many)])
    compiled: list[str] = []

    def make(schema: dict[str, Any]) -> Check:
        compiled.append(schema["$ref"])
        return jsonschema_rs.validator_for(schema, registry=registry).is_valid

    checks = Checks(make, lambda: ())
    places = [f"{HOME}#/properties/p{n}" for n in range(200)]

    found = [checks.at(place) for place in [*places, *places]]

    assert len(compiled) == 64 + 2 * 136
    assert [check(99) for check in found] == [n <= 99 for n in [*range(200), *range(200)]]
