"""Names that providers take: legal, distinct, stable, and with a way back."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seawall.contract.errors import ConfigurationError
from seawall.registry.provider_names import MAX_KEPT, Names

CASES = json.loads((Path(__file__).parents[1] / "cases" / "provider_names.json").read_text())
LEGAL = re.compile(r"^[A-Za-z0-9_-]{1,64}\Z")


def registry_of(case: dict[str, Any]) -> list[str]:
    given_: dict[str, Any] = case["given"]
    if "registry" in given_:
        names: list[str] = given_["registry"]
        return names
    return [f"{server}.{tool}" for server, tools in given_["servers"].items() for tool in tools]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_cases(case: dict[str, Any]) -> None:
    names = registry_of(case)
    pattern = re.compile(case["given"].get("provider_pattern", LEGAL.pattern))

    found = Names()
    exported = found.export(names)

    if "all_match" in case["expect"]:
        assert all(map(pattern.match, exported))
    if "round_trip" in case["expect"]:
        assert [found.original(name) for name in exported] == names
    if "distinct" in case["expect"]:
        assert len(set(exported)) == len(names)


@pytest.mark.parametrize(
    ("name", "exported"),
    [
        ("read_file", "read_file"),
        ("Read-File2", "Read-File2"),
        ("calendar.list", "calendar_list"),
        ("fs/read file", "fs_read_file"),
        ("météo_du_jour", "meteo_du_jour"),
        ("x" * 64, "x" * 64),
    ],
)
def test_a_name_keeps_what_can_be_kept(name: str, exported: str) -> None:
    assert Names().exported(name) == exported


def test_what_is_cut_ends_in_a_hash_of_the_whole() -> None:
    long = "x" * 100
    found = Names().export([long + "a", long + "b"])

    assert [len(name) for name in found] == [64, 64]
    assert found[0] != found[1]
    assert Names().exported(long + "a") == found[0]


def test_names_that_fit_keep_theirs_wherever_they_stand() -> None:
    assert Names().export(["a.b", "a_b"])[1] == "a_b"


def test_a_name_once_given_stays_when_others_come() -> None:
    names = Names(["a.b"])
    first = names.exported("a.b")

    others = names.export(["a_b", "a b", "a/b"])

    assert names.exported("a.b") == first == "a_b"
    assert len({first, *others}) == 4
    assert names.original("a_b") == "a.b"


def test_a_name_given_to_a_tool_that_is_gone_is_not_given_to_another() -> None:
    names = Names(["a.b"])

    assert names.export(["a_b"]) != ["a_b"]
    assert names.original("a_b") == "a.b"


def test_names_are_the_same_in_another_process_that_is_told_of_them() -> None:
    names = Names(["a.b"])
    names.exported("a_b")

    again = Names(["a_b", "a.b"], known=names.snapshot())

    assert again.snapshot() == names.snapshot()


def test_pairs_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="a name can only mean one tool"):
        Names(known={"a.b": "a_b", "a_b": "a_b"})


def test_even_a_name_whose_hash_is_taken_gets_one_of_its_own() -> None:
    hashed = Names(known={"other": "a_b"}).exported("a.b")
    names = Names(known={"other": "a_b", "another": hashed})

    assert names.exported("a.b") not in ("a_b", hashed)
    assert names.original(names.exported("a.b")) == "a.b"


def test_a_length_without_room_for_a_hash_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="16 at least"):
        Names(longest=8)


def test_another_provider_may_allow_other_letters_and_lengths() -> None:
    names = Names(allowed=re.compile(r"[a-z.]"), longest=20)

    assert names.exported("web.search") == "web.search"
    assert names.exported("WEB") == "___"
    assert len(names.exported("x" * 30)) == 20


def test_a_name_nobody_was_told_of_leads_nowhere() -> None:
    assert Names(["a"]).original("b") is None


def test_names_of_tools_that_are_gone_are_kept_within_a_bound() -> None:
    names = Names()
    for start in range(0, MAX_KEPT + 2_000, 500):
        names.export(f"t{number}" for number in range(start, start + 500))

    assert len(names.snapshot()) <= MAX_KEPT + 500
    assert names.original("t0") is None
    assert names.original(f"t{MAX_KEPT}") is not None


@given(st.lists(st.text(min_size=1, max_size=80), max_size=12, unique=True), st.data())
def test_any_names_become_legal_and_distinct_and_lead_back(names: list[str], data: Any) -> None:
    first = data.draw(st.integers(0, len(names)))
    found = Names()

    before = found.export(names[:first])
    exported = found.export(names)

    assert exported[:first] == before
    assert all(map(LEGAL.match, exported))
    assert [found.original(name) for name in exported] == names


NEAR = st.text(alphabet="aA._ é-", min_size=1, max_size=4) | st.sampled_from(
    ["x" * 64, "x" * 65, "x" * 66, "." * 70, "_" * 64]
)


@given(st.lists(st.lists(NEAR, max_size=6, unique=True), min_size=1, max_size=6), st.data())
def test_a_name_given_once_means_one_tool_for_ever_whatever_comes_and_goes(
    registries: list[list[str]], data: Any
) -> None:
    names, meant, given_to = Names(), dict[str, str](), dict[str, str]()
    for wanted in registries:
        if data.draw(st.booleans()):
            names = Names(known=json.loads(json.dumps(names.snapshot())))
        for name, exported in zip(wanted, names.export(wanted), strict=True):
            assert LEGAL.match(exported)
            assert meant.setdefault(exported, name) == name
            assert given_to.setdefault(name, exported) == exported
        assert all(names.original(exported) == name for exported, name in meant.items())
