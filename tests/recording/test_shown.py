"""What may be shown of text that others chose."""

from __future__ import annotations

import math

import pytest

from seawall.contract.failure import REASONS
from seawall.recording.shown import moment, one_line, slug


@pytest.mark.parametrize("reason", [*REASONS, "quota_used_up", "e404", "a" * 64])
def test_a_slug_is_shown_as_it_is(reason: str) -> None:
    assert slug(reason) == reason


@pytest.mark.parametrize(
    "text",
    ["", "Error: sk-live-1234", "sk-live-1234", "tool_failed\n", "Ünknown", "a" * 65, "A", "a b"],
)
def test_what_is_no_slug_is_not_shown(text: str) -> None:
    assert slug(text) == ""


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("call-1", "call-1"),
        ("ünder", "ünder"),
        ("a\nok 9, fail 0", "'a\\nok 9, fail 0'"),
        ("\x1b[2J", "'\\x1b[2J'"),
        ("\ud800", "'\\ud800'"),
        ("x" * 64, "x" * 64),
        ("x" * 65, "x" * 63 + "…"),
    ],
)
def test_text_from_outside_stays_on_one_short_line(text: str, shown: str) -> None:
    assert one_line(text) == shown


def test_a_moment_is_written_in_utc_to_the_millisecond() -> None:
    assert moment(1_700_000_000.0625) == "2023-11-14T22:13:20.062+00:00"


@pytest.mark.parametrize(
    ("wall", "shown"),
    [
        (1e15, "@1e+15"),
        (-1e15, "@-1e+15"),
        (1e308, "@1e+308"),
        (math.inf, "@inf"),
        (math.nan, "@nan"),
    ],
)
def test_a_moment_in_no_calendar_is_a_number(wall: float, shown: str) -> None:
    assert moment(wall) == shown
