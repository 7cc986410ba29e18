from __future__ import annotations

import json
import sys
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seawall.pipeline.arguments.reading.reader import MAX_READ_SLOWLY
from seawall.pipeline.arguments.reading.text import (
    MAX_BYTES,
    MAX_DEPTH,
    MAX_DIGITS,
    MAX_VALUES,
    ArgumentTextFault,
    parse_arguments,
    plain_object,
    read,
)

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def fault_of(text: str, *, repair: bool = True) -> ArgumentTextFault:
    with pytest.raises(ArgumentTextFault) as caught:
        parse_arguments(text, repair=repair)
    return caught.value


@pytest.mark.parametrize("text", ["", "  \n\t", "null", " null ", '""', '"  "'])
@pytest.mark.parametrize("repair", [True, False])
def test_blank_text_null_and_the_empty_string_mean_no_arguments(text: str, repair: bool) -> None:
    assert parse_arguments(text, repair=repair) == ({}, ())


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"city": "Oslo", "days": 3}', {"city": "Oslo", "days": 3}),
        ('{"text": "what\'s the weather"}', {"text": "what's the weather"}),
        ('{"re": "a}{b"}', {"re": "a}{b"}),
        ('{"text": "True, None and \'x\',}"}', {"text": "True, None and 'x',}"}),
        ('{"a": {"b": [1, 2.5, null, true]}}', {"a": {"b": [1, 2.5, None, True]}}),
        ('{"id": 123456789012345678901234567890}', {"id": 123456789012345678901234567890}),
        ('{"url": "http://a:1/b"}', {"url": "http://a:1/b"}),
        ("[1, 2]", [1, 2]),
        ("5", 5),
    ],
)
@pytest.mark.parametrize("repair", [True, False])
def test_strict_json_is_taken_as_it_is(text: str, value: Any, repair: bool) -> None:
    assert parse_arguments(text, repair=repair) == (value, ())


@given(json_values)
def test_what_json_can_say_is_read_back_without_repair(value: Any) -> None:
    text = msgspec.json.encode({"v": value}).decode()

    assert parse_arguments(text, repair=True) == ({"v": value}, ())


@given(json_values)
def test_the_python_text_of_a_value_is_read_as_that_value(value: Any) -> None:
    # Escapes of Python's alone, in double quotes, may be somebody's faulty JSON: see below.
    assert read(repr([value, None]), repair=True)[0] == [value, None]


@pytest.mark.parametrize(
    ("text", "value", "repaired"),
    [
        ('{"a": 1,}', {"a": 1}, ("trailing comma",)),
        ('{"a": [1, 2, ], }', {"a": [1, 2]}, ("trailing comma",)),
        ('{"t": "one\ntwo\t\x01"}', {"t": "one\ntwo\t\x01"}, ("raw control character",)),
        ("\ufeff{}", {}, ("byte-order mark",)),
        ('\ufeff {"a": 1}', {"a": 1}, ("byte-order mark",)),
        ('```json\n{"a": 1}\n```', {"a": 1}, ("code fence",)),
        ('\n```\n{"a": 1}\n```\n', {"a": 1}, ("code fence",)),
        ('```{"a": 1}```', {"a": 1}, ("code fence",)),
        ('```json {"a": 1} ```', {"a": 1}, ("code fence",)),
        ('~~~~\r\n{"a": "```"}\r\n~~~~', {"a": "```"}, ("code fence",)),
        ("{'a': 'x', 'b': True}", {"a": "x", "b": True}, ("Python literal",)),
        ('{"a": False, "b": None}', {"a": False, "b": None}, ("Python literal",)),
        ('{"a": true, "b": None}', {"a": True, "b": None}, ("Python literal",)),
        ("{'a': \"it's\"}", {"a": "it's"}, ("Python literal",)),
        (r"{'a': 'it\'s \x41\u0042\U00000043\101\a\v\n'}", {"a": "it's ABCA\a\v\n"}, None),
        (r"""{"a": "it\'s"}""", {"a": "it's"}, ("Python literal",)),
        (r"{'a': r'\d+'}", {"a": r"\d+"}, ("Python literal",)),
        ("{u'a': u'b'}", {"a": "b"}, ("Python literal",)),
        ("{'a': '''it's\n\"two\" lines'''}", {"a": 'it\'s\n"two" lines'}, ("Python literal",)),
        ('{"a": """x\x01"""}', {"a": "x\x01"}, None),
        ("{'a': [], 'b': {}, 'c': ''}", {"a": [], "b": {}, "c": ""}, ("Python literal",)),
        ('{"a": .5, "b": 5., "c": +1, "d": 1}', {"a": 0.5, "b": 5.0, "c": 1, "d": 1}, None),
        (r'{"a": "\/", "b": True}', {"a": "/", "b": True}, ("Python literal",)),
        (r"{'a': '\ud83d\ude00'}", {"a": "😀"}, ("Python literal",)),
        (r'"{\"n\": 2}"', {"n": 2}, ("JSON inside a text",)),
        ("'{\"n\": 2,}'", {"n": 2}, None),
        (r'"\"{\\\"n\\\": 2}\""', {"n": 2}, ("JSON inside a text",)),
        (r'"null"', {}, ("JSON inside a text",)),
        (r'"\"\""', {}, ("JSON inside a text",)),
    ],
)
def test_what_has_one_reading_only_is_repaired(
    text: str, value: Any, repaired: tuple[str, ...] | None
) -> None:
    found, how = parse_arguments(text, repair=True)

    assert found == value
    assert how
    assert repaired is None or how == repaired


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1,}',
        '{"t": "one\ntwo"}',
        "\ufeff{}",
        "```\n{}\n```",
        "{'a': 1}",
        '{"a": True}',
        '{"a": .5}',
        '{"a": """x"""}',
    ],
)
def test_nothing_is_repaired_unless_it_is_asked_for(text: str) -> None:
    assert fault_of(text, repair=False).reason == "arguments_not_json"


