"""Finding the name that somebody meant."""

from __future__ import annotations

import pytest

from seawall.pipeline.arguments.likeness import is_alike, nearest

NAMES = ["limit", "path", "max_results", "mode"]


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("limt", "limit"),
        ("Limit", "limit"),
        ("maxResults", "max_results"),
        ("max-results", "max_results"),
        ("lim", "limit"),
        ("file_path", "path"),
        ("results", "max_results"),
        ("li", None),
        ("colour", None),
        ("", None),
        ("x" * 5000, None),
    ],
)
def test_the_nearest_name_is_found_if_it_is_near(name: str, found: str | None) -> None:
    assert nearest(name, NAMES) == found


def test_what_may_shorten_several_names_means_none_of_them() -> None:
    assert nearest("id", ["customer_id", "warehouse_id"]) is None
    assert nearest("qty", ["quantity", "quality_of_it"]) is None


def test_no_name_is_near_to_nothing() -> None:
    assert nearest("limit", []) is None
    assert nearest("limit", ["x" * 5000]) is None


@pytest.mark.parametrize(
    ("name", "alike"),
    [("pass", True), ("my_password_2", True), ("pasword", True), ("user", False)],
)
def test_in_doubt_names_are_alike(name: str, alike: bool) -> None:
    assert is_alike(name, ["password"]) is alike


def test_the_empty_name_is_alike_to_any_and_no_name_to_none() -> None:
    assert is_alike("", ["password"])
    assert not is_alike("password", [])
