"""How the tools around shortcuts are declared."""

from __future__ import annotations

from typing import Any

import pytest

from seawall.contract.annotations import Risk
from seawall.orchestration.shortcut_definition import read_shortcut
from seawall.orchestration.shortcut_tools import DEFINE, LIST, RUN, Declared, listed
from seawall.registry.registry import Registry


async def nothing(arguments: dict[str, Any], context: Any) -> None:
    """Stand in for what the tools do."""


@pytest.mark.parametrize("declared", [DEFINE, LIST, RUN])
def test_each_can_be_registered(declared: Declared) -> None:
    assert Registry([declared.tool(nothing)]).names() == (declared.name,)


def test_only_looking_is_harmless_and_running_asks_by_itself() -> None:
    risks = {one.name: one.tool(nothing).effective_risk for one in (DEFINE, LIST, RUN)}

    assert risks == {
        "shortcut_define": Risk.MEDIUM,
        "shortcut_list": Risk.LOW,
        "shortcut_run": Risk.HIGH,
    }
    assert RUN.self_gated
    assert not DEFINE.self_gated


def test_a_list_leaves_out_what_was_not_said() -> None:
    definition = {"id": "shortcut.ab", "name": "X", "steps": [{"tool": "a"}]}
    shortcut = read_shortcut(definition).shortcut

    result = listed([(shortcut, None, ())])

    assert result.text == "shortcut.ab: X\n  params: none\n  steps: a; risk: medium"
