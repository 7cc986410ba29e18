import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seawall.contract.failure import FailureCode, ToolFailed
from seawall.toolkit.version_compare import parse, version_compare

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "toolkit.json").read_text())
_ranked = [case for case in VECTORS["version_compare"] if "a_is" in case["expect"]]
_refused = [case for case in VECTORS["version_compare"] if "a_is" not in case["expect"]]


def _verdicts(case: dict[str, Any]) -> list[str]:
    return [version_compare(*step["compare"])["a_is"] for step in case["steps"]]


@pytest.mark.parametrize("case", _ranked, ids=lambda case: case["id"])
def test_versions_rank_as_in_the_vectors(case: dict[str, Any]) -> None:
    expected = case["expect"]["a_is"]

    assert _verdicts(case) == (expected if isinstance(expected, list) else [expected])


@pytest.mark.parametrize("case", _refused, ids=lambda case: case["id"])
def test_what_holds_no_version_is_refused_as_in_the_vectors(case: dict[str, Any]) -> None:
    fields = case["expect"].get("field", ["a"] * len(case["steps"]))
    for step, field in zip(case["steps"], fields, strict=True):
        with pytest.raises(ToolFailed) as refused:
            version_compare(*step["compare"])

        assert refused.value.failure.code is FailureCode.INVALID_ARGUMENT
        assert refused.value.failure.fields == (field,)


def test_the_reading_is_given_back() -> None:
    case = next(case for case in VECTORS["version_compare"] if case["id"] == "vc-07")

    told = version_compare(*case["steps"][0]["compare"])

    assert {side: told[side] for side in "ab"} == case["expect"]["echo"]


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("1.0rc2", "1.0rc10"),
        ("1.0rc1", "1.0"),
        ("1.0", "1.0.post1"),
        ("1.2.3", "1.2.3ubuntu1"),
        ("1.0.dev1", "1.0"),
        ("1.2.3.4.5", "1.2.3.4.6"),
        ("1.x", "1"),
        ("1/2", "1/3"),
        ("1.0.0-alpha.1", "1.0.0-alpha.beta"),
    ],
)
def test_what_people_write_ranks_as_they_mean_it(older: str, newer: str) -> None:
    assert version_compare(older, newer)["a_is"] == "older"
    assert version_compare(newer, older)["a_is"] == "newer"


@pytest.mark.parametrize(
    "text", ["v", "1:2.0", "1.0.0-a..b", "1 2", "+1", "x" * 300, "\N{SUPERSCRIPT TWO}.0"]
)
def test_unclear_text_is_refused(text: str) -> None:
    with pytest.raises(ToolFailed):
        version_compare(text, "1")


_versions = st.builds(
    lambda core, tail: ".".join(map(str, core)) + tail,
    st.lists(st.integers(0, 3), min_size=1, max_size=4),
    st.sampled_from(["", "-a", "-1", "-a.1", "-rc.2", "rc1", "rc10", ".post1", "+x", "-0"]),
)


@given(_versions, _versions)
def test_the_order_is_total(a: str, b: str) -> None:
    opposite = {"newer": "older", "older": "newer", "equal": "equal"}

    assert version_compare(a, b)["a_is"] == opposite[version_compare(b, a)["a_is"]]
    assert version_compare(a, a)["a_is"] == "equal"


@given(st.lists(_versions, min_size=3, max_size=3))
def test_the_order_is_transitive(texts: list[str]) -> None:
    low, middle, high = sorted(texts, key=lambda text: parse(text, "a").key())

    assert version_compare(low, middle)["a_is"] != "newer"
    assert version_compare(middle, high)["a_is"] != "newer"
    assert version_compare(low, high)["a_is"] != "newer"
