"""Gauges that others own: which are taken, and what a bad source costs."""

from __future__ import annotations

import itertools
import logging
from typing import TYPE_CHECKING, Any

import pytest

from seawall.contract.errors import ConfigurationError
from seawall.recording import gauges as module
from seawall.recording.gauges import Gauge, encodable, read

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

NOTHING: frozenset[str] = frozenset()


def gauge_of(value: Any = 1.0, name: str = "seawall_breaker_open", **labels: Any) -> Gauge:
    return Gauge(name, "Whether it is open.", labels, value)


@pytest.mark.parametrize("name", ["", "9lives", "a-b", "a b", "a\n", "ä"])
def test_a_name_prometheus_cannot_read_is_refused(name: str) -> None:
    with pytest.raises(ConfigurationError, match="cannot be the name of a gauge"):
        gauge_of(name=name)


@pytest.mark.parametrize("label", ["", "__name__", "a-b", "9", "a:b"])
def test_a_label_prometheus_cannot_read_is_refused(label: str) -> None:
    with pytest.raises(ConfigurationError, match="cannot be the name of a label"):
        gauge_of(**{label: "x"})


def test_gauges_of_one_name_come_together_whoever_gives_them() -> None:
    found = read(
        [
            lambda: [gauge_of(tool="a"), gauge_of(name="seawall_in_flight")],
            lambda: [gauge_of(tool="b")],
        ],
        NOTHING,
    )

    assert {name: len(gauges) for name, gauges in found.items()} == {
        "seawall_breaker_open": 2,
        "seawall_in_flight": 1,
    }


def test_of_a_series_that_is_given_twice_the_first_stands() -> None:
    found = read(
        [lambda: [gauge_of(1, tool="a", state="x"), gauge_of(2, state="x", tool="a")]], NOTHING
    )

    assert [gauge.value for gauge in found["seawall_breaker_open"]] == [1]


def raising() -> Iterable[Gauge]:
    raise RuntimeError("no api_key=sk-live-1234567890")


def raising_later() -> Iterator[Gauge]:
    yield gauge_of(name="seawall_half")
    raise RuntimeError("no")


@pytest.mark.parametrize(
    "source",
    [
        raising,
        raising_later,
        lambda: [gauge_of(name="bad name")],
        lambda: [gauge_of("no number")],
        lambda: [gauge_of(None)],
        lambda: ["no gauge"],
        lambda: None,
        lambda: [gauge_of(name="seawall_calls_total")],
    ],
)
def test_a_bad_source_is_logged_and_left_out(source: Any, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "seawall"):
        found = read([source, lambda: [gauge_of()]], frozenset({"seawall_calls_total"}))

    assert list(found) == ["seawall_breaker_open"]
    assert "a source of gauges failed" in caplog.text
    assert "sk-live" not in caplog.text


def test_a_source_without_end_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_GAUGES", 5)

    found = read([lambda: (gauge_of(tool=str(n)) for n in itertools.count())], NOTHING)

    assert len(found["seawall_breaker_open"]) == 5


def test_values_become_numbers_and_labels_text_that_can_be_written() -> None:
    found = read([lambda: [gauge_of(True, tool="\ud800", shard=3)]], NOTHING)

    [gauge] = found["seawall_breaker_open"]
    assert gauge.value == 1.0
    assert gauge.labels == {"tool": "\\ud800", "shard": "3"}


@pytest.mark.parametrize(
    ("text", "written"), [("plain", "plain"), ("ä€😀", "ä€😀"), ("a\udfffb", "a\\udfffb")]
)
def test_only_what_utf8_cannot_say_is_written_out(text: str, written: str) -> None:
    assert encodable(text) == written


def test_of_two_sources_with_the_same_series_the_newest_stands() -> None:
    found = read([lambda: [gauge_of(1, tool="a")], lambda: [gauge_of(2, tool="a")]], NOTHING)

    assert [gauge.value for gauge in found["seawall_breaker_open"]] == [2]
