"""The keys of a rule for arguments."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from seawall.contract.decision import Action
from seawall.layers.risk_rules import ArgumentRule
from seawall.policy.argument_rules import ARGUMENT_RULE, action, number, values


def test_a_file_can_say_all_that_a_rule_has() -> None:
    names = {field.name for field in msgspec.structs.fields(ArgumentRule)}

    assert {*ARGUMENT_RULE, "place"} == names


@pytest.mark.parametrize("word", list(Action))
def test_what_is_decided_is_a_word(word: str) -> None:
    assert action(word) == word


@pytest.mark.parametrize(
    ("read", "raw"),
    [(action, "Allow"), (action, 1), (number, True), (number, [1]), (values, [])],
)
def test_what_it_does_not_take_is_told(read: Any, raw: Any) -> None:
    with pytest.raises(ValueError, match="is "):
        read(raw)


def test_one_value_is_a_list_of_one() -> None:
    assert (values("a"), values([1, "a"]), number("0.10")) == (("a",), (1, "a"), "0.10")
