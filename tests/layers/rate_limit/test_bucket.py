"""The token bucket: vectors and cases, the faults of other limiters, and models."""

from __future__ import annotations

import itertools
import json
import math
import threading
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule
from limits import RateLimitItemPerMinute
from limits.storage import Storage
from limits.strategies import RateLimiter

from seawall.contract.errors import ConfigurationError
from seawall.layers.rate_limit.bucket import MemoryBuckets, TokenBucket
from seawall.layers.rate_limit.strategies import parse_rate

TESTS = Path(__file__).parents[2]
VECTORS = json.loads((TESTS / "vectors" / "token_bucket.json").read_text())["cases"]
CASES = json.loads((TESTS / "cases" / "rate_limit.json").read_text())

NOT_THE_BUCKET = {
    "tb-06": "without a rate there is no limiter in the chain",
    "tb-13": "calls a tool through a pipeline",
}


class Hands:
    """A clock moved by hand."""

    def __init__(self, at: float = 0.0) -> None:
        self.at = at

    def __call__(self) -> float:
        return self.at


def bucket_at(at: float = 0.0, max_keys: int = 10_000) -> tuple[TokenBucket, Hands]:
    hands = Hands(at)
    return TokenBucket(MemoryBuckets(max_keys), hands), hands


# Vectors.


class VectorRun:
    """Plays the steps of one vector and keeps what came of them."""

    def __init__(self, given: dict[str, Any]) -> None:
        self.limit = given.get("limit_per_minute")
        self.bucket, self.hands = bucket_at()
        self.open_outcomes: list[str] = []
        self.last: list[str] = []
        if "drained_at_ms" in given:
            self.hands.at = given["drained_at_ms"] / 1000
            self.bucket.take(self.item(), "t", cost=given["limit_per_minute"])

    def item(self, limit: int | None = None) -> Any:
        return parse_rate(f"{limit or self.limit}/minute")

    def play(self, step: dict[str, Any]) -> None:
        self.hands.at = step.get("at_ms", self.hands.at * 1000) / 1000
        if "drain" in step:
            limit = step["limit"]
            assert self.bucket.take(self.item(limit), step["drain"], cost=limit).granted
        elif "new_bucket" in step:
            self.bucket, self.hands = bucket_at(self.hands.at)
        else:
            self.acquire(step)

    def acquire(self, step: dict[str, Any]) -> None:
        item = self.item(step.get("limit"))
        taken = [self.bucket.take(item, step["acquire"]) for _ in range(step.get("times", 1))]
        self.last = ["grant" if one.granted else "deny" for one in taken]
        if "outcome" in step:
            assert set(self.last) == {step["outcome"]}
        else:
            self.open_outcomes += self.last
        if "retry_in_ms" in step:
            # The vectors round a wait up past its exact end: 6 s are 6001 ms.
            assert math.floor(float(taken[-1].retry_after_s or 0) * 1000) + 1 == step["retry_in_ms"]


@pytest.mark.parametrize(
    "vector",
    [
        pytest.param(one, id=one["id"])
        for one in VECTORS
        if one["id"] not in NOT_THE_BUCKET and "steps" in one and "error" not in one["expect"]
    ],
)
def test_the_bucket_grants_what_the_vector_says(vector: dict[str, Any]) -> None:
    run = VectorRun(vector["given"])

    for step in vector["steps"]:
        run.play(step)

    found = {
        "outcomes": run.open_outcomes,
        "outcomes_after_drain": run.open_outcomes,
        "last_outcomes": run.last,
        "grants_in_last_step": run.last.count("grant"),
    }
    assert {name: found[name] for name in vector["expect"]} == vector["expect"]


def test_a_rate_of_zero_is_refused_as_the_vector_says() -> None:
    [vector] = [one for one in VECTORS if "error" in one["expect"]]

    with pytest.raises(ConfigurationError, match="must be above 0"):
        parse_rate(f"{vector['given']['limit_per_minute']}/minute")


# Cases.


