"""Pairs are compared block by block, beside each other."""

from __future__ import annotations

from tests.bench.measure import WALL, Case, Pair, measured


class Machine:
    """Time that only passes in what runs; every so often the machine is half as fast."""

    def __init__(self) -> None:
        self.now = 0.0
        self.ran: list[str] = []

    def taking(self, name: str, seconds: float) -> Case:
        async def run(times: int) -> None:
            self.ran.append(name)
            slow = 2 if int(self.now * 10) % 2 else 1
            self.now += seconds * times * slow

        return run

    def pair(self, name: str, ours_s: float, other_s: float, aim: float | None = None) -> Pair:
        ours, other = self.taking(name, ours_s), self.taking(f"other {name}", other_s)
        return Pair(name, ours, "other", other, aim, clock=lambda: self.now)


async def test_the_ratio_is_that_of_blocks_beside_each_other_whatever_the_machines_speed() -> None:
    machine = Machine()

    [row] = await measured([machine.pair("a", 0.000_03, 0.000_01)], rounds=41)

    assert abs(row.ratio - 3) < 0.01
    assert row.least <= row.ratio <= row.greatest


async def test_ours_runs_between_two_blocks_of_the_other() -> None:
    machine = Machine()
    pairs = [machine.pair("a", 0.001, 0.001), machine.pair("b", 0.001, 0.001)]

    await measured(pairs, rounds=2)

    last = machine.ran[-12:]
    assert {tuple(last[place : place + 3]) for place in range(0, 12, 3)} == {
        ("other a", "a", "other a"),
        ("other b", "b", "other b"),
    }


async def test_rows_come_in_the_order_of_the_pairs_with_what_they_say() -> None:
    machine = Machine()
    pairs = [
        machine.pair("slow", 0.02, 0.01, aim=3),
        machine.pair("fast", 0.000_1, 0.000_2)._replace(packages=("msgspec",), does="V"),
    ]

    slow, fast = await measured(pairs, rounds=5)

    assert (slow.name, slow.against, slow.aim) == ("slow", "other", 3)
    assert (fast.name, fast.does, list(fast.versions)) == ("fast", "V", ["msgspec"])


async def test_a_row_says_whether_the_clock_on_the_wall_measured_it() -> None:
    pair = Machine().pair("a", 0.001, 0.001)

    by_hand, by_the_wall = await measured([pair, pair._replace(clock=WALL)], rounds=1)

    assert (by_hand.wall, by_the_wall.wall) == (False, True)


async def test_a_block_is_long_enough_to_be_measured_and_a_long_case_runs_once_in_it() -> None:
    machine = Machine()
    taken: dict[str, int] = {}

    def sized(pair: Pair) -> Pair:
        async def ours(times: int) -> None:
            taken[pair.name] = times
            await pair.ours(times)

        return pair._replace(ours=ours)

    pairs = [sized(machine.pair("short", 0.000_001, 1.0)), sized(machine.pair("long", 1.0, 1.0))]
    await measured(pairs, rounds=1, block_s=0.003)

    assert taken["short"] * 0.000_001 >= 0.0015
    assert taken["long"] == 1
