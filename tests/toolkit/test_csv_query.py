from typing import Any

import pytest

from seawall.contract.failure import ToolFailed
from seawall.toolkit.csv_query import Condition, csv_query

PEOPLE = """name,age,city
Ada,36,London
Bo,9,"Paris, FR"
Cy,,Rome
Di,100,"New
York"
Ed,forty,
"""


def _names(**query: Any) -> list[str]:
    return [row[0] for row in csv_query(PEOPLE, **query)["rows"]]


def test_without_a_query_all_is_given_as_text() -> None:
    told = csv_query(PEOPLE)

    assert told["columns"] == ["name", "age", "city"]
    assert told["rows"][1] == ["Bo", "9", "Paris, FR"]
    assert told["rows"][3] == ["Di", "100", "New\nYork"]
    assert (told["found"], told["total"]) == (5, 5)


def test_columns_are_given_in_the_order_asked_for() -> None:
    assert csv_query(PEOPLE, select=("city", "name"), limit=1)["rows"] == [["London", "Ada"]]


@pytest.mark.parametrize(
    ("condition", "names"),
    [
        (Condition(column="age", op="gt", value=10), ["Ada", "Di"]),
        (Condition(column="age", op="ge", value="36.0"), ["Ada", "Di"]),
        (Condition(column="age", op="lt", value=36), ["Bo"]),
        (Condition(column="age", op="le", value=36), ["Ada", "Bo"]),
        (Condition(column="age", op="eq", value="36.00"), ["Ada"]),
        (Condition(column="age", op="ne", value=36), ["Bo", "Cy", "Di", "Ed"]),
        (Condition(column="age", op="empty"), ["Cy"]),
        (Condition(column="city", op="filled"), ["Ada", "Bo", "Cy", "Di"]),
        (Condition(column="city", op="contains", value="on"), ["Ada"]),
        (Condition(column="city", op="starts_with", value="New"), ["Di"]),
        (Condition(column="city", op="ends_with", value="FR"), ["Bo"]),
        (Condition(column="name", op="gt", value="Cy"), ["Di", "Ed"]),
        (Condition(column="name", value=True), []),
    ],
)
def test_rows_are_filtered_by_conditions(condition: Condition, names: list[str]) -> None:
    assert _names(where=(condition,)) == names


def test_all_conditions_must_be_met() -> None:
    young = Condition(column="age", op="lt", value=50)
    in_france = Condition(column="city", op="contains", value="FR")

    assert _names(where=(young, in_france)) == ["Bo"]


def test_numbers_order_as_numbers_and_empty_cells_come_last() -> None:
    assert _names(order_by="age") == ["Bo", "Ada", "Di", "Ed", "Cy"]
    assert _names(order_by="age", descending=True) == ["Ed", "Di", "Ada", "Bo", "Cy"]


def test_the_first_rows_are_given_and_all_counted() -> None:
    told = csv_query(PEOPLE, limit=2)

    assert len(told["rows"]) == 2
    assert told["found"] == 5


@pytest.mark.parametrize(
    ("text", "delimiter", "rows"),
    [
        ("a;b\n1;2\n", ";", [["1", "2"]]),
        ("\ufeffa\tb\r\n1\t2\r\n", "\t", [["1", "2"]]),
        ("a,b\n\n1\n", ",", [["1", ""]]),
        ("a\nx\u2028y\n", ",", [["x\u2028y"]]),
        ('a\n"x ""y"""\n', ",", [['x "y"']]),
    ],
)
def test_text_is_read_as_it_is_met_in_the_wild(
    text: str, delimiter: Any, rows: list[list[str]]
) -> None:
    assert csv_query(text, delimiter=delimiter)["rows"] == rows


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no header"),
        ("a,a\n1,2\n", "two columns named 'a'"),
        ("a,b\n1,2,3\n", "line 2 has 3 cells"),
        ('a\n"open\n', "no CSV at line 2"),
        ('a\n"x"y\n', "no CSV at line 2"),
        ("a\n" + "x" * 200_000, "no CSV at line"),
        ("x" * 1_000_001, "longer than"),
        (",".join(map(str, range(501))), "more than 500 columns"),
    ],
)
def test_text_that_is_no_table_is_refused(text: str, said: str) -> None:
    with pytest.raises(ToolFailed, match=said) as refused:
        csv_query(text)

    assert refused.value.failure.fields == ("text",)


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"select": ("name", "salary")}, "select.1"),
        ({"where": (Condition(column="salary"),)}, "where.0.column"),
        ({"order_by": "salary"}, "order_by"),
    ],
)
def test_an_unknown_column_is_refused_with_those_there_are(
    query: dict[str, Any], field: str
) -> None:
    with pytest.raises(ToolFailed, match="'name', 'age', 'city'") as refused:
        csv_query(PEOPLE, **query)

    assert refused.value.failure.fields == (field,)


def test_an_answer_that_is_too_wide_is_refused() -> None:
    header = ",".join(f"c{number}" for number in range(400))

    with pytest.raises(ToolFailed, match="cells"):
        csv_query(f"{header}\n" + "1\n" * 600, limit=600)
