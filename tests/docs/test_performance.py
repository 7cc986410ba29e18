"""The page on performance shows what is stored."""

from __future__ import annotations

import re

from tests.bench.__main__ import SUBJECTS
from tests.bench.ratios import stored
from tests.bench.tables import PAGE, cells, written


def test_the_tables_are_those_of_the_stored_ratios() -> None:
    page = PAGE.read_text(encoding="utf-8")

    assert written(page, stored()) == page


def test_every_subject_has_its_table_with_all_its_rows() -> None:
    page = PAGE.read_text(encoding="utf-8")

    results = stored()["3.11"]

    assert set(results.subjects) == set(SUBJECTS)
    for subject, rows in results.subjects.items():
        _, table = re.split(rf"<!-- measured: {subject}, 3\.11 -->", page)
        for row in rows:
            assert f"| {' | '.join(filter(None, cells(row)[:1]))} |" in table
