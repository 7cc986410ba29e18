import json
from pathlib import Path
from typing import Any

import pytest

from seawall.contract.failure import FailureCode, ToolFailed
from seawall.toolkit.clocks import MAX_WAIT_MS, TimeNow, Wait

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "toolkit.json").read_text())["wait"]
NEW_YEAR = 1_767_225_600.25


class _Time:
    """A clock that sleeping moves, by more or less than was asked."""

    def __init__(self, drift_s: float = 0.0) -> None:
        self.seconds = 100.0
        self._drift_s = drift_s

    def now(self) -> float:
        return self.seconds

    async def sleep(self, seconds: float) -> None:
        self.seconds += seconds + self._drift_s


async def _outcome(duration_ms: int) -> tuple[str, tuple[str, ...]]:
    time = _Time()
    try:
        await Wait(time.sleep, time.now).wait(duration_ms)
    except ToolFailed as refused:
        return refused.failure.code.value, refused.failure.fields
    return "ok", ()


async def test_the_bounds_are_those_of_the_vectors() -> None:
    vector = next(case for case in VECTORS if case["id"] == "wt-01")

    outcomes = [await _outcome(step["wait_ms"]) for step in vector["steps"]]

    assert [code for code, _ in outcomes] == vector["expect"]["results"]
    assert {field for _, fields in outcomes for field in fields} == {vector["expect"]["field"]}


async def test_too_long_a_wait_is_told_to_split() -> None:
    time = _Time()

    with pytest.raises(ToolFailed) as refused:
        await Wait(time.sleep, time.now).wait(MAX_WAIT_MS + 1)

    assert refused.value.failure.code is FailureCode.INVALID_ARGUMENT
    assert "Split" in refused.value.failure.guidance
    assert time.seconds == 100.0


@pytest.mark.parametrize(
    ("drift_s", "expected"),
    [
        (0.0, {"waited_ms": 1000, "woke_early": False}),
        (0.4, {"waited_ms": 1400, "woke_early": False}),
        (-0.024, {"waited_ms": 976, "woke_early": False}),
        (-0.026, {"waited_ms": 974, "woke_early": True}),
    ],
)
async def test_the_time_that_really_passed_is_reported(
    drift_s: float, expected: dict[str, Any]
) -> None:
    time = _Time(drift_s)

    assert await Wait(time.sleep, time.now).wait(1000) == expected


def test_the_time_is_told_in_the_zone_that_was_asked_for() -> None:
    told = TimeNow(lambda: NEW_YEAR).time_now("Asia/Tokyo")

    assert told == {
        "time": "2026-01-01T09:00:00+09:00",
        "zone": "Asia/Tokyo",
        "abbreviation": "JST",
        "weekday": "Thursday",
        "utc": "2026-01-01T00:00:00.250Z",
        "epoch_s": NEW_YEAR,
    }


@pytest.mark.parametrize(
    "zone", ["Mars/Base", "../../etc/passwd", "/etc/localtime", "Europe", "a\0b"]
)
def test_an_unknown_zone_is_refused(zone: str) -> None:
    with pytest.raises(ToolFailed) as refused:
        TimeNow(lambda: NEW_YEAR).time_now(zone)

    assert refused.value.failure.fields == ("zone",)


def test_a_misspelt_zone_is_refused_with_those_near_to_it() -> None:
    with pytest.raises(ToolFailed, match="Europe/Berlin"):
        TimeNow(lambda: NEW_YEAR).time_now("Europe/Berln")
