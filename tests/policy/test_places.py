"""Where keys stand in a TOML text."""

from __future__ import annotations

import json
import tomllib
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seawall.policy.places import find_places

if TYPE_CHECKING:
    from collections.abc import Iterator


def at(text: str) -> dict[tuple[str, ...], tuple[int, int]]:
    return {path: (p.line, p.column) for path, p in find_places(text, "x.toml").items()}


@pytest.mark.parametrize(
    ("text", "path", "place"),
    [
        ("a = 1", ("a",), (1, 1)),
        ("\n  a = 1", ("a",), (2, 3)),
        ("# a = 0\na = 1 # b = 2", ("a",), (2, 1)),
        ("a.b.c = 1", ("a", "b", "c"), (1, 5)),
        ("a . b = 1", ("a", "b"), (1, 5)),
        ('"a.b".c = 1', ("a.b",), (1, 1)),
        ("'a\"b' = 1", ('a"b',), (1, 1)),
        (r'"a\u00e4\"" = 1', ('aä"',), (1, 1)),
        ('"" = 1', ("",), (1, 1)),
        ("1.5 = 2", ("1", "5"), (1, 3)),
        ("[t]\na = 1", ("t", "a"), (2, 1)),
        ("[ t . u ]\na = 1", ("t", "u", "a"), (2, 1)),
        ('[tools."git_*"]', ("tools", "git_*"), (1, 8)),
        ("[[t]]\na = 1\n[[t]]\na = 2", ("t", "0", "a"), (2, 1)),
        ("[[t]]\na = 1\n[[t]]\na = 2", ("t", "1", "a"), (4, 1)),
        ("[[t.u]]\na = 1\n[[t.u]]\na = 2", ("t", "u", "1"), (3, 3)),
        ("[[t]]\n[t.u]\nb = 1", ("t", "u", "b"), (3, 1)),
        ("a = {b = 1, c = {d = 2}, e = 3}", ("a", "b"), (1, 6)),
        ("a = {b = 1, c = {d = 2}, e = 3}", ("a", "c", "d"), (1, 18)),
        ("a = {b = 1, c = {d = 2}, e = 3}", ("a", "e"), (1, 26)),
        ("a = {b.c = 1, b.d = 2}\nz = 1", ("a", "b", "d"), (1, 17)),
        ("a = {}\nb = 1", ("b",), (2, 1)),
        ("a = [1, [2, 3],\n # ]\n 4]\nb = 1", ("b",), (4, 1)),
        ("a = [{b = 1}, {c = [1, 2]}, 3]\nd = 1", ("a", "c"), (1, 16)),
        ("a = [{b = 1}, {c = [1, 2]}, 3]\nd = 1", ("d",), (2, 1)),
        ('a = "b = [{,"\nc = 1', ("c",), (2, 1)),
        ('a = "x\\"y#"\nc = 1', ("c",), (2, 1)),
        ("a = 'x\\'\nc = 1", ("c",), (2, 1)),
        ('a = """\nb = 1\n[t]\n"""\nc = 1', ("c",), (5, 1)),
        ('a = """x"" \\""" y"""""\nc = 1', ("c",), (2, 1)),
        ("a = '''\n'b' = 1 ''''\nc = 1", ("c",), (3, 1)),
        ("a = 1979-05-27 07:32:00.5-07:00\nc = 1", ("c",), (2, 1)),
        ("a = -1.5e+3\nc = 1", ("c",), (2, 1)),
        ('"ä" = 1\nb = 1', ("b",), (2, 1)),
        ("\ta = 1", ("a",), (1, 2)),
    ],
)
def test_a_key_is_found_at_its_line_and_column(
    text: str, path: tuple[str, ...], place: tuple[int, int]
) -> None:
    tomllib.loads(text)

    assert at(text)[path] == place


def test_a_key_written_twice_counts_where_it_comes_first() -> None:
    assert at("a.b = 1\na.c = 2")["a",] == (1, 1)


def test_text_inside_of_values_is_no_key() -> None:
    found = at('a = """\nb = 1\n"""\nc = ["d = 1", \'e = 2\']\n# f = 1')

    assert set(found) == {("a",), ("c",)}


def test_a_place_has_the_name_of_its_file() -> None:
    assert str(find_places("\na = 1", "policies/x.toml")["a",]) == "policies/x.toml:2"


def test_brackets_nested_as_deep_as_a_reader_takes_them_are_gone_through() -> None:
    text = "a = " + "[" * 5_000 + "]" * 5_000 + "\nb = 1"

    assert at(text)["b",] == (2, 1)


KEYS = st.text(st.sampled_from('ab.*"\\ é#=[]{}\n'), min_size=1, max_size=4)
VALUES = st.recursive(
    st.one_of(st.integers(-9, 9), st.booleans(), st.text(max_size=6), st.floats(-9, 9)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(KEYS, inner, min_size=1, max_size=3)
    ),
    max_leaves=8,
)
DOCUMENTS = st.dictionaries(KEYS, st.dictionaries(KEYS, VALUES, max_size=3), max_size=3)


def quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def written(value: Any) -> str:
    if isinstance(value, dict):
        inner = ", ".join(f"{quoted(key)} = {written(v)}" for key, v in value.items())
        return "{" + inner + "}"
    if isinstance(value, list):
        return "[\n" + ",\n".join(map(written, value)) + "]"
    return quoted(value) if isinstance(value, str) else json.dumps(value)


def paths(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield (*path, key)
            yield from paths(inner, (*path, key))
    elif isinstance(value, list):
        for inner in value:
            yield from paths(inner, path)


@settings(max_examples=150, deadline=None)
@given(DOCUMENTS)
def test_every_key_that_tomllib_reads_has_a_place_where_it_is_written(
    document: dict[str, dict[str, Any]],
) -> None:
    text = "".join(
        f"[{quoted(name)}] # [x]\n"
        + "".join(f"  {quoted(key)} = {written(value)}\n" for key, value in table.items())
        for name, table in document.items()
    )
    read = tomllib.loads(text)

    found = find_places(text, "x")

    assert set(found) == set(paths(read))
    lines = text.split("\n")
    for path, place in found.items():
        assert lines[place.line - 1][place.column - 1 :].startswith(quoted(path[-1]))
