"""Lines for readers, and faults told at once."""

from __future__ import annotations

import pytest

from seawall.contract.errors import ConfigurationError, Fault
from seawall.policy.origins import Origins, Place, dotted, place_of

PLACES = {
    ("tools",): Place("x.toml", 3, 2),
    ("tools", "a"): Place("x.toml", 3, 8),
    ("tools", "a", "rate"): Place("x.toml", 4, 1),
}


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("tools", "a", "rate"), 4),
        (("tools", "a", "cost"), 3),
        (("tools", "a", "breaker", "threshold"), 3),
        (("families", "b"), None),
        ((), None),
    ],
)
def test_a_key_without_a_place_stands_where_its_table_does(
    path: tuple[str, ...], line: int | None
) -> None:
    found = place_of(path, PLACES)

    assert (found and found.line) == line


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (("tools", "git_push"), "tools.git_push"),
        (("tools", "git_*"), 'tools."git_*"'),
        (("tools", "a.b"), 'tools."a.b"'),
        (("tools", 'a"é\n'), r'tools."a\"é\n"'),
        (("tools", ""), 'tools.""'),
    ],
)
def test_a_path_is_written_as_toml_writes_it(path: tuple[str, ...], text: str) -> None:
    assert dotted(path) == text


def test_a_dotted_key_of_a_section_is_named_with_its_line() -> None:
    origins = Origins({("tools", "a", "breaker", "mode"): Place("x.toml", 9)})

    assert origins.line(("tools", "a"), "breaker.mode") == " (x.toml:9)"


def test_what_is_in_no_file_is_named_without_a_line() -> None:
    assert Origins().said(("tools", "a")) == "tools.a"


def test_faults_come_in_the_order_of_files_and_lines() -> None:
    origins = Origins(PLACES, [Fault("third", file="y.toml", line=1)])
    origins.fault(("tools", "a", "rate"), "second")
    origins.fault(("tools", "a"), "first")

    with pytest.raises(ConfigurationError) as caught:
        origins.check()

    assert [fault.message for fault in caught.value.faults] == ["first", "second", "third"]


def test_faults_of_a_value_are_placed_at_its_key_and_those_of_an_entry_at_its_list() -> None:
    origins = Origins(PLACES)
    error = ConfigurationError([Fault("one", key="rate[2]"), Fault("two", key="")])

    origins.faults_of(error, ("tools", "a"))

    assert origins.faults == [
        Fault("one", "tools.a.rate", "x.toml", 4, 1),
        Fault("two", "tools.a", "x.toml", 3, 8),
    ]


def test_nothing_wrong_raises_nothing() -> None:
    Origins(PLACES).check()
