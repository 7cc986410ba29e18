"""Definitions of shortcuts: what is taken, and everything that can be wrong with one."""

from __future__ import annotations

import json
from typing import Any

import pytest

from seawall.orchestration.shortcut_definition import (
    MAX_PARAMS,
    MAX_STEPS,
    as_given,
    read_shortcut,
)
from seawall.orchestration.steps import StepsFault


def of(**fields: Any) -> dict[str, Any]:
    return {"id": "shortcut.ab", "name": "X", "steps": [{"tool": "a"}], **fields}


def using(*params: Any) -> dict[str, Any]:
    """A definition whose step uses each param that has a name."""
    names = [one.get("name") for one in params if isinstance(one, dict)]
    arguments = {f"a{at}": f"{{{name}}}" for at, name in enumerate(names) if isinstance(name, str)}
    return of(params=list(params), steps=[{"tool": "a", "arguments": arguments}])


def faults_of(given: Any, **options: Any) -> dict[str, str]:
    with pytest.raises(StepsFault) as caught:
        read_shortcut(given, **options)
    return {issue.path: issue.message for issue in caught.value.issues}


FULL = {
    "id": "shortcut.full",
    "name": "Full",
    "description": "Does it all.",
    "precondition": "There is something.",
    "params": [
        {"name": "q", "required": True, "description": "What."},
        {"name": "_n1", "type": "integer", "default": 3},
    ],
    "steps": [
        {"tool": "a", "arguments": {"query": "{q}"}},
        {"tool": "b", "arguments": '{"n": {_n1}, "said": "{0}"}'},
    ],
}


@pytest.mark.parametrize("given", [FULL, json.dumps(FULL)])
def test_a_definition_is_inline_or_json_text(given: Any) -> None:
    compiled = read_shortcut(given)

    assert [step.tool for step in compiled.plan] == ["a", "b"]
    assert compiled.shortcut.precondition == "There is something."
    assert compiled.schema == {
        "type": "object",
        "properties": {
            "q": {"type": "string", "maxLength": 4000, "description": "What."},
            "_n1": {"type": "integer", "default": 3},
        },
        "required": ["q"],
        "additionalProperties": False,
    }


def test_placeholders_may_stand_bare_in_the_text_of_the_whole_definition() -> None:
    given = (
        '{"id": "shortcut.ab", "name": "X", "params": [{"name": "n", "type": "integer"}],'
        ' "steps": [{"tool": "a", "arguments": {"n": {n}}}]}'
    )

    compiled = read_shortcut(given)

    assert compiled.plan[0].template.fill((), {"n": 5}) == {"n": 5}
    assert compiled.shortcut.steps[0].arguments == '{"n": {n}}'


def test_what_is_kept_can_be_given_again() -> None:
    kept = read_shortcut(FULL).shortcut

    again = read_shortcut(json.loads(json.dumps(as_given(kept))))

    assert again.shortcut == kept
    assert again.plan[1].template.shown() == {"n": "{_n1}", "said": "{0}"}


def test_a_step_may_run_another_shortcut_by_its_id() -> None:
    step = {"tool": "shortcut_run", "arguments": {"id": "shortcut.cd", "arguments": {"x": 1}}}

    kept = read_shortcut(of(steps=[step])).shortcut

    assert (kept.steps[0].tool, kept.steps[0].arguments) == ("shortcut.cd", '{"x": 1}')


