"""What names suggest, and what they must never suggest."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seawall.contract.annotations import Annotations, Risk
from seawall.registry.inference import infer_annotations

VECTORS = {
    vector["id"]: vector
    for vector in json.loads(
        (Path(__file__).parents[1] / "vectors" / "annotations.json").read_text("utf-8")
    )["cases"]
}

COMBINATIONS = {
    "read_only": Annotations.for_reading(),
    "open_world_read": Annotations.for_reading(open_world=True),
    "destructive": Annotations.for_destroying(),
    "idempotent_write": Annotations.for_overwriting(),
    "mutating": Annotations.for_changing(),
}


@pytest.mark.parametrize(
    ("name", "combination"),
    [
        (step["infer"], VECTORS[vector]["expect"]["all"])
        for vector in ("an-02", "an-03", "an-04", "an-05", "an-06")
        for step in VECTORS[vector]["steps"]
    ],
)
def test_known_families_are_what_the_vectors_say(name: str, combination: str) -> None:
    guess = infer_annotations(name)

    assert guess.annotations == COMBINATIONS[combination]
    assert guess.rule.startswith("name")


@pytest.mark.parametrize("risk", [None, *Risk])
def test_an_unknown_name_is_neither_repeated_nor_taken_for_harmless(risk: Risk | None) -> None:
    guess = infer_annotations(VECTORS["an-08"]["steps"][0]["infer"], risk)

    expect = VECTORS["an-08"]["expect"]
    assert guess.annotations.retry_safe is expect["retry_safe"]
    assert guess.annotations.is_read_only is expect["read_only"]
    assert guess.annotations.risk() is not Risk.LOW


@pytest.mark.parametrize(
    ("name", "retry_safe"),
    [
        (step["infer"], safe)
        for step, safe in zip(
            VECTORS["an-09"]["steps"], VECTORS["an-09"]["expect"]["retry_safe"], strict=True
        )
    ],
)
def test_a_prefix_makes_no_delete_request_or_keystroke_repeatable(
    name: str, retry_safe: bool
) -> None:
    assert infer_annotations(name).annotations.retry_safe is retry_safe


@pytest.mark.parametrize(
    "name",
    [
        "memory_delete_all",
        "memory_add",
        "memory_wipe",
        "github_getAndDelete",
        "memory_remember",
        "github_list_issues_delete",
        "github_get_and_set_label",
        "terminal.write_line",
        "terminal.workspaces.delete.list",
        "READ_FILE",
        "read_file_and_more",
        "",
        "memory",
    ],
)
def test_names_beside_the_families_are_not_repeated(name: str) -> None:
    assert not infer_annotations(name, Risk.LOW).annotations.retry_safe


@pytest.mark.parametrize(
    ("risk", "annotations"),
    [
        (Risk.HIGH, Annotations.for_destroying()),
        (Risk.MEDIUM, Annotations.for_changing()),
        (Risk.LOW, Annotations()),
        (None, Annotations()),
    ],
)
def test_where_no_name_is_known_the_risk_says_as_much_as_it_can(
    risk: Risk | None, annotations: Annotations
) -> None:
    assert infer_annotations("frobnicate", risk).annotations == annotations


def test_a_guess_says_by_which_rule() -> None:
    assert infer_annotations("read_file").rule == "name 'read_file': reads"
    assert infer_annotations("github_get_user").rule == (
        "names like 'github_get*': reads what is outside"
    )
    assert "nothing is assumed" in infer_annotations("x").rule


@given(
    st.sampled_from(["memory_list_", "github_get_", "github_list_", "terminal.observe."]),
    st.sampled_from(["delete", "send", "write", "pay", "create", "update", "run"]),
)
def test_a_word_of_change_in_a_readers_family_is_believed(prefix: str, word: str) -> None:
    assert not infer_annotations(f"{prefix}{word}").annotations.retry_safe
    assert not infer_annotations(f"{prefix}x_{word}_y").annotations.retry_safe
