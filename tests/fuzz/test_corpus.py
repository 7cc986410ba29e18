"""What was found once is not found again."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pytest
from tests.fuzz.__main__ import drawn
from tests.fuzz.corpus import kept, read, written
from tests.fuzz.probe import MOST_S, Case, Probe

if TYPE_CHECKING:
    from collections.abc import Iterator

SLOW_MACHINE = 3


@pytest.fixture(name="probe", scope="module")
def probe_fixture() -> Iterator[Probe]:
    probe = Probe(MOST_S * SLOW_MACHINE)
    yield probe
    probe.close()


@pytest.mark.parametrize("case", [pytest.param(case, id=name) for name, case in kept()])
def test_no_case_that_was_found_is_found_again(probe: Probe, case: Case) -> None:
    assert probe.trouble(case) is None


@pytest.mark.parametrize("number", range(0, 400, 20))
def test_a_few_new_cases_find_nothing(probe: Probe, number: int) -> None:
    for each in range(number, number + 20):
        assert probe.trouble(drawn(0, each)) is None, f"--seed 0 --case {each}"


def test_a_case_is_drawn_by_its_seed_and_number_alone() -> None:
    assert repr(drawn(1, 7)) == repr(drawn(1, 7))
    assert repr(drawn(1, 7)) != repr(drawn(1, 8))


@pytest.mark.parametrize(
    "given",
    ["text \ud800", {"a": [math.inf, b"x", {1, 2}, (1,)]}, "x" * 100_000, {"a": [1] * 9_000}],
    ids=["text", "odd", "long", "many"],
)
def test_a_case_that_is_kept_is_read_as_it_was(given: Any) -> None:
    case = Case({"type": "object"}, given)

    assert read(written(case, "slow")) == case


def test_a_probe_finds_what_escapes_and_what_takes_long() -> None:
    calm, hasty = Probe(), Probe(most_s=0.0)
    bad: Any = Case({"type": "object"}, {"a": 1})

    assert calm.trouble(bad) is None
    found = hasty.trouble(bad)

    assert found is not None
    assert found.kind == "slow"
    for probe in (calm, hasty):
        probe.close()
