"""The site is built of the pages without a warning, and can be read without a network."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.found import lacking

import seawall
import seawall.testing

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
NAMES = [
    *(f"seawall.{name}" for name in seawall.__all__),
    *(f"seawall.testing.{name}" for name in seawall.testing.__all__),
]


class Seen(HTMLParser):
    """What a page of the site loads, where it leads, and which places it has."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.leads: list[str] = []
        self.places: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        said = {name: value or "" for name, value in attrs}
        self.places.add(said.get("id", ""))
        if tag == "a" and "href" in said:
            self.leads.append(said["href"])
        elif tag in {"script", "img", "iframe", "source", "object"}:
            self.loads += [said[name] for name in ("src", "data", "srcset") if name in said]
        elif tag == "link" and said.get("rel") in {"stylesheet", "preload", "icon", "preconnect"}:
            self.loads.append(said.get("href", ""))


@pytest.fixture(name="site", scope="module")
def site_fixture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if importlib.util.find_spec("furo") is None:
        lacking("needs furo, which the extra `docs` brings")
    site = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", DOCS, site],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return site


@pytest.fixture(name="pages", scope="module")
def pages_fixture(site: Path) -> dict[Path, Seen]:
    return {path: Seen(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))}


def test_every_page_of_the_folder_is_a_page_of_the_site(site: Path) -> None:
    pages = [path.relative_to(DOCS).with_suffix(".html") for path in DOCS.rglob("*.md")]

    assert [page for page in pages if not (site / page).exists()] == []


def test_every_page_is_in_the_side_bar(pages: dict[Path, Seen], site: Path) -> None:
    bar = {(site / lead).resolve() for lead in pages[site / "index.html"].leads if "#" not in lead}

    made = {"genindex.html", "search.html", "py-modindex.html", "index.html"}
    assert [page.name for page in pages if page not in bar and page.name not in made] == []


def links_inside(pages: dict[Path, Seen]) -> Iterator[tuple[Path, Path, str]]:
    for page, seen in pages.items():
        for lead in seen.leads:
            if not re.match(r"[a-z]+:", lead):
                path, _, anchor = lead.partition("#")
                yield page, (page.parent / path).resolve() if path else page, anchor


def test_every_link_inside_leads_to_a_page_and_a_place_of_it(pages: dict[Path, Seen]) -> None:
    broken = [
        f"{page.name}: {path.name}#{anchor}"
        for page, path, anchor in links_inside(pages)
        if not path.exists() or (anchor and path in pages and anchor not in pages[path].places)
    ]

    assert broken == []


def test_nothing_is_loaded_from_elsewhere(pages: dict[Path, Seen], site: Path) -> None:
    outside = {load for seen in pages.values() for load in seen.loads if re.match(r"\w*:?//", load)}
    for style in site.rglob("*.css"):
        outside |= set(
            re.findall(r"(?:url\(|@import)\s*[\"']?(?:https?:)?//[^)\s]+", style.read_text())
        )

    assert outside == set()


def test_each_public_name_has_its_entry_in_the_reference(pages: dict[Path, Seen]) -> None:
    entries = set().union(*(seen.places for seen in pages.values()))

    assert [name for name in NAMES if name not in entries] == []


def test_the_reference_of_commands_has_the_help_of_each(site: Path) -> None:
    text = (site / "reference" / "commands.html").read_text(encoding="utf-8")

    for command in ("seawall proxy", "seawall policy simulate", "seawall approvals approve"):
        assert f"Usage: {command} [OPTIONS]" in re.sub(r"<[^>]+>", "", text)


def test_a_file_outside_of_the_docs_can_be_had(pages: dict[Path, Seen], site: Path) -> None:
    leads = pages[site / "metrics.html"].leads

    assert [lead for lead in leads if "_downloads" in lead and lead.endswith("README.md")]
