"""When an error asks to come back."""

from __future__ import annotations

import math
from email.utils import formatdate
from types import SimpleNamespace
from typing import Any

import pytest

from seawall.pipeline.retry_after import retry_after_of, seconds

NOW = 1_700_000_000.0


class Failing:
    """Raises whatever is asked of it."""

    def __getattr__(self, name: str) -> Any:
        raise OSError(name)


def error(**fields: Any) -> Exception:
    made = RuntimeError("busy")
    for name, value in fields.items():
        setattr(made, name, value)
    return made


def found(raised: BaseException) -> float | None:
    return retry_after_of(raised, lambda: NOW)


@pytest.mark.parametrize(
    ("value", "wait_s"),
    [
        (5, 5.0),
        (2.5, 2.5),
        (0, 0.0),
        (-3, 0.0),
        ("7", 7.0),
        (" 7.5 ", 7.5),
        (formatdate(NOW + 30, usegmt=True), 30.0),
        (formatdate(NOW - 30, usegmt=True), 0.0),
        (True, None),
        (None, None),
        (math.nan, None),
        (math.inf, None),
        ("soon", None),
        (10**400, None),
        ("", None),
        (".", None),
        ("٣", None),
        ("9" * 65, None),
        ([5], None),
    ],
)
def test_a_value_is_a_number_of_seconds_or_a_date(value: Any, wait_s: float | None) -> None:
    assert seconds(value, lambda: NOW) == wait_s


def test_our_own_name_and_the_common_one_are_read() -> None:
    assert found(error(retry_after_s=3)) == 3
    assert found(error(retry_after=4)) == 4
    assert found(error(retry_after="no", retry_after_s=None)) is None
    assert found(ValueError()) is None


@pytest.mark.parametrize("name", ["retry-after", "Retry-After"])
def test_a_response_with_the_header_is_read(name: str) -> None:
    assert found(error(response=SimpleNamespace(headers={name: "12"}))) == 12


def test_the_first_of_a_group_that_says_so_counts() -> None:
    group = ExceptionGroup("all", [ValueError(), error(retry_after=6), error(retry_after=9)])

    assert found(group) == 6


@pytest.mark.parametrize(
    "response",
    [Failing(), SimpleNamespace(headers=Failing()), SimpleNamespace(headers=None), None, 5],
    ids=["fails", "headers fail", "no headers", "none", "a number"],
)
def test_an_error_that_fails_when_it_is_looked_at_says_nothing(response: Any) -> None:
    assert found(error(response=response)) is None


def test_headers_that_fail_when_they_are_read_say_nothing() -> None:
    class Headers:
        def get(self, name: str) -> str:
            raise LookupError(name)

    assert found(error(response=SimpleNamespace(headers=Headers()))) is None


def test_a_property_that_fails_says_nothing() -> None:
    class OddError(Exception):
        @property
        def retry_after(self) -> float:
            raise ArithmeticError

    assert found(OddError()) is None


def test_a_property_that_raises_what_is_no_exception_says_nothing() -> None:
    class OddError(Exception):
        @property
        def retry_after(self) -> float:
            raise BaseExceptionGroup("odd", [KeyError(), BaseException()])

    assert found(OddError()) is None


def test_a_builtin_error_says_it_only_if_somebody_put_it_there() -> None:
    silent, told = TimeoutError("slow"), TimeoutError("slow")
    told.retry_after = 3  # type: ignore[attr-defined]  # as some clients do

    assert retry_after_of(silent, lambda: NOW) is None
    assert retry_after_of(told, lambda: NOW) == 3


def test_a_type_that_will_not_be_hashed_is_asked_like_any_other() -> None:
    class Unhashable(type):
        def __hash__(cls) -> int:
            raise TypeError("not hashable")

    class OddError(Exception, metaclass=Unhashable):
        retry_after = 5

    assert found(OddError()) == 5