@pytest.mark.parametrize(
    ("given", "path", "said"),
    [
        ("[1]", "", "a definition is an object"),
        ("{", "", "incomplete"),
        (of(id=None), "/id", "2 to 40 of a-z, 0-9 and _"),
        (of(id="shortcut.ab\n"), "/id", "2 to 40"),
        (of(name=" "), "/name", "not blank"),
        (of(name=5), "/name", "must be a text"),
        (of(name="x" * 81), "/name", "80 characters at most"),
        (of(description=["x"]), "/description", "must be a text"),
        (of(precondition="x" * 2001), "/precondition", "2,000 characters"),
        (of(parameters=[]), "/parameters", "it takes id, name"),
        (of(params={"q": "string"}), "/params", "must be a list"),
        (of(params=["q"]), "/params/0", "a param is an object"),
        (using({"name": "1a"}), "/params/0/name", "must begin with a letter or _"),
        (using({"name": "a" * 32}), "/params/0/name", "31 letters"),
        (using({}), "/params/0/name", "not NoneType"),
        (using({"name": "q", "type": "text"}), "/params/0/type", "must be one of string"),
        (using({"name": "q", "required": "yes"}), "/params/0/required", "true or false"),
        (using({"name": "q", "description": 5}), "/params/0/description", "short text"),
        (using({"name": "q", "kind": 5}), "/params/0/kind", "a param has no 'kind'"),
        (using({"name": "q", "default": 5}), "/params/0/default", "is no string"),
        (using({"name": "q", "type": "integer", "default": True}), "/params/0/default", "no int"),
        (using({"name": "q", "type": "integer", "default": 0.5}), "/params/0/default", "no int"),
        (using({"name": "q", "required": True, "default": ""}), "/params/0/default", "never used"),
        (using({"name": "q", "default": "y" * 4001}), "/params/0/default", "cannot be inserted"),
        (using({"name": "q"}, {"name": "q"}), "/params", "declared twice"),
        (of(params=[{"name": "dead"}]), "/params/0", "no step uses 'dead'"),
        (of(steps=[]), "/steps", "needs a step"),
        (of(steps=None), "/steps", "must be a list"),
        (of(steps=[{"tool": "a"}] * (MAX_STEPS + 1)), "/steps", "8 is the most"),
        (of(steps=[{"tool": "a", "arguments": {"x": "{q}"}}]), "/steps/0/arguments/x", "{q} is no"),
        (of(steps=[{"tool": "a", "arguments": {"x": "{0}"}}]), "/steps/0/arguments/x", "{0} would"),
        (of(steps=[{"tool": "shortcut.ab"}]), "/steps/0/tool", "call itself"),
        (of(steps=[{"tool": "tool_batch_run"}]), "/steps/0/tool", "cannot be a step"),
        (of(steps=[{"tool": "shortcut_define"}]), "/steps/0/tool", "cannot be a step"),
    ],
)
def test_a_refusal_names_the_culprit(given: Any, path: str, said: str) -> None:
    faults = faults_of(given)

    assert path in faults
    assert said in faults[path]


def test_so_many_params_and_no_more() -> None:
    params = [{"name": f"p{number}"} for number in range(MAX_PARAMS + 1)]

    assert len(read_shortcut(using(*params[:MAX_PARAMS])).shortcut.params) == MAX_PARAMS
    assert "8 is the most" in faults_of(using(*params))["/params"]


def test_every_tool_must_be_there() -> None:
    steps = [{"tool": "a"}, {"tool": "b"}]

    assert faults_of(of(steps=steps), is_tool=lambda name: name == "a") == {
        "/steps/1/tool": "step 1: there is no tool 'b'; name one that is registered"
    }


def test_all_that_is_wrong_is_told_together() -> None:
    faults = faults_of({"id": "x", "name": "", "params": [{"name": "!"}], "steps": [{}]})

    assert list(faults) == ["/id", "/name", "/params/0/name", "/steps/0/tool"]


@pytest.mark.parametrize(
    ("kind", "default"),
    [
        ("string", ""),
        ("integer", 0),
        ("number", 0.5),
        ("number", 1),
        ("boolean", False),
        ("array", [1]),
        ("object", {}),
    ],
)
def test_a_default_has_the_type_of_its_param(kind: str, default: Any) -> None:
    compiled = read_shortcut(using({"name": "q", "type": kind, "default": default}))

    assert compiled.values({}) == {"q": default}


def test_only_declared_params_are_filled_in() -> None:
    compiled = read_shortcut(FULL)

    assert compiled.values({"q": "x", "other": 1}) == {"q": "x", "_n1": 3}
    assert [issue.path for issue in compiled.faults({"_n1": 4})] == ["/q"]
