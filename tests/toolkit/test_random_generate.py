import string
from typing import Any

import pytest

from seawall.contract.failure import ToolFailed
from seawall.pipeline.chance import SystemChance
from seawall.toolkit.random_generate import RandomGenerate

TOOL = RandomGenerate(SystemChance())


def _values(kind: str, **arguments: Any) -> list[Any]:
    values: list[Any] = TOOL.random_generate(kind, **arguments)["values"]  # type: ignore[arg-type]  # a table of names
    return values


def test_whole_numbers_are_within_both_ends() -> None:
    assert set(_values("integer", low=0.5, high=3.5, count=1000)) == {1, 2, 3}


def test_real_numbers_are_within_both_ends() -> None:
    assert all(-1 <= value <= 1 for value in _values("float", low=-1, high=1, count=1000))


def test_a_choice_is_one_of_the_items() -> None:
    assert set(_values("choice", items=("a", None, 3), count=200)) == {"a", None, 3}


def test_a_shuffle_keeps_all_items() -> None:
    assert sorted(_values("shuffle", items=tuple(range(50)))) == list(range(50))


def test_the_same_seed_gives_the_same_values() -> None:
    first = _values("integer", high=10**9, count=5, seed=7)

    assert first == _values("integer", high=10**9, count=5, seed=7)
    assert first != _values("integer", high=10**9, count=5, seed=8)


def test_passwords_have_characters_of_every_class() -> None:
    for password in _values("password", length=8, count=50):
        assert len(password) == 8
        assert {
            "lower": any(c in string.ascii_lowercase for c in password),
            "upper": any(c in string.ascii_uppercase for c in password),
            "digit": any(c in string.digits for c in password),
            "symbol": any(not c.isalnum() for c in password),
        } == dict.fromkeys(("lower", "upper", "digit", "symbol"), True)


def test_tokens_differ_and_have_the_length_asked_for() -> None:
    tokens = _values("token", length=16, count=20)

    assert len(set(tokens)) == 20
    assert {len(token) for token in tokens} == {32}


@pytest.mark.parametrize(
    ("kind", "arguments", "field"),
    [
        ("password", {"seed": 1}, "seed"),
        ("token", {"seed": 1}, "seed"),
        ("integer", {"low": 2, "high": 1}, "high"),
        ("float", {"low": 2, "high": 1}, "high"),
        ("integer", {"low": 0.2, "high": 0.8}, "high"),
        ("choice", {}, "items"),
        ("shuffle", {}, "items"),
        ("shuffle", {"items": (1, 2), "count": 2}, "count"),
        ("choice", {"items": ("x" * 10_000,), "count": 1000}, "count"),
    ],
)
def test_arguments_that_do_not_belong_together_are_refused(
    kind: str, arguments: dict[str, Any], field: str
) -> None:
    with pytest.raises(ToolFailed) as refused:
        _values(kind, **arguments)

    assert refused.value.failure.fields == (field,)
