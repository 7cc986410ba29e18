from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seawall.registry.nearness import Grade, Query, edit_distance, grade
from seawall.registry.spelling import read, spell

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "suggester.json").read_text("utf-8"))
DISTANCES: dict[str, Any] = next(each for each in VECTORS["cases"] if each["id"] == "sg-12")


def graded(asked: str, name: str) -> Grade | None:
    reading = read(asked)
    query = Query(asked, reading, reading.core.stems, corrected=False)
    near = grade(query, name, spell(name))
    return None if near is None else near[0]


def cost(asked: str, name: str) -> float:
    reading = read(asked)
    near = grade(Query(asked, reading, reading.core.stems, corrected=False), name, spell(name))
    assert near is not None
    return near[1]


@pytest.mark.parametrize(
    ("texts", "distance"),
    [
        (step["distance"], value)
        for step, value in zip(DISTANCES["steps"], DISTANCES["expect"]["values"], strict=True)
    ],
)
def test_edits_are_counted_up_to_a_bound(texts: list[Any], distance: int | None) -> None:
    assert edit_distance(*texts) == distance


def test_no_distance_is_within_a_negative_bound() -> None:
    assert edit_distance("same", "same", -1) is None


@given(st.text(max_size=30), st.text(max_size=30), st.integers(0, 40))
def test_a_distance_within_the_bound_is_the_unbounded_one(a: str, b: str, bound: int) -> None:
    full = edit_distance(a, b, 60)

    assert full is not None
    assert edit_distance(a, b, bound) == (full if full <= bound else None)


@pytest.mark.parametrize(
    ("asked", "name", "expected"),
    [
        ("read_file", "read_file", Grade.SAME),
        ("Read-File", "readFile", Grade.SAME),
        ("functions.search", "search", Grade.SAME),
        ("functions", "Functions", Grade.SAME),
        ("file_read", "read_file", Grade.WORDS),
        ("list_issue", "list_issues", Grade.WORDS),
        ("regex", "regex_extract", Grade.PREFIX),
        ("a", "a_tool", Grade.PREFIX),
        ("fil", "read_file", Grade.PART),
        ("ls", "fs_ls", Grade.PART),
        ("file", "profile_x", Grade.PART),
        ("nitori", "monitoring", Grade.PART),
        ("serch", "search", Grade.NEAR),
        ("raed", "read", Grade.NEAR),
        ("githb_create", "github_create", Grade.NEAR),
        ("webserch", "web_search", Grade.NEAR),
        ("ragbot_vectorSearch", "vectorSearch", Grade.NEAR),
        ("some_long_server_name__read", "read", Grade.NEAR),
        ("search_documents_now", "search_documents", Grade.NEAR),
        ("read_the_file", "read_file", Grade.NEAR),
        ("cf.get_namespaces", "cf.get_accounts_namespaces", Grade.NEAR),
        ("get_issues", "list_issues", Grade.LOOSE),
        ("jira.get_user_info", "confluence_get_user_info", Grade.LOOSE),
    ],
)
def test_a_name_is_near_in_the_best_way_it_can_be(asked: str, name: str, expected: Grade) -> None:
    assert graded(asked, name) is expected


@pytest.mark.parametrize(
    ("asked", "name"),
    [
        ("ls", "json"),
        ("ls", "tools_list"),
        ("re", "read_file"),
        ("a", "b"),
        ("even", "seventy"),
        ("read_email", "read"),
        ("get_weather", "get"),
        ("delete_file", "write_file"),
        ("execute_python", "str_replace_editor"),
        ("execute_python", "web_read"),
        ("execute_python", "execute_bash"),
        ("kanban_list", "kanban_show"),
        ("functions", "functions_list"),
        ("get_b", "get_b_of_this_server_with_many_words"[::-1]),
        ("abcdefgh", "abwxyzgh"),
        ("elasticsearch_index", "elasticsearch_delete"),
        ("", "search"),
        ("search", "!!"),
    ],
)
def test_what_shares_letters_by_chance_is_not_near(asked: str, name: str) -> None:
    assert graded(asked, name) is None


@pytest.mark.parametrize(
    ("asked", "nearer", "farther"),
    [
        ("get_me", "get_me", "get-me"),
        ("getMe", "get_me", "getme"),
        ("tool_search", "toolsearch", "search"),
        ("kanban_ls", "kanban_lsx", "xkanban_ls"),
        ("fil", "my_fil", "my_file"),
        ("serch_fles", "search_fles", "search_files"),
        ("x_create_issue", "create_issue", "issue"),
    ],
)
def test_within_a_grade_the_smaller_change_costs_less(
    asked: str, nearer: str, farther: str
) -> None:
    near, far = graded(asked, nearer), graded(asked, farther)
    assert near is not None
    assert far is not None
    assert (near, cost(asked, nearer)) < (far, cost(asked, farther))
