"""Steps as models and files give them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from seawall.orchestration.steps import Step, StepsFault, read_document, read_steps


def read(given: Any, *, most: int = 16, names: Any = None) -> tuple[Step, ...]:
    return read_steps(read_document(given, "/steps"), most=most, names=names)


def fault_of(given: Any, **options: Any) -> StepsFault:
    with pytest.raises(StepsFault) as caught:
        read(given, **options)
    return caught.value


STEPS = [{"tool": "a"}, {"tool": "b", "arguments": {"c": "{0}"}}]


@pytest.mark.parametrize("given", [STEPS, tuple(STEPS), json.dumps(STEPS)])
def test_steps_are_a_list_or_json_text_of_one(given: Any) -> None:
    steps = read(given)

    assert [step.tool for step in steps] == ["a", "b"]
    assert [step.template.steps for step in steps] == [(), (0,)]


def test_arguments_are_inline_or_json_text() -> None:
    steps = read([{"tool": "a", "arguments": {"x": 1}}, {"tool": "a", "arguments": '{"x": {0}}'}])

    assert steps[0].template.fill() == {"x": 1}
    assert steps[1].template.steps == (0,)


def test_a_placeholder_may_stand_bare_in_the_text_of_all_steps() -> None:
    steps = read('[{"tool": "a"}, {"tool": "b", "arguments": {"x": {0}}}]')

    assert steps[1].template.shown() == {"x": "{0}"}


def test_words_that_models_use_instead_are_taken() -> None:
    (step,) = read([{"name": "a", "args": {"x": 1}}])

    assert (step.tool, step.template.fill()) == ("a", {"x": 1})


@pytest.mark.parametrize(
    ("given", "path", "said"),
    [
        ("a", "/steps", "not JSON"),
        ({"tool": "a"}, "/steps", "must be a list"),
        ([{"tool": "a"}] * 17, "/steps", "there are 17 steps and 16 is the most"),
        (["a"], "/steps/0", "step 0 must be"),
        ([{"arguments": {}}], "/steps/0/tool", "must name its tool"),
        ([{"tool": " "}], "/steps/0/tool", "must name its tool"),
        ([{"tool": 5}], "/steps/0/tool", "must name its tool"),
        ([{"tool": "a", "input": {}}], "/steps/0/input", "takes tool and arguments, nothing else"),
        (
            [{"tool": "a", "name": "b"}],
            "/steps/0/name",
            "has tool twice, once as 'name'; leave one out",
        ),
        ([{"tool": "a", "arguments": [1]}], "/steps/0/arguments", "must be a JSON object"),
        ([{"tool": "a", "arguments": {"x": ["{0}"]}}], "/steps/0/arguments/x/0", "step 0 (a)"),
        ([{"tool": "a", "arguments": {"x": float("nan")}}], "/steps/0/arguments/x", "NaN"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(given: Any, path: str, said: str) -> None:
    fault = fault_of(given)

    assert fault.issues[0].path == path
    assert said in str(fault)


def test_the_faults_of_all_steps_are_told_together() -> None:
    fault = fault_of([{"tool": ""}, {"tool": "a", "arguments": {"x": "{4}", "y": "{5}"}}])

    assert [issue.path for issue in fault.issues] == [
        "/steps/0/tool",
        "/steps/1/arguments/x",
        "/steps/1/arguments/y",
    ]


# A step that runs a shortcut by its id.


@pytest.mark.parametrize(
    "arguments",
    [
        {"id": "shortcut.ab", "arguments": {"q": "x"}},
        {"id": "shortcut.ab", "arguments": '{"q": "x"}'},
        '{"id": "shortcut.ab", "arguments": {"q": "x"}}',
    ],
)
def test_a_step_that_runs_a_shortcut_is_that_shortcut(arguments: Any) -> None:
    (step,) = read([{"tool": "shortcut_run", "arguments": arguments}])

    assert (step.tool, step.template.fill()) == ("shortcut.ab", {"q": "x"})


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({}, "must name the shortcut by its id"),
        ({"id": 5}, "must name the shortcut by its id"),
        ({"id": "{0}"}, "cannot choose the shortcut"),
        ('{"id": {0}}', "must name the shortcut by its id"),
    ],
)
def test_what_a_step_gives_cannot_choose_a_shortcut(arguments: Any, said: str) -> None:
    fault = fault_of([{"tool": "a"}, {"tool": "shortcut_run", "arguments": arguments}])

    assert said in str(fault)
    assert fault.issues[0].path == "/steps/1/arguments/id"