def test_a_text_is_decoded_again_at_most_three_times() -> None:
    text = '{"n": 2}'
    for _ in range(3):
        text = msgspec.json.encode(text).decode()
    once_more = msgspec.json.encode(text).decode()

    assert parse_arguments(text, repair=True)[0] == {"n": 2}
    assert parse_arguments(once_more, repair=True)[0] == '{"n": 2}'


@pytest.mark.parametrize("text", ['"hello"', '"it is [not] json"', "'5 o clock'"])
def test_a_text_that_is_only_a_text_stays_one(text: str) -> None:
    assert parse_arguments(text, repair=True)[0] == text[1:-1]


def test_a_text_is_not_decoded_again_in_strict_mode() -> None:
    assert parse_arguments(r'"{\"n\": 2}"', repair=False) == ('{"n": 2}', ())


COMPLETE = '{"path": "a.txt", "lines": [1, -2.5e3, {"x": true}], "note": "h\\u00e9\\n", "z": null}'


@pytest.mark.parametrize("end", range(1, len(COMPLETE)))
@pytest.mark.parametrize("repair", [True, False])
def test_text_cut_off_anywhere_is_said_to_be_cut_off(end: int, repair: bool) -> None:
    fault = fault_of(COMPLETE[:end], repair=repair)

    assert fault.reason == "arguments_truncated"
    assert "cut off" in fault.message
    assert "incomplete" in fault.message


PYTHON = "{'path': 'a.txt', 'lines': [1, {'x': True}], 'note': '''it's''', 'z': None}"


@pytest.mark.parametrize("end", range(1, len(PYTHON)))
def test_python_text_cut_off_anywhere_is_never_completed(end: int) -> None:
    assert fault_of(PYTHON[:end]).reason == "arguments_truncated"


@pytest.mark.parametrize(
    "text",
    [
        '```json\n{"a": 1}',
        '```\n{"a": 1',
        '```json\n{"a": [1, 2]\n```',
        r'"{\"a\": [1, 2]"',
        "```{",
    ],
)
def test_a_wrapping_does_not_hide_that_text_was_cut_off(text: str) -> None:
    assert fault_of(text).reason == "arguments_truncated"


@pytest.mark.parametrize(
    "text",
    [
        '{"id": 1}{"id": 2}',
        '{"id": 1}\n{"id": 1}',
        "{}{}",
        '{"id": 1}, {"id": 2}',
        '{"id": 1} [2]',
        '{"id": 1}}',
        '{"id": 1},',
        '{"id": 1}; done',
        'Here you are: {"id": 1}',
        'Sure:\n```json\n{"id": 1}\n```',
        '```\n{"id": 1}\n```\n```\n{"id": 2}\n```',
    ],
)
def test_of_several_values_or_text_beside_one_none_is_chosen(text: str) -> None:
    assert fault_of(text).reason == "arguments_not_json"


