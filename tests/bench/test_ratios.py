"""What is stored is a bound for what comes after."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from tests.bench.measure import Row
from tests.bench.ratios import Results, bound, persistently_worse, series, store, stored, worse

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path


def row(ratio: float, **others: Any) -> Row:
    values: dict[str, Any] = {"name": "chain", "against": "block", "least": 0.0, "greatest": 9.0}
    return Row(**values | {"ratio": ratio} | others)


@pytest.mark.parametrize(
    ("before", "now", "at_most"),
    [
        pytest.param(row(2), row(2), 2.5, id="a quarter more"),
        pytest.param(row(2, aim=3), row(2, aim=3), 2.5, id="the aim is further away"),
        pytest.param(row(2, aim=2.3), row(2, aim=2.3), 2.3, id="the aim is met with margin"),
        pytest.param(row(2.2, aim=2.3), row(2, aim=2.3), 2.75, id="the aim is hardly met"),
        pytest.param(row(3, aim=2), row(2, aim=2), 3.75, id="the aim is not met yet"),
        pytest.param(
            row(2, versions={"tenacity": "9.1"}),
            row(2, versions={"tenacity": "9.2"}),
            None,
            id="another version of a peer",
        ),
        pytest.param(
            row(2, aim=3, versions={"tenacity": "9.1"}),
            row(2, aim=3, versions={"tenacity": "9.2"}),
            3,
            id="an aim holds against every version",
        ),
        pytest.param(
            row(1, aim=2, wall=True), row(1, aim=2, wall=True), 2.5, id="what a busy machine moves"
        ),
        pytest.param(
            row(3, aim=2, wall=True), row(3, aim=2, wall=True), 3.75, id="the same, worse"
        ),
        pytest.param(row(2, aim=4, unit="s"), row(2, aim=4, unit="s"), None, id="a time"),
        pytest.param(row(9, aim=12, unit="KiB"), row(9, aim=12, unit="KiB"), 11.25, id="a size"),
    ],
)
def test_a_ratio_is_held_to_the_stored_one_and_to_an_aim_it_meets(
    before: Row, now: Row, at_most: float | None
) -> None:
    assert bound(before, now) == at_most


def test_what_is_above_its_bound_is_told_with_it_and_what_is_new_is_not() -> None:
    before = Results("3.11.7", {"chain": [row(2), row(2, name="retry")]})

    found = worse([row(2.6), row(2.4, name="retry"), row(9, name="new")], before)

    assert found == {("chain", "block"): 2.5}


@pytest.mark.parametrize(
    ("runs", "said"),
    [
        pytest.param([2.4], [], id="not worse"),
        pytest.param([2.6, 2.4], [], id="worse once"),
        pytest.param([2.6, 2.7, 2.4], [], id="worse twice"),
        pytest.param(
            [2.6, 2.7, 2.8], ["chain, against block: 2.6, 2.7, 2.8; at most 2.5"], id="each time"
        ),
    ],
)
def test_what_is_worse_in_three_runs_of_three_fails(runs: list[float], said: list[str]) -> None:
    before = Results("3.11.7", {"chain": [row(2), row(2, name="retry")]})
    first, *others = runs
    asked: list[set[tuple[str, str]]] = []

    def again(keys: Collection[tuple[str, str]]) -> list[Row]:
        asked.append({*keys})
        return [row(others[len(asked) - 1])]

    assert persistently_worse([row(first), row(2, name="retry")], before, again) == said
    assert asked == [{("chain", "block")}] * len(others)


def test_what_is_stored_is_read_back_and_replaces_that_of_this_python_alone(
    tmp_path: Path,
) -> None:
    path = tmp_path / "stored.json"
    others = Results("2.7.18", {"chain": [row(1)]})
    assert stored(path) == {}
    store(others, path)
    path.write_text(path.read_text().replace(f'"{series()}"', '"2.7"'))

    store(Results("first", {"chain": [row(2)]}), path)
    store(Results("second", {"chain": [row(3, versions={"a": "1"}, unit="KiB")]}), path)

    assert stored(path) == {
        "2.7": others,
        series(): Results("second", {"chain": [row(3, versions={"a": "1"}, unit="KiB")]}),
    }


def test_what_is_stored_says_which_python_made_it() -> None:
    found = stored()

    assert "3.11" in found
    assert all(results.python.startswith(f"{name}.") for name, results in found.items())
