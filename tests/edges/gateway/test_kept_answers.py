from typing import Any

import pytest

from seawall.contract.span import Digest
from seawall.edges.gateway import kept_answers
from seawall.edges.gateway.answers import Answer
from seawall.edges.gateway.kept_answers import KeptAnswers

PAYLOAD = Digest(1, 1, "a")
ABOUT = {"request_id": "r", "tool": "pay"}


class House:
    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, *, keys: int = 4, size: int = 1_000
    ) -> None:
        monkeypatch.setattr(kept_answers, "KEYS_OF_A_CLIENT", keys)
        monkeypatch.setattr(kept_answers, "BYTES_OF_A_CLIENT", size)
        self.now = 0.0
        self.kept = KeptAnswers(lambda: self.now, 100.0)

    def begin(self, client: str, key: str, *, spare: bool = False) -> Answer | None:
        return self.kept.begin((client, key), PAYLOAD, spare=spare, **ABOUT)

    def answered(self, client: str, key: str, size: int = 10, *, spare: bool = False) -> None:
        assert self.begin(client, key, spare=spare) is None
        self.kept.keep((client, key), Answer(200, b"x" * size), **ABOUT)


def _replayed(answer: Answer | None) -> bool:
    return answer is not None and kept_answers.REPLAYED in answer.headers


@pytest.mark.parametrize(("keys", "size"), [(4, 1_000), (1_000, 40)])
def test_a_client_that_is_at_its_bound_can_use_no_new_key_and_forgets_none(
    keys: int, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    house = House(monkeypatch, keys=keys, size=size)
    for key in "abcd":
        house.answered("shop", key)

    refused = house.begin("shop", "e")

    assert refused is not None
    assert refused.status == 429
    assert (b"retry-after", b"100") in refused.headers
    assert b'"mayHaveRun":false' in refused.body
    assert all(_replayed(house.begin("shop", key)) for key in "abcd")


@pytest.mark.parametrize("spare", [True, False])
def test_keys_of_one_client_take_nothing_from_another(
    spare: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    house = House(monkeypatch)
    house.answered("shop", "invoice-7")
    for key in range(50):
        if house.begin("other", str(key), spare=spare) is None:
            house.kept.keep(("other", str(key)), Answer(200, b"x" * 500), **ABOUT)

    assert _replayed(house.begin("shop", "invoice-7"))
    house.answered("shop", "invoice-8")


def test_what_may_be_repeated_gives_way_the_oldest_first(monkeypatch: pytest.MonkeyPatch) -> None:
    house = House(monkeypatch)
    house.answered("shop", "pay")
    for key in "abcde":
        house.answered("shop", key, spare=True)

    assert _replayed(house.begin("shop", "pay"))
    assert _replayed(house.begin("shop", "c", spare=True))
    assert house.begin("shop", "b", spare=True) is None


def test_a_key_whose_call_runs_gives_never_way(monkeypatch: pytest.MonkeyPatch) -> None:
    house = House(monkeypatch)
    for key in "abcd":
        assert house.begin("shop", key, spare=True) is None

    refused, again = house.begin("shop", "e", spare=True), house.begin("shop", "a", spare=True)
    assert refused is not None
    assert again is not None
    assert (refused.status, again.status) == (429, 409)
    assert (b"retry-after", b"1") in refused.headers


def test_there_is_room_again_when_the_time_of_a_key_is_over_or_nothing_ran(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    house = House(monkeypatch)
    assert house.begin("shop", "a") is None
    house.now = 50.0
    for key in "bcd":
        house.answered("shop", key, size=400)
    house.kept.forget(("shop", "a"))
    house.now = 149.0
    assert house.begin("shop", "e") is not None  # for the size of the others
    house.now = 150.0

    assert house.begin("shop", "e") is None
    assert house.begin("shop", "b") is None


def test_of_an_answer_that_is_too_long_is_kept_that_there_was_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    house = House(monkeypatch, size=10_000)
    monkeypatch.setattr(kept_answers, "LONGEST_ANSWER", 100)
    house.answered("shop", "a", size=10_001)

    again: Any = house.begin("shop", "a")

    assert again.status == 502
    assert b"outcome_unreadable" in again.body
    assert house.begin("shop", "b") is None