@pytest.mark.parametrize(
    "text",
    [
        "{'a', 'b'}",
        "{'p': __import__('os').getcwd()}",
        "{'p': 1 + 1}",
        "{'p': (1, 2)}",
        "{'p': b'x'}",
        "{'p': f'{x}'}",
        "{'p': 'a' 'b'}",
        "{'p': 'it's'}",
        "{1: 2}",
        "{None: 2}",
        '{"a": "say "hi" now"}',
        '{"a" 1}',
        '{"a": 1 "b": 2}',
        '{"a": 1]',
        "[1}",
        "{,}",
        "[,]",
        "[1,,2]",
        "[1,,]",
        '{"a":,}',
        "{a: 1}",
        "{“a”: 1}",
        '{"a": 1 /* c */}',
        '{"a": 1} // c',
        '{"a": 01}',
        '{"a": 1_000}',
        '{"a": 0x10}',
        '{"a": 1.2.3}',
        '{"a": 5px}',
        '{"a": --1}',
        '{"a": -True}',
        '{"a": undefined}',
        '{"a": yes}',
        '{"a": TRUE}',
        '{"a": ...}',
        r'{"a": "C:\dir"}',
        r'{"a": "\d+"}',
        r'{"a": "\x41"}',
        r'{"a": "\u12"}',
        r"{'a': '\d'}",
        r"{'a': '\U00110000'}",
        r"{'a': '\/'}",
        r"""{'a': "\/"}""",
        "{\\'a\\': 1}",
        '{\\"a\\": 1}',
        "hello",
        "{\u00a0}",
        "\x00",
    ],
)
def test_what_could_be_meant_in_two_ways_is_refused(text: str) -> None:
    assert fault_of(text).reason == "arguments_not_json"


@pytest.mark.parametrize("literal", ["NaN", "Infinity", "-Infinity", "nan", "inf", "-inf", "1e999"])
@pytest.mark.parametrize("form", ['{{"x": {}}}', "{{'x': [{}]}}", "{}"])
def test_numbers_that_are_not_finite_are_refused(literal: str, form: str) -> None:
    assert fault_of(form.format(literal)).reason == "argument_invalid"


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1, "a": 2}',
        '{"a": 1, "a": 1}',
        '{"a": {"b": 1, "c": 2, "b": 3}}',
        '[{"a": ":", "a": 2}]',
        '{"a": 1, "\\u0061": 2}',
        "{'a': 1, 'a': 2}",
        '{"a": "\\u003a", "a": "x", "b:": 1}',
        '{"a": 1, "a": 2,}',
    ],
)
def test_a_repeated_key_is_refused_by_name(text: str) -> None:
    fault = fault_of(text)

    assert "'a'" in fault.message or "'b'" in fault.message
    assert fault.reason == "argument_invalid"
    assert "twice" in fault.message


def test_a_repeated_key_is_refused_in_strict_mode_too() -> None:
    assert fault_of('{"a": 1, "a": 2}', repair=False).reason == "argument_invalid"


@pytest.mark.parametrize(
    "text",
    [r'{"t": "\ud835 bold"}', r'{"\udc00": 1}', '{"t": "\ud835"}', r"{'t': '\ud835'}"],
)
def test_half_of_a_character_is_refused(text: str) -> None:
    fault = fault_of(text)

    assert fault.reason == "argument_invalid"
    assert "character" in fault.message


def test_integers_are_exact_up_to_the_bound() -> None:
    digits = "9" * MAX_DIGITS

    assert parse_arguments(f'{{"n": {digits}}}', repair=True)[0] == {"n": int(digits)}
    assert fault_of(f'{{"n": 9{digits}}}').reason == "too_large"
    assert fault_of(f"{{'n': 9{digits}}}").reason == "too_large"
    assert fault_of(f'{{"n": 0.9{digits}}}').reason == "too_large"


def test_digits_inside_a_text_are_no_number() -> None:
    digits = "9" * (MAX_DIGITS + 1)

    assert parse_arguments(f'{{"n": "{digits}"}}', repair=True) == ({"n": digits}, ())


def test_a_process_that_allows_fewer_digits_gets_a_refusal() -> None:
    allowed = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(640)
    try:
        assert fault_of('{"n": ' + "9" * 1000 + "}").reason == "too_large"
    finally:
        sys.set_int_max_str_digits(allowed)


@pytest.mark.parametrize(("opening", "core", "closing"), [("[", "", "]"), ('{"x":', "0", "}")])
def test_depth_is_bounded(opening: str, core: str, closing: str) -> None:
    allowed = opening * MAX_DEPTH + core + closing * MAX_DEPTH

    assert read(allowed, repair=True)[0]
    for deeper in (MAX_DEPTH + 1, 5000, 20_000, 200_000):
        text = opening * deeper + core + closing * deeper
        assert fault_of(text).reason in {"too_deep", "too_large"}
    assert fault_of(opening * (MAX_DEPTH + 1)).reason == "too_deep"
    assert fault_of("{'a':" + allowed + "}").reason == "too_deep"


def test_many_brackets_side_by_side_are_not_deep() -> None:
    text = '{"a": [' + "[[]]," * 200 + '"[[[["]}'

    assert parse_arguments(text, repair=True)[0]["a"][-1] == "[[[["


