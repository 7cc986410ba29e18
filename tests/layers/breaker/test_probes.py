"""The probes of a half-open circuit."""

from __future__ import annotations

from seawall.layers.breaker.probes import Probes


def test_no_more_are_out_than_may_be_at_once() -> None:
    probes = Probes(2)

    assert [probes.hand_out(permit, 0.0, 40.0) for permit in (1, 2, 3)] == [True, True, False]
    assert not probes.has_room(0.0)


def test_a_probe_counts_once() -> None:
    probes = Probes(1)
    probes.hand_out(1, 0.0, 40.0)

    assert [probes.take_back(1, 1.0), probes.take_back(1, 1.0)] == [True, False]
    assert probes.has_room(1.0)


def test_a_probe_lapses_at_its_time_and_not_before() -> None:
    probes = Probes(1)
    probes.hand_out(1, 0.0, 40.0)

    assert [probes.has_room(at) for at in (39.0, 40.0)] == [False, True]
    assert not probes.hand_out(2, 39.0, 79.0)
    assert probes.hand_out(3, 40.0, 80.0)
    assert probes.lapsed == 1


def test_a_probe_that_comes_back_after_it_lapsed_does_not_count() -> None:
    probes = Probes(1)
    probes.hand_out(1, 0.0, 40.0)

    assert not probes.take_back(1, 40.0)


def test_looking_for_room_changes_nothing() -> None:
    probes = Probes(1)
    probes.hand_out(1, 0.0, 40.0)

    assert probes.has_room(99.0)

    assert probes.lapsed == 0
    assert probes.take_back(1, 39.0)


def test_what_was_cleared_does_not_count() -> None:
    probes = Probes(2)
    probes.hand_out(1, 0.0, 40.0)

    probes.clear()

    assert not probes.take_back(1, 1.0)
    assert probes.lapsed == 0