class CaseRun:
    """Plays the timeline of one case."""

    def __init__(self, policy: dict[str, Any]) -> None:
        capacity, refill_per_s = policy["capacity"], policy["refill_per_s"]
        self.item = parse_rate(f"{capacity} per {round(capacity / refill_per_s)} second")
        self.bucket, self.hands = bucket_at(max_keys=policy.get("max_keys", 10_000))
        self.stepped = 0.0
        self.granted: dict[str, int] = {}
        self.outcomes: dict[str, str] = {}
        self.most_tracked = 0
        self.tracked_at: dict[str, int] = {}

    def play(self, event: dict[str, Any]) -> None:
        self.hands.at = event.get("clock_reads", event.get("at", 0) + self.stepped)
        getattr(self, "on_" + event["do"])(event)

    def on_clock_step(self, event: dict[str, Any]) -> None:
        self.stepped += event["by"]

    def on_acquire(self, event: dict[str, Any]) -> None:
        self.on_acquire_many({**event, "count": 1})

    def on_acquire_many(self, event: dict[str, Any]) -> None:
        taken = [
            self.bucket.take(self.item, event.get("key", "t"), cost=event.get("cost", 1))
            for _ in range(event["count"])
        ]
        name = event.get("as", "")
        self.granted[name] = sum(one.granted for one in taken)
        never = taken[-1].retry_after_s is None
        self.outcomes[name] = "ok" if taken[-1].granted else "config_error" if never else "rejected"

    def on_acquire_keys(self, event: dict[str, Any]) -> None:
        for number in range(event["distinct"]):
            self.bucket.take(self.item, f"key {number}")
        self.most_tracked = max(self.most_tracked, self.bucket.tracked)

    def on_observe(self, event: dict[str, Any]) -> None:
        self.tracked_at[str(event["at"])] = self.bucket.tracked


@pytest.mark.parametrize("case", [pytest.param(one, id=one["id"]) for one in CASES])
def test_the_bucket_does_what_the_case_expects(case: dict[str, Any]) -> None:
    run = CaseRun(case["given"]["policy"]["limiter"])
    expect = case["expect"]

    for event in case["call"]["timeline"]:
        run.play(event)

    assert {name: run.granted[name] for name in expect.get("granted", {})} == expect.get(
        "granted", {}
    )
    for name, allowed in expect.get("outcomes_any", {}).items():
        assert run.outcomes[name] in allowed
    assert run.most_tracked <= expect.get("tracked_keys_max", 0)
    for at, bounds in expect.get("tracked_keys_at", {}).items():
        assert run.tracked_at[at] <= bounds["max"]


# One rule each.


def test_it_is_a_strategy_over_a_storage_of_limits() -> None:
    bucket, _ = bucket_at()

    assert isinstance(bucket, RateLimiter)
    assert isinstance(bucket.storage, Storage)


def test_a_grant_says_how_many_tokens_are_left() -> None:
    bucket, hands = bucket_at()
    item = parse_rate("10/minute")
    bucket.take(item, "t", cost=4)

    hands.at = 3.0
    taken = bucket.take(item, "t")

    assert (taken.granted, taken.retry_after_s, taken.left) == (True, 0.0, 5.5)


def test_a_refusal_says_how_many_tokens_there_are_and_when_enough() -> None:
    bucket, hands = bucket_at()
    item = parse_rate("10/minute")
    bucket.take(item, "t", cost=9)

    hands.at = 3.0
    taken = bucket.take(item, "t", cost=2)

    assert (taken.granted, taken.retry_after_s, taken.left) == (False, 3.0, 1.5)


def test_a_cost_above_the_capacity_is_refused_for_ever_and_writes_nothing() -> None:
    bucket, _ = bucket_at()
    item = parse_rate("10/minute")

    taken = bucket.take(item, "t", cost=11)

    assert (taken.granted, taken.retry_after_s, taken.left) == (False, None, 10.0)
    assert bucket.tracked == 0
    assert bucket.take(item, "t", cost=10).granted


def test_a_cost_of_the_whole_capacity_is_granted_to_a_full_bucket() -> None:
    bucket, _ = bucket_at()

    assert bucket.take(parse_rate("7/minute"), "t", cost=7).granted


@pytest.mark.parametrize("cost", [0, -1, -100])
def test_a_cost_that_takes_nothing_or_mints_is_an_error(cost: int) -> None:
    bucket, _ = bucket_at()
    item = parse_rate("10/minute")

    for ask in (bucket.take, bucket.hit, bucket.test, bucket.give_back):
        with pytest.raises(ValueError, match="must be at least 1"):
            ask(item, "t", cost=cost)

    assert bucket.test(item, "t", cost=10)


