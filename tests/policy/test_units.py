"""Values with their units."""

from __future__ import annotations

from typing import Any

import pytest

from seawall.contract.annotations import Risk
from seawall.contract.policy import SECTIONS, RunPolicy
from seawall.policy import units


@pytest.mark.parametrize(
    ("raw", "seconds"),
    [
        ("30s", 30.0),
        ("30 s", 30.0),
        (" 30s ", 30.0),
        ("250ms", 0.25),
        ("1.5s", 1.5),
        ("2m", 120.0),
        ("1h", 3600.0),
        ("0s", 0.0),
        (30, 30.0),
        (0.5, 0.5),
        (-1, -1.0),
    ],
)
def test_a_duration_is_a_number_of_seconds_or_has_a_unit(raw: Any, seconds: float) -> None:
    assert units.duration(raw) == seconds


@pytest.mark.parametrize(
    "raw",
    ["30", "30 d", "s", "", "1h30m", "-1s", "30KiB", "1e3s", "½s", "٣s", True, None, [], {}, [30]],
)
def test_what_is_no_duration_is_refused_with_the_units_there_are(raw: Any) -> None:
    with pytest.raises(
        ValueError, match=r"it takes a number of seconds, or one with a unit, as 30s"
    ):
        units.duration(raw)


@pytest.mark.parametrize(
    ("reader", "raw", "meant"),
    [
        (units.duration, "30 sec", "30s"),
        (units.duration, "5min", "5m"),
        (units.duration, "1.5 Hours", "1.5h"),
        (units.duration, "30S", "30s"),
        (units.size, "256kb", "256KiB"),
        (units.size, "1 MB", "1MiB"),
    ],
)
def test_a_unit_as_others_write_it_is_told_as_it_is_written_here(
    reader: units.Reader, raw: str, meant: str
) -> None:
    with pytest.raises(ValueError, match=rf"; did you mean {meant}\? \(units: "):
        reader(raw)


@pytest.mark.parametrize("raw", [float("inf"), float("-inf"), float("nan"), 10**400, -(10**13)])
@pytest.mark.parametrize("reader", [units.duration, units.size])
def test_a_number_without_bounds_is_refused(reader: units.Reader, raw: float) -> None:
    with pytest.raises(ValueError, match=r"it takes|larger than"):
        reader(raw)


@pytest.mark.parametrize(
    ("raw", "size"),
    [(4096, 4096), ("512B", 512), ("256KiB", 262_144), ("1MiB", 1_048_576), ("1.5KiB", 1536)],
)
def test_a_size_is_a_number_of_bytes_or_has_a_unit(raw: Any, size: int) -> None:
    assert units.size(raw) == size


@pytest.mark.parametrize("raw", ["256KB", "256kib", "256", "0.3B", 1.5, True, "1s", "9999GiB"])
def test_what_is_no_size_is_refused(raw: Any) -> None:
    with pytest.raises(ValueError, match="is "):
        units.size(raw)


@pytest.mark.parametrize("raw", [1.0, "1", True, None, []])
def test_a_count_is_a_whole_number(raw: Any) -> None:
    with pytest.raises(ValueError, match="it takes a whole number"):
        units.count(raw)


@pytest.mark.parametrize("raw", [1, "true", None])
def test_a_flag_is_true_or_false(raw: Any) -> None:
    with pytest.raises(ValueError, match="it takes true or false"):
        units.flag(raw)


@pytest.mark.parametrize("raw", ["", "  ", 3, False, ["a"]])
def test_a_text_is_not_empty(raw: Any) -> None:
    with pytest.raises(ValueError, match="it takes a text in quotes"):
        units.text(raw)


def test_one_text_stands_for_a_list_of_one() -> None:
    assert units.texts("caller") == ("caller",)
    assert units.texts(["tool", "caller"]) == ("tool", "caller")
    assert units.texts([]) == ()


def test_a_choice_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="is empty"):
        units.some_texts([])


def test_a_list_too_long_to_be_meant_is_refused() -> None:
    with pytest.raises(ValueError, match="1,001 entries"):
        units.texts(["a"] * 1_001)


def test_durations_in_a_list_have_units_each() -> None:
    assert units.durations(["2s", 5, "250ms"]) == (2.0, 5.0, 0.25)


@pytest.mark.parametrize("raw", [30, "30s", {"a": 1}])
def test_durations_are_a_list(raw: Any) -> None:
    with pytest.raises(ValueError, match="it takes a list"):
        units.durations(raw)


@pytest.mark.parametrize(
    ("raw", "risk"), [("high", Risk.HIGH), ("Sensitive", Risk.MEDIUM), ("safe", Risk.LOW)]
)
def test_a_risk_is_read_by_its_name_or_synonym(raw: str, risk: Risk) -> None:
    assert units.risk(raw) is risk


def test_an_unknown_risk_is_refused_with_those_there_are() -> None:
    with pytest.raises(ValueError, match="use one of low, medium, high"):
        units.risk("extreme")


def test_false_takes_a_limit_away() -> None:
    assert units.limit(units.duration)(False) is None


@pytest.mark.parametrize("raw", [0, "0s", 0.0, -3])
def test_a_limit_of_nothing_is_refused_with_the_way_to_say_no_limit(raw: Any) -> None:
    with pytest.raises(ValueError, match="must be above 0; write false for no limit"):
        units.limit(units.duration)(raw)


def test_every_field_of_a_policy_can_be_read_from_a_file() -> None:
    assert set(units.RUN_READERS) | set(SECTIONS) == set(RunPolicy.__struct_fields__)
    read = {name: set(readers) for name, readers in units.SECTION_READERS.items()}
    assert read == {name: set(kind.__struct_fields__) for name, kind in SECTIONS.items()}


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (True, "true"),
        ({"a": 1}, "a table"),
        ([1], "a list"),
        ("a", "'a'"),
        ("a" * 99, "'" + "a" * 58 + "…"),
        (10**13, "a number that is too large"),
    ],
)
def test_a_value_is_shown_short(raw: Any, text: str) -> None:
    assert units.shown(raw) == text
