"""Links between pages lead somewhere, and the pages are all reachable."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]

FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")


def page_id(page: Path) -> str:
    return str(page.relative_to(ROOT))


def text_of(page: Path) -> str:
    return FENCED.sub("", page.read_text(encoding="utf-8"))


def links_of(page: Path) -> list[tuple[Path, str]]:
    """The files and anchors that a page leads to; addresses on the network are left out."""
    found = []
    for target in LINK.findall(text_of(page)):
        if "://" not in target:
            path, _, anchor = target.partition("#")
            found.append(((page.parent / path).resolve() if path else page, anchor))
    return found


def anchors_of(page: Path) -> set[str]:
    titles = re.findall(r"^#+ (.+)$", text_of(page), re.MULTILINE)
    plain = (re.sub(r"[^\w\s-]", "", title.lower()) for title in titles)
    return {title.strip().replace(" ", "-") for title in plain}


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_links_inside_lead_to_files_and_headings_that_exist(page: Path) -> None:
    broken = [
        f"{path.name}#{anchor}"
        for path, anchor in links_of(page)
        if not path.exists() or (anchor and anchor not in anchors_of(path))
    ]

    assert broken == []


def test_every_page_is_reached_from_the_first_one() -> None:
    waiting, reached = [DOCS / "index.md"], set()
    while waiting:
        page = waiting.pop()
        if page not in reached and page.suffix == ".md" and page.exists():
            reached.add(page)
            waiting += [path for path, _ in links_of(page)]

    assert sorted(set(DOCS.rglob("*.md")) - reached) == []