def test_a_refused_take_does_not_push_the_refill_back() -> None:
    bucket, hands = bucket_at()
    item = parse_rate("1/minute")
    bucket.take(item, "t")

    for hands.at in range(1, 60):
        assert not bucket.take(item, "t").granted
    hands.at = 60

    assert bucket.take(item, "t").granted


def test_fractions_are_kept_from_one_take_to_the_next() -> None:
    bucket, hands = bucket_at()
    item = parse_rate("30/minute")
    bucket.take(item, "t", cost=30)

    for hands.at in range(10):
        bucket.take(item, "t")
    hands.at = 20

    # Ten seconds gave 4.5 tokens, of which four were taken; ten more give five.
    assert bucket.take(item, "t", cost=5).granted


def test_the_wall_clock_does_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    bucket, hands = bucket_at()
    item = parse_rate("2/second")
    bucket.take(item, "t", cost=2)

    monkeypatch.setattr(time, "time", lambda: -3600.0)
    hands.at = 1.0

    assert bucket.take(item, "t", cost=2).granted


def test_a_clock_that_steps_back_neither_mints_nor_loses_tokens() -> None:
    bucket, hands = bucket_at(100.0)
    item = parse_rate("10/second")
    bucket.take(item, "t", cost=5)

    hands.at = 40.0
    assert bucket.take(item, "t").left == 4.0
    hands.at = 100.0
    assert bucket.take(item, "t").left == 3.0
    hands.at = 100.5

    assert bucket.take(item, "t").left == 7.0


def test_the_wait_told_while_the_clock_is_back_lasts_until_it_has_caught_up() -> None:
    bucket, hands = bucket_at(100.0)
    item = parse_rate("1/second")
    bucket.take(item, "t")

    hands.at = 40.0
    taken = bucket.take(item, "t")

    assert taken.retry_after_s == 61.0


def test_no_thread_is_started() -> None:
    bucket, hands = bucket_at()
    item = parse_rate("1000/second")
    before = threading.active_count()

    for step in range(50):
        hands.at = step * 0.005
        bucket.take(item, f"key {step}")

    assert threading.active_count() == before


def test_identifiers_are_keys_of_their_own_whatever_is_in_them() -> None:
    bucket, _ = bucket_at()
    item = parse_rate("1/minute")
    names = [("a", "b"), ("a/b",), ("a%2Fb",), ("a", "", "b"), ("a", "b", ""), ("",), ()]

    assert all(bucket.take(item, *identifiers).granted for identifiers in names)
    assert bucket.tracked == len(names)


def test_namespaces_are_keys_of_their_own() -> None:
    bucket, _ = bucket_at()

    assert bucket.take(RateLimitItemPerMinute(1, namespace="a"), "t").granted
    assert bucket.take(RateLimitItemPerMinute(1, namespace="b"), "t").granted
    assert not bucket.take(RateLimitItemPerMinute(1, namespace="a"), "t").granted


# A changed rate.


def test_a_higher_rate_gives_no_free_tokens_and_fills_faster_at_once() -> None:
    bucket, hands = bucket_at()
    slow, fast = parse_rate("60/minute"), parse_rate("600/minute")
    bucket.take(slow, "t", cost=50)

    hands.at = 5.0
    refused = bucket.take(fast, "t", cost=16)
    assert refused.left == 15.0
    assert refused.retry_after_s == pytest.approx(0.1)
    hands.at += refused.retry_after_s or 0.0

    assert bucket.take(fast, "t", cost=16).granted


def test_a_lower_rate_clips_what_is_there() -> None:
    bucket, _ = bucket_at()
    bucket.take(parse_rate("10/minute"), "t")

    assert bucket.take(parse_rate("2/minute"), "t").left == 1.0


def test_a_full_bucket_is_as_good_as_a_new_one_under_the_next_rate() -> None:
    bucket, hands = bucket_at()
    bucket.take(parse_rate("2/minute"), "t")

    hands.at = 30.0

    assert bucket.take(parse_rate("10/minute"), "t").left == 9.0


