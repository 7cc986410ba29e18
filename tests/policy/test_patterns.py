"""Names with wildcards."""

from __future__ import annotations

import time

import pytest

from seawall.policy.patterns import Pattern, any_fits, is_pattern


@pytest.mark.parametrize(
    ("pattern", "name", "fits"),
    [
        ("git_*", "git_push", True),
        ("git_*", "git_", True),
        ("git_*", "my_git_push", False),
        ("git_*", "GIT_push", False),
        ("*_read", "fs_read", True),
        ("*_read", "fs_read_all", False),
        ("fs_?ead", "fs_read", True),
        ("fs_?ead", "fs_ead", False),
        ("fs_[rw]*", "fs_write", True),
        ("fs_[!rw]*", "fs_write", False),
        ("a.b*", "axb", False),
        ("*", "anything at\nall", True),
        ("a[b", "a[b", True),
        ("*a*b*", "xaxbx", True),
        ("*a*b*", "xbxax", False),
    ],
)
def test_a_pattern_means_whole_names(pattern: str, name: str, *, fits: bool) -> None:
    assert Pattern(pattern).fits(name) is fits


@pytest.mark.parametrize(
    ("longer", "shorter"),
    [
        ("mcp__git__*", "mcp__*"),
        ("*_read_file", "mcp__*"),
        ("mcp__*", "*"),
        ("ab?", "ab*"),
        ("ab[cd]", "ab*"),
        ("abc*", "a[bcdefg]*"),
        ("abc*", "a???????*"),
    ],
)
def test_a_pattern_that_pins_down_more_characters_ranks_higher(longer: str, shorter: str) -> None:
    assert Pattern(longer).rank > Pattern(shorter).rank


@pytest.mark.parametrize(
    ("name", "pattern"), [("a", False), ("a*", True), ("?", True), ("[a]", True)]
)
def test_a_wildcard_makes_a_name_a_pattern(name: str, *, pattern: bool) -> None:
    assert is_pattern(name) is pattern


def test_any_of_several_patterns_will_do() -> None:
    patterns = [Pattern("a*"), Pattern("b*")]

    assert any_fits(patterns, "bc")
    assert not any_fits(patterns, "cb")


def test_a_hostile_pattern_is_not_slow() -> None:
    started = time.process_time()

    assert not Pattern("*a" * 30 + "b").fits("a" * 2_000)

    assert time.process_time() - started < 1