def test_a_stack_that_is_nearly_used_up_does_not_matter() -> None:
    def deeper(frames: int) -> Any:
        if frames:
            return deeper(frames - 1)
        return parse_arguments('{"a": ' + "[" * 100 + "]" * 100 + "}", repair=True)

    frame, used = sys._getframe(), 0
    while frame.f_back is not None:
        frame, used = frame.f_back, used + 1

    assert deeper(sys.getrecursionlimit() - used - 30)[1] == ()


@pytest.mark.parametrize("letter", ["x", "é", "😀"])
def test_size_is_bounded_in_bytes(letter: str) -> None:
    count = (MAX_BYTES - 9) // len(letter.encode())

    assert parse_arguments(f'{{"t": "{letter * count}"}}', repair=True)[1] == ()
    assert fault_of(f'{{"t": "{letter * (count + 2)}"}}').reason == "too_large"


def test_long_text_that_is_no_json_is_not_mended_for_ever() -> None:
    fault = fault_of("[" + "1," * 400_000 + "]")

    assert fault.reason == "too_large"
    assert f"{MAX_READ_SLOWLY:,}" in fault.message


@pytest.mark.parametrize("unit", ["1,", '"a",', "[],", '{"a":1},', "null,"])
def test_the_number_of_values_is_bounded(unit: str) -> None:
    values = 2 if ":" in unit else 1
    allowed = MAX_VALUES // values

    assert read("[" + (unit * allowed)[:-1] + "]", repair=True)[0]
    for more in (allowed + 1, 10 * allowed):
        fault = fault_of("[" + (unit * more)[:-1] + "]")
        assert fault.reason == "too_large"


def test_a_whole_file_in_one_text_is_one_value() -> None:
    content = "a,b:{[]}\n" * 50_000

    text = json.dumps({"path": "a", "content": content})

    assert parse_arguments(text, repair=True) == ({"path": "a", "content": content}, ())


def test_a_message_says_where_and_never_what() -> None:
    fault = fault_of('{\n  "token": "s3cret",\n  "b": hunter2\n}')

    assert "line 3, column 8" in fault.message
    assert "s3cret" not in fault.message
    assert "hunter2" not in fault.message


def test_a_long_key_is_cut_in_the_message() -> None:
    key = "k" * 10_000

    assert len(fault_of(f'{{"{key}": 1, "{key}": 2}}').message) < 200


@given(st.text(st.sampled_from("{}[]\"'`,:\\ \nrux01.-eE+TrueNon\ufeff\ud800"), max_size=40))
def test_any_text_gives_a_value_or_a_fault(text: str) -> None:
    for repair in (True, False):
        try:
            value, repaired = parse_arguments(text, repair=repair)
        except ArgumentTextFault:
            continue
        assert repair or not repaired
        msgspec.json.encode(value)


KEYS = ('"a"', '"b"', '":"', r'"\u003a"', r'"\u003A"', r'"\\u003a"', r'"\u0061"', '"\\n:"')
members = st.sampled_from(KEYS)
object_texts = st.recursive(
    st.sampled_from([*KEYS, "1", "-0", "2.50", "1e400", "9" * 30, "null", "é", '"\ud800"', "{}"]),
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda parts: f"[{', '.join(parts)}]")
        | st.lists(st.tuples(members, inner), max_size=4).map(
            lambda parts: f"{{{', '.join(f'{key}: {part}' for key, part in parts)}}}"
        )
    ),
    max_leaves=8,
)


@settings(max_examples=500)
@given(object_texts)
def test_what_is_certain_at_a_glance_is_what_a_careful_reader_finds(text: str) -> None:
    plain = plain_object(text)

    if plain is not None:
        assert repr(read(text, repair=False)) == repr((plain, ()))


@pytest.mark.parametrize(
    ("text", "is_certain"),
    [
        ('{"a": {"b": [1, {"c": "d: e"}]}}', True),
        (r'{"a": {"b": "\u00e9\":\\"}}', True),
        ('{"a": 1, "a": 1}', False),
        ('{"a": {"b": 1, "b": 1}}', False),
        (r'{"a": {"b": 1, "\u0062": 1}}', False),
        (r'{"a": "\u003a", "a": "\u003a"}', False),
        (r'{"a": {"b": "\u003A", "b": 1}}', False),
        (f'{{"a": {"[" * MAX_DEPTH}{"]" * MAX_DEPTH}}}', False),
        (f'{{"a": {{"b": "{"x" * 5_000}"}}}}', False),
        ('["a"]', False),
        ('{"a": {"b": 1},}', False),
    ],
)
def test_what_nobody_doubts_is_known_at_a_glance(text: str, is_certain: bool) -> None:
    assert (plain_object(text) is not None) is is_certain