def test_a_bound_bucket_and_one_under_a_new_rate_share_their_tokens() -> None:
    bucket, _ = bucket_at()
    old = bucket.bind(parse_rate("10/minute"), "t")
    new = bucket.bind(parse_rate("4/minute"), "t")

    lefts = [old.take().left, new.take().left, old.take().left, new.take().left]

    assert lefts == [9.0, 3.0, 2.0, 1.0]


def test_asking_about_another_rate_changes_nothing() -> None:
    bucket, _ = bucket_at()
    item = parse_rate("10/minute")
    bucket.take(item, "t")

    assert not bucket.test(parse_rate("2/minute"), "t", cost=3)
    assert bucket.get_window_stats(parse_rate("2/minute"), "t").remaining == 2

    assert bucket.take(item, "t").left == 8.0


# Giving back.


def test_what_is_given_back_can_be_taken_again() -> None:
    bucket, _ = bucket_at()
    item = parse_rate("2/minute")
    bucket.take(item, "t", cost=2)

    bucket.give_back(item, "t")

    assert bucket.take(item, "t").granted
    assert not bucket.take(item, "t").granted


def test_giving_back_never_fills_above_the_capacity() -> None:
    bucket, hands = bucket_at()
    item = parse_rate("2/minute")
    bucket.take(item, "t")

    hands.at = 20.0
    bucket.give_back(item, "t", cost=2)

    assert bucket.take(item, "t").left == 1.0


def test_giving_back_to_a_key_that_was_never_asked_makes_no_state() -> None:
    bucket, _ = bucket_at()

    bucket.give_back(parse_rate("2/minute"), "t")

    assert bucket.tracked == 0


def test_a_bucket_filled_by_giving_back_is_forgotten_at_once() -> None:
    bucket, _ = bucket_at(max_keys=1)
    item = parse_rate("2/minute")
    bucket.take(item, "a")

    bucket.give_back(item, "a")

    assert bucket.tracked == 0


def test_giving_back_under_a_lower_rate_clips() -> None:
    bucket, _ = bucket_at()
    bucket.take(parse_rate("10/minute"), "t", cost=9)

    bucket.give_back(parse_rate("3/minute"), "t", cost=9)

    assert not bucket.test(parse_rate("3/minute"), "t", cost=4)
    assert bucket.test(parse_rate("3/minute"), "t", cost=3)


# Bounded keys.


def test_many_other_callers_never_reset_a_limited_one() -> None:
    bucket, _ = bucket_at(max_keys=64)
    item = parse_rate("1/minute")
    bucket.take(item, "limited")

    for number in range(1024):
        bucket.take(item, f"other {number}")

    assert not bucket.take(item, "limited").granted
    assert bucket.tracked == 64


def test_keys_for_which_no_place_is_left_share_one_bucket() -> None:
    bucket, _ = bucket_at(max_keys=1)
    item = parse_rate("2/minute")
    bucket.take(item, "first")

    granted = [bucket.take(item, name).granted for name in ("a", "b", "c", "d")]

    assert granted == [True, True, False, False]


def test_each_rate_has_an_overflow_of_its_own() -> None:
    bucket, _ = bucket_at(max_keys=1)
    bucket.take(parse_rate("5/minute"), "first")
    bucket.take(parse_rate("1/minute"), "a")

    assert not bucket.take(parse_rate("1/minute"), "b").granted
    assert bucket.take(parse_rate("2/minute"), "c").granted


def test_overflow_buckets_that_are_full_again_are_dropped() -> None:
    bucket, hands = bucket_at(max_keys=1)
    bucket.take(parse_rate("1/day"), "first")

    for amount in range(1, 50):
        hands.at += 60.0
        bucket.take(parse_rate(f"{amount}/minute"), "a")

    assert len(bucket._table._shared) == 1


def test_a_key_that_leaves_the_overflow_is_not_filled_by_that() -> None:
    bucket, hands = bucket_at(max_keys=1)
    short, long = parse_rate("1/second"), parse_rate("2/minute")
    bucket.take(short, "first")
    bucket.take(long, "a", cost=2)

    hands.at = 1.0
    taken = bucket.take(long, "a")

    assert not taken.granted
    assert taken.left == pytest.approx(1 / 30)


