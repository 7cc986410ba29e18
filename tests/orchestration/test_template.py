"""Placeholders in JSON: what they become, what they can never do, and braces that are text."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seawall.contract.content import ImageContent
from seawall.contract.result import ToolResult
from seawall.orchestration.template import (
    MAX_INSERTED,
    MAX_PLACEHOLDERS,
    Bare,
    Inserted,
    Template,
    TemplateFault,
    bounded,
    document,
    escape,
    too_large,
    written,
)


def filled(template: Any, *steps: Any, **values: Any) -> dict[str, Any]:
    inserted = [Inserted.of_value(step) for step in steps]
    return Template(template, before=len(steps), names=values.keys() or None).fill(inserted, values)


def fault_of(template: Any, *, before: int = 1, names: Any = None) -> TemplateFault:
    with pytest.raises(TemplateFault) as caught:
        Template(template, before=before, names=names)
    return caught.value


# What a placeholder becomes.


@pytest.mark.parametrize(
    ("template", "value", "expected"),
    [
        ('{"a": {0}}', 5, {"a": 5}),
        ('{"a": {0}}', True, {"a": True}),
        ('{"a": {0}}', None, {"a": None}),
        ('{"a": {0}}', "5", {"a": "5"}),
        ('{"a": {0}}', {"b": [1]}, {"a": {"b": [1]}}),
        ('{"a": [1, {0}]}', [2], {"a": [1, [2]]}),
        ('{"a": "{0}"}', 5, {"a": "5"}),
        ('{"a": "{0}"}', True, {"a": "true"}),
        ('{"a": "{0}"}', None, {"a": "null"}),
        ('{"a": "<{0}>"}', {"b": [1]}, {"a": '<{"b": [1]}>'}),
        ({"a": ["{0}", {"b": "{0}{0}"}]}, "x", {"a": ["x", {"b": "xx"}]}),
        ({"a": "{000}"}, "x", {"a": "x"}),
    ],
)
def test_bare_a_placeholder_keeps_its_type_and_in_a_text_it_is_text(
    template: Any, value: Any, expected: Any
) -> None:
    assert filled(template, value) == expected


def test_a_parameter_is_filled_in_by_its_name() -> None:
    template = '{"limit": {limit}, "said": "{who}: {0}"}'

    assert filled(template, "hi", limit=3, who="me") == {"limit": 3, "said": "me: hi"}


def test_a_parameter_without_a_value_leaves_out_its_member_or_item_and_is_nothing_in_a_text() -> (
    None
):
    template = Template('{"a": {p}, "b": [1, {p}], "c": "<{p}>"}', names=["p"])

    assert template.fill() == {"b": [1], "c": "<>"}


def test_what_is_inserted_is_never_read_again() -> None:
    assert filled({"a": "{0}", "b": "{p}"}, "{p} {{ {1}", p="{0} }}") == {
        "a": "{p} {{ {1}",
        "b": "{0} }}",
    }


def test_what_a_step_gave_cannot_add_an_argument() -> None:
    hostile = 'x", "path": "b.txt'

    assert filled('{"content": "{0}"}', hostile) == {"content": hostile}
    assert filled('{"content": {0}}', hostile) == {"content": hostile}


def test_keys_are_taken_as_they_are() -> None:
    assert filled({"{0}": 1, "{{": 2}, "x") == {"{0}": 1, "{{": 2}


def test_the_template_is_not_changed_by_filling_it() -> None:
    given = {"a": ["{0}"]}
    template = Template(given, before=1)

    template.fill([Inserted("x", "x")])["a"].append("y")

    assert given == {"a": ["{0}"]}
    assert template.fill([Inserted("z", "z")]) == {"a": ["z"]}


def test_what_is_used_is_known_beforehand() -> None:
    template = Template({"a": "{1} {p}", "b": "{0}"}, before=2, names={"p", "q"})

    assert template.steps == (0, 1)
    assert template.names == {"p"}


@pytest.mark.parametrize("blank", [None, "", "  ", "null", '""', "{}", {}])
def test_nothing_is_an_empty_object(blank: Any) -> None:
    assert Template(blank).fill() == {}


# Braces that are text.


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a{{3}}", "a{3}"),
        ("{{{0}}}", "{OUT}"),
        ("{{0}} {0}", "{0} OUT"),
        ("{{", "{"),
        ("}}", "}"),
        ("{{{{}}}}", "{{}}"),
        ("f() { return 1 }", "f() { return 1 }"),
        ('{"a": 1}', '{"a": 1}'),
        ("{ 0 } {0 } {-1} {2,5} {}", "{ 0 } {0 } {-1} {2,5} {}"),
        ("{word} {0}", "{word} OUT"),
        ("}{", "}{"),
    ],
)
def test_braces_are_text_if_they_are_doubled_or_hold_no_reference(text: str, expected: str) -> None:
    assert filled({"t": text}, "OUT") == {"t": expected}


@pytest.mark.parametrize(
    "text", ['{"a":{"b":1}}', "{{0}", "{0}}}}}}", "}}}", "{{1, 2}, {4, 5}}", "{{x}} {y}"]
)
def test_a_text_with_doubled_and_single_braces_is_refused_as_nobody_can_tell_what_is_meant(
    text: str,
) -> None:
    fault = fault_of({"t": text})

    assert fault.issues[0].path == "/t"
    assert "double every brace that is text" in fault.issues[0].message


def test_what_only_looks_like_a_reference_is_refused_with_the_way_to_write_it() -> None:
    fault = fault_of({"pattern": "a{3}"})

    assert fault.issues[0].path == "/pattern"
    assert "only step 0 comes before this one" in str(fault)
    assert "write {{3}}" in str(fault)


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"])))
def test_an_escaped_text_comes_back_as_it_was(text: str) -> None:
    assert filled({"t": escape(text)}) == {"t": text}
    assert filled(json.dumps({"t": escape(text)}), "other", p=1) == {"t": text}


# References and parameters that are not there.


@pytest.mark.parametrize(
    ("before", "template", "said"),
    [
        (0, {"a": "{0}"}, "no step comes before this one"),
        (1, {"a": "{1}"}, "only step 0 comes before this one"),
        (3, {"a": "{3}"}, "only the steps 0 to 2 come before this one"),
        (3, '{"a": {7}}', "only the steps 0 to 2 come before this one"),
        (3, {"a": "{" + "9" * 5000 + "}"}, "{999999999…}"),
    ],
)
def test_only_earlier_steps_can_be_referred_to(before: int, template: Any, said: str) -> None:
    fault = fault_of(template, before=before)

    assert said in str(fault)
    assert len(str(fault)) < 300


@pytest.mark.parametrize(
    ("names", "said"),
    [(["to"], "there are to"), ([], "no parameter is declared"), (None, "by number, such as {0}")],
)
def test_a_bare_word_must_be_a_declared_parameter(names: Any, said: str) -> None:
    assert said in str(fault_of('{"a": {other}}', names=names))


def test_a_word_in_a_text_must_be_a_declared_parameter_where_there_are_parameters() -> None:
    assert "{x} is no declared parameter" in str(fault_of({"a": "{x}"}, names=["y"]))
    assert Template({"a": "{x}"}, names=None).fill() == {"a": "{x}"}


def test_all_faults_are_told_together_with_their_places() -> None:
    fault = fault_of({"a": "{5}", "b": [1, {"c/d": "{6}"}]})

    assert [issue.path for issue in fault.issues] == ["/a", "/b/1/c~1d"]


def test_only_the_first_faults_are_told() -> None:
    assert len(fault_of({f"a{number}": "{9}" for number in range(50)}).issues) == 16


def test_a_placeholder_cannot_be_all_the_arguments() -> None:
    assert "would choose them" in str(fault_of("{0}"))
    assert "would choose them" in str(fault_of("{p}", names=["p"]))


def test_a_placeholder_cannot_stand_for_a_key() -> None:
    assert "{0} stands for a key" in str(fault_of('{"a": 1, {0} : 2}'))


def test_there_may_be_so_many_placeholders_and_no_more() -> None:
    assert len(filled({"a": "{0}" * MAX_PLACEHOLDERS}, "x")["a"]) == MAX_PLACEHOLDERS
    assert f"{MAX_PLACEHOLDERS} at most" in str(fault_of({"a": "{0}" * (MAX_PLACEHOLDERS + 1)}))


# What is no template.


@pytest.mark.parametrize(
    ("template", "reason"),
    [
        ("[1]", "arguments_not_object"),
        ([1], "arguments_not_object"),
        (7, "arguments_not_object"),
        ('{"a": {0}', "arguments_truncated"),
        ('{"a": 1,, "b": 2}', "arguments_not_json"),
        ("{'a': {0}}", "arguments_not_json"),
        ({"a": float("nan")}, "argument_invalid"),
        ({"a": {1, 2}}, "argument_invalid"),
        ({1: 2}, "argument_invalid"),
        ('{"a": {0}, "a": 1}', "argument_invalid"),
        ("[" * 500 + "]" * 500, "too_deep"),
    ],
)
def test_what_is_no_json_object_is_refused_with_a_reason(template: Any, reason: str) -> None:
    assert fault_of(template).reason == reason


def test_json_text_that_is_mended_elsewhere_is_mended_here_if_nothing_stands_bare() -> None:
    assert filled("{'a': '{0}',}", "x") == {"a": "x"}


def test_text_inside_quotes_is_never_taken_for_a_bare_placeholder() -> None:
    template = '{"a": {0}, "b": "say \\"{0}\\" p0", "p0": "s"}'

    assert filled(template, 1) == {"a": 1, "b": 'say "1" p0', "p0": "s"}


# Bounds.


def test_a_long_text_is_cut_and_says_so_within_the_bound() -> None:
    got = filled({"a": "{0}", "b": "<{0}>"}, "y" * 5000)

    assert len(got["a"]) == MAX_INSERTED
    assert got["a"].endswith("… [cut: it has 5,000 characters]")
    assert got["b"] == f"<{got['a']}>"


def test_a_text_of_exactly_the_bound_is_whole() -> None:
    assert bounded("y" * MAX_INSERTED) == "y" * MAX_INSERTED
    assert filled('{"a": {0}}', "y" * 5000)["a"] == bounded("y" * 5000)


@pytest.mark.parametrize("value", [list(range(2000)), {"a": "y" * 5000}])
def test_a_bare_value_that_is_too_large_is_refused_as_it_cannot_be_cut(value: Any) -> None:
    with pytest.raises(TemplateFault, match="cannot be inserted whole") as caught:
        filled('{"a": {0}}', value)

    assert caught.value.issues[0].path == "/a"
    assert "what step 0 gave" in str(caught.value)


def test_a_value_that_is_no_json_cannot_be_inserted() -> None:
    assert too_large({"a": {1}}) == "is no JSON"
    assert too_large([float("nan")]) == "is no JSON"
    assert too_large("y" * MAX_INSERTED) is None


# What a result stands for.


@pytest.mark.parametrize(
    ("result", "text", "value"),
    [
        (ToolResult.of_text("5"), "5", "5"),
        (ToolResult(structured_content={"a": 1}), "", {"a": 1}),
        (ToolResult(), "", None),
        (ToolResult(content=(ImageContent(data="eA==", mime_type="image/png"),)), "", ""),
    ],
)
def test_a_result_is_its_text_and_bare_its_structured_content(
    result: ToolResult, text: str, value: Any
) -> None:
    assert Inserted.of_result(result) == Inserted(text, value)


# For a reader.


def test_references_are_shown_as_they_are_written_and_known_values_are_filled_in() -> None:
    template = Template('{"a": {0}, "b": "{p} {0}", "c": {q}}', before=1, names=["p", "q"])

    assert template.shown() == {"a": "{0}", "b": "{p} {0}", "c": "{q}"}
    assert template.shown({"p": 1}) == {"a": "{0}", "b": "1 {0}"}
    assert len(template.shown({"q": list(range(5000))})["c"]) == MAX_INSERTED


# Documents.


def test_a_document_is_written_as_it_would_be_read() -> None:
    tree = document('{"a": [{0}, {"b": {name}}], "c": "é {0}", "d": null}')

    assert tree["a"] == [Bare("0"), {"b": Bare("name")}]
    assert document(written(tree)) == tree


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**6), 10**6)
    | st.text(alphabet=st.sampled_from('ab{}01"\\\n é')),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(alphabet="ab{}0", max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)


def shape_of(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: shape_of(item) for key, item in value.items()}
    return [shape_of(item) for item in value] if isinstance(value, list) else type(value)


@given(st.one_of(JSON, st.text(alphabet='{}[]":,ab01 ')), st.integers(0, 3), st.booleans())
def test_any_template_is_made_or_is_a_template_fault(
    template: Any, before: int, parameters: bool
) -> None:
    try:
        made = Template(template, before=before, names=["a", "b"] if parameters else None)
    except TemplateFault:
        return

    assert all(step < before for step in made.steps)
    made.fill([Inserted("x", "x")] * before, {"a": 1})


@given(
    st.dictionaries(st.text(max_size=3), JSON, max_size=3),
    st.text(alphabet='{}[]":,a0\\'),
    st.text(alphabet='{}[]":,a0\\'),
)
def test_whatever_text_is_inserted_the_shape_stays(
    template: dict[str, Any], one: str, other: str
) -> None:
    try:
        made = Template(template, before=2)
    except TemplateFault:
        return

    first = made.fill([Inserted(one, one)] * 2)
    second = made.fill([Inserted(other, other)] * 2)

    assert shape_of(first) == shape_of(second)
