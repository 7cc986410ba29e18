from __future__ import annotations

import time
from typing import Any

import pytest

from seawall.pipeline.arguments.patterns.bounds import PatternBounds, pattern_bounds
from seawall.pipeline.arguments.reading.reader import MAX_BYTES

PLAIN = "^[a-z0-9_-]+$"
LOOKING = "(?=.*[A-Z])(?=.*[0-9]).{8,}"
ANCHORED = r"^(?!.*\.\.)[\w/.-]+$"
STEPPING = "a[ab]{100}[yz]"
HEAVY = "(?=a)(a[ab]{0,300}b){3}y"


def text(pattern: str) -> dict[str, Any]:
    return {"type": "string", "pattern": pattern}


def bounds(**properties: Any) -> PatternBounds:
    return of({"type": "object", "properties": properties})


def of(schema: Any) -> PatternBounds:
    found = pattern_bounds(schema)
    assert found is not None
    return found


def path_of(found: Any) -> str | None:
    if found is None:
        return None
    assert found[0] == "too_large"
    return str(found[1])


def test_a_schema_without_patterns_needs_no_bounds() -> None:
    assert pattern_bounds({"properties": {"a": {"type": "string"}}}) is None
    assert pattern_bounds({}) is None
    assert pattern_bounds(True) is None


def test_a_plain_pattern_takes_a_whole_file() -> None:
    assert bounds(a=text(PLAIN)).fault({"a": "x" * (MAX_BYTES - 10)}) is None


@pytest.mark.parametrize("pattern", [LOOKING, ANCHORED, STEPPING, HEAVY])
def test_a_pattern_that_takes_long_takes_little_text(pattern: str) -> None:
    found = bounds(a=text(pattern))

    assert found.fault({"a": "x" * 100}) is None
    assert path_of(found.fault({"a": "x" * 100_000})) == "/a"


def test_texts_of_other_arguments_do_not_count() -> None:
    found = bounds(path=text(ANCHORED), content={"type": "string"})

    assert found.fault({"path": "a/b", "content": "x" * 1_000_000, "more": "x" * 10_000}) is None


def test_many_texts_count_together() -> None:
    found = bounds(a={"type": "array", "items": text(ANCHORED)})

    assert found.fault({"a": ["x" * 100] * 100}) is None
    assert path_of(found.fault({"a": ["x" * 100] * 1_000})) == "/a"
    assert path_of(found.fault({"a": ["x"] * 1_000})) == "/a"


@pytest.mark.parametrize(
    ("schema", "value", "path"),
    [
        ({"$defs": {"t": text(LOOKING)}, "properties": {"a": {"$ref": "#/$defs/t"}}}, "a", "/a"),
        ({"additionalProperties": text(LOOKING)}, "a/b", "/a~1b"),
        ({"allOf": [{"properties": {"a": text(LOOKING)}}], "properties": {"a": {}}}, "a", "/a"),
        ({"patternProperties": {LOOKING: {}}, "properties": {"a": {}}}, "a", "/a"),
        ({"properties": {"a": {"propertyNames": {"pattern": LOOKING}}}}, "a", "/a"),
    ],
)
def test_a_pattern_counts_wherever_it_may_be_met(schema: Any, value: str, path: str) -> None:
    long = {"k" * 50_000: 1} if "propertyNames" in str(schema) else "x" * 50_000

    assert path_of(of(schema).fault({value: long})) == path


def test_names_of_arguments_count_where_they_are_matched() -> None:
    found = of({"patternProperties": {LOOKING: {}}})

    assert path_of(found.fault({"k" * 50_000: 1})) == ""


def test_values_that_are_no_objects_have_bounds_too() -> None:
    assert path_of(of(text(LOOKING)).fault("x" * 50_000)) == ""
    assert of(text(LOOKING)).fault("x") is None


def test_what_is_allowed_is_matched_in_time() -> None:
    import jsonschema_rs  # noqa: PLC0415  # only this test runs patterns

    for pattern in (LOOKING, ANCHORED, STEPPING, HEAVY):
        found = bounds(a=text(pattern))
        longest = max(n for n in (100, 300, 1_000, 2_000, 4_000, 50_000) if _fits(found, n))
        validator = jsonschema_rs.validator_for(text(pattern))
        begun = time.process_time()
        validator.is_valid("ab" * (longest // 2))

        assert time.process_time() - begun < 0.1


def _fits(found: PatternBounds, length: int) -> bool:
    return found.fault({"a": "x" * length}) is None