def test_what_a_key_took_from_the_overflow_can_be_given_back_there() -> None:
    bucket, _ = bucket_at(max_keys=1)
    item = parse_rate("1/minute")
    bucket.take(item, "first")
    bucket.take(item, "a")

    bucket.give_back(item, "a")

    assert bucket.take(item, "b").granted


def test_a_full_bucket_makes_place_for_a_new_key() -> None:
    bucket, hands = bucket_at(max_keys=1)
    item = parse_rate("1/minute")
    bucket.take(item, "a")
    bucket.take(item, "b")

    hands.at = 60.0

    assert bucket.take(item, "c").granted
    assert bucket.take(item, "d").granted
    assert not bucket.take(item, "e").granted


def test_a_bound_bucket_finds_its_place_again_after_it_was_forgotten() -> None:
    bucket, hands = bucket_at()
    item = parse_rate("2/minute")
    bound = bucket.bind(item, "t")
    bound.take()

    hands.at = 60.0
    assert bucket.tracked == 0
    bound.take()
    bucket.take(item, "t")

    assert not bound.take().granted


def test_opening_a_key_clears_only_a_few_others_away_and_none_while_there_is_room() -> None:
    bucket, hands = bucket_at(max_keys=200)
    item = parse_rate("1/minute")
    for number in range(100):
        bucket.take(item, str(number))

    hands.at = 60.0
    bucket.take(item, "y")
    assert len(bucket._table._own) == 100 + 1

    bucket.take(item, "z")
    assert len(bucket._table._own) == 101 - 8 + 1
    assert bucket.tracked == 2


# The calls of `limits`.


def test_hit_and_test_work_on_the_same_tokens() -> None:
    bucket, _ = bucket_at()
    item = parse_rate("2/minute")

    assert bucket.test(item, "t", cost=2)
    assert bucket.hit(item, "t")
    assert not bucket.test(item, "t", cost=2)
    assert not bucket.hit(item, "t", cost=2)
    assert bucket.hit(item, "t")


def test_the_window_stats_say_when_the_bucket_is_full() -> None:
    bucket, hands = bucket_at(5.0)
    item = parse_rate("10/minute")
    bucket.take(item, "t", cost=4)

    hands.at = 8.0

    stats = bucket.get_window_stats(item, "t")
    assert stats.reset_time == pytest.approx(29.0)
    assert stats.remaining == 6
    assert bucket.get_window_stats(item, "other") == (8.0, 10)


def test_clear_fills_a_bucket_also_for_who_is_bound_to_it() -> None:
    bucket, _ = bucket_at()
    item = parse_rate("1/minute")
    bound = bucket.bind(item, "t")
    bound.take()

    bucket.clear(item, "t")

    assert bound.take().granted


def test_clearing_again_and_again_does_not_grow() -> None:
    bucket, _ = bucket_at()
    item = parse_rate("1/minute")

    for _ in range(1000):
        bucket.take(item, "t")
        bucket.clear(item, "t")

    assert len(bucket._table._due) < 100


def test_the_storage_tells_what_is_taken_and_until_when() -> None:
    storage = MemoryBuckets()
    bucket = TokenBucket(storage, Hands(10.0))
    item = parse_rate("10/minute")
    bucket.take(item, "t", cost=3)
    key = bucket.key_for(item, "t")

    assert (storage.get(key), storage.get_expiry(key)) == (3, 28.0)
    assert (storage.get("other"), storage.get_expiry("other")) == (0, 10.0)
    assert storage.check()


def test_the_storage_is_emptied_by_key_or_as_a_whole() -> None:
    storage = MemoryBuckets()
    bucket = TokenBucket(storage, Hands())
    item = parse_rate("1/minute")
    bounds = [bucket.bind(item, name) for name in ("a", "b", "c")]
    for bound in bounds:
        bound.take()

    storage.clear(bucket.key_for(item, "a"))
    assert storage.tracked == 2
    assert storage.reset() == 2

    assert all(bound.take().granted for bound in bounds)


def test_buckets_are_no_counters_for_other_strategies() -> None:
    with pytest.raises(NotImplementedError, match="MemoryWindows"):
        MemoryBuckets().incr("key", 60)


def test_the_storage_has_no_errors_of_its_own_to_wrap() -> None:
    assert MemoryBuckets().base_exceptions == ()


def test_a_storage_without_a_place_is_refused() -> None:
    with pytest.raises(ValueError, match="max_keys must be at least 1"):
        MemoryBuckets(max_keys=0)


# Models. Times and rates are sums of powers of two, so that floats are exact.

RATES = [parse_rate(text) for text in ("3 per 2 second", "8/second", "5 per 64 second", "1/second")]
STEPS = st.integers(0, 400).map(lambda sixteenths: sixteenths / 16)


class PlainBucket:
    """A bucket that is never forgotten, in fractions."""

    def __init__(self) -> None:
        self.rate: tuple[int, int] | None = None
        self.level = Fraction(0)

    def pass_time(self, elapsed_s: float) -> None:
        if self.rate is not None:
            capacity, period_s = self.rate
            gained = Fraction(elapsed_s) * capacity / period_s
            self.level = min(Fraction(capacity), self.level + gained)

    def under(self, rate: tuple[int, int]) -> Fraction:
        if self.rate is None or self.level >= self.rate[0]:
            return Fraction(rate[0])
        return min(self.level, Fraction(rate[0]))

    def change(self, rate: tuple[int, int]) -> None:
        self.level, self.rate = self.under(rate), rate


class OneBucketPerKey(RuleBasedStateMachine):
    """However keys are forgotten and clocks are set, it is one plain bucket per key."""

    bounds = Bundle("bounds")

    def __init__(self) -> None:
        super().__init__()
        self.bucket, self.hands = bucket_at()
        self.latest: float | None = None
        self.plain = {name: PlainBucket() for name in "abc"}

    def read(self) -> None:
        """Time passes when a clock is read: one that is set back in between was never ahead."""
        latest = self.hands.at if self.latest is None else max(self.latest, self.hands.at)
        elapsed = 0.0 if self.latest is None else latest - self.latest
        self.latest = latest
        for plain in self.plain.values():
            plain.pass_time(elapsed)

    def move(self, to: float) -> None:
        self.hands.at = to

    @rule(step=STEPS)
    def time_passes(self, step: float) -> None:
        self.move(self.hands.at + step)

    @rule(step=STEPS)
    def the_clock_is_set_back(self, step: float) -> None:
        self.move(self.hands.at - step)

    @rule(target=bounds, name=st.sampled_from("abc"), item=st.sampled_from(RATES))
    def bind(self, name: str, item: Any) -> Any:
        return name, item, self.bucket.bind(item, name)

    @rule(which=bounds, cost=st.integers(1, 9))
    def take(self, which: Any, cost: int) -> None:
        self.read()
        name, item, bound = which
        plain, rate = self.plain[name], (item.amount, item.get_expiry())
        level = plain.under(rate)

        taken = bound.take(cost)

        assert taken.granted == (cost <= level)
        assert taken.left == (level - cost if taken.granted else level)
        if taken.granted:
            plain.change(rate)
            plain.level -= cost
        elif plain.rate is not None and plain.level < plain.rate[0]:
            plain.change(rate)

    @rule(which=bounds, cost=st.integers(1, 9))
    def waiting_as_told_is_enough(self, which: Any, cost: int) -> None:
        self.read()
        _, _, bound = which
        taken = bound.take(cost)
        if taken.retry_after_s is not None:
            self.move(self.hands.at + taken.retry_after_s)
            assert taken.granted or bound.take(cost).granted
        self.begin_anew()

    def begin_anew(self) -> None:
        # The wait may have been a fraction that floats cannot hold: back to the grid.
        for name in self.plain:
            self.clear(name)
        self.read()
        self.move(math.ceil((self.latest or 0.0) * 16) / 16)

    @rule(which=bounds, cost=st.integers(1, 9))
    def give_back(self, which: Any, cost: int) -> None:
        self.read()
        name, item, bound = which
        plain, rate = self.plain[name], (item.amount, item.get_expiry())

        bound.give_back(cost)

        if plain.rate is not None and plain.level < plain.rate[0]:
            plain.change(rate)
            plain.level = min(plain.level + cost, Fraction(rate[0]))

    @rule(which=bounds, cost=st.integers(1, 9))
    def only_ask(self, which: Any, cost: int) -> None:
        self.read()
        name, item, _ = which
        level = self.plain[name].under((item.amount, item.get_expiry()))

        assert self.bucket.test(item, name, cost=cost) == (cost <= level)
        assert self.bucket.get_window_stats(item, name).remaining == math.floor(level)

    @rule(name=st.sampled_from("abc"))
    def clear(self, name: str) -> None:
        self.bucket.clear(RATES[0], name)
        self.plain[name].rate = None

    @rule()
    def count(self) -> None:
        self.read()
        drained = [
            plain
            for plain in self.plain.values()
            if plain.rate is not None and plain.level < plain.rate[0]
        ]
        assert self.bucket.tracked == len(drained)


class FewPlaces(RuleBasedStateMachine):
    """However few places there are, no key gets more than a bucket of its own would give."""

    def __init__(self) -> None:
        super().__init__()
        self.bucket, self.hands = bucket_at(max_keys=2)
        self.item = parse_rate("3 per 4 second")
        self.bounds = {name: self.bucket.bind(self.item, name) for name in "abcdef"}
        self.plain = {name: PlainBucket() for name in "abcdef"}
        for plain in self.plain.values():
            plain.change((3, 4))

    @rule(step=st.integers(0, 40).map(lambda sixteenths: sixteenths / 16))
    def time_passes(self, step: float) -> None:
        self.hands.at += step
        for plain in self.plain.values():
            plain.pass_time(step)

    @rule(name=st.sampled_from("abcdef"), cost=st.integers(1, 3))
    def take(self, name: str, cost: int) -> None:
        taken = self.bounds[name].take(cost)

        assert taken.left <= self.plain[name].level
        if taken.granted:
            self.plain[name].level -= cost
        assert self.plain[name].level >= 0
        self.shares_only_if_it_must(name, granted=taken.granted)

    def shares_only_if_it_must(self, name: str, *, granted: bool) -> None:
        own = self.bucket._table._own
        if granted and self.bucket.key_for(self.item, name) not in own:
            assert not any(bucket.idle(self.hands.at) for bucket in own.values())

    @invariant()
    def what_is_kept_is_bounded(self) -> None:
        assert len(self.bucket._table._own) <= 2
        assert len(self.bucket._table._due) <= 2 * 2 + 64


TestOneBucketPerKey = OneBucketPerKey.TestCase
TestOneBucketPerKey.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
TestFewPlaces = FewPlaces.TestCase
TestFewPlaces.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


@settings(max_examples=300, deadline=None)
@given(
    start=st.floats(-1e9, 1e9),
    amount=st.integers(1, 10**9),
    period_s=st.integers(1, 10**8),
    share=st.floats(0, 1),
    pause=st.floats(0, 1e4),
)
def test_a_call_exactly_when_it_was_told_to_return_is_granted(
    start: float, amount: int, period_s: int, share: float, pause: float
) -> None:
    bucket, hands = bucket_at(start)
    item = parse_rate(f"{amount} per {period_s} second")
    bucket.take(item, "t", cost=amount)
    hands.at += pause

    cost = max(1, round(share * amount))
    taken = bucket.take(item, "t", cost=cost)
    if taken.granted:
        return
    assert taken.retry_after_s is not None
    exact = (Fraction(cost) - Fraction(taken.left)) * period_s / amount
    rounding = 8 * (math.ulp(hands.at) + math.ulp(cost) * period_s / amount)
    assert taken.retry_after_s == pytest.approx(float(exact), rel=1e-12, abs=rounding)

    hands.at += taken.retry_after_s
    assert bucket.take(item, "t", cost=cost).granted


@settings(max_examples=100, deadline=None)
@given(
    amount=st.integers(1, 50),
    period_s=st.integers(1, 100),
    pauses=st.lists(st.floats(0, 20), min_size=1, max_size=60),
)
def test_no_span_of_time_sees_more_than_the_capacity_and_its_refill(
    amount: int, period_s: int, pauses: list[float]
) -> None:
    bucket, hands = bucket_at()
    bound = bucket.bind(parse_rate(f"{amount} per {period_s} second"), "t")
    granted: list[float] = []

    for pause in pauses:
        hands.at += pause
        granted += [hands.at for _ in range(3) if bound.take().granted]

    for first, last in itertools.combinations(range(len(granted)), 2):
        span_s = granted[last] - granted[first]
        assert last - first + 1 <= amount + span_s * amount / period_s + 1e-6
