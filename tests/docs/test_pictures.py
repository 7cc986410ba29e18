"""The pictures show what the product is now: the demo that runs, the layers that there are."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from seawall.policy.build import BY_NAME

PICTURES = Path(__file__).parents[2] / "docs" / "pictures"
SVG = "{http://www.w3.org/2000/svg}"


def script(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(f"picture_{name}", PICTURES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def lines_of(name: str) -> list[str]:
    """The texts of a picture; of the demo's lines with what is new in each run taken out."""
    root = ET.parse(PICTURES / f"{name}.svg").getroot()
    return [plain("".join(text.itertext())) for text in root.iter(f"{SVG}text")]


def plain(line: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"\d[\d.,:T+Z-]*", "0", line)).strip()


@pytest.fixture(name="demo_now", scope="module")
def demo_now_fixture() -> list[str]:
    done = subprocess.run(
        [Path(sys.executable).with_name("seawall"), "demo", "--fast"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return done.stdout.splitlines()


def test_the_picture_of_the_demo_shows_the_turns_and_the_end_of_the_demo(
    demo_now: list[str],
) -> None:
    shown = lines_of("demo")
    turns = [plain(line) for line in demo_now if re.match(r" ?\d+  \w", line)]

    assert len(turns) > 10
    assert [turn for turn in turns if turn not in shown] == []
    assert plain(demo_now[-1])[:60] in " ".join(shown)


def test_the_picture_of_the_demo_shows_each_of_its_calls(demo_now: list[str]) -> None:
    calls = re.compile(r"^c0 calls (\w[\w.]*)")
    now = [found[1] for line in demo_now if (found := calls.match(plain(line)))]
    shown = [found[1] for line in lines_of("demo") if (found := calls.match(line))]

    assert len(now) > 15
    assert set(shown) == set(now)
    assert abs(len(shown) - len(now)) <= 3, "how often a flaky service is asked is chance"


def test_the_picture_of_a_call_is_what_its_script_draws_now() -> None:
    assert script("call").picture() == (PICTURES / "call.svg").read_text(encoding="utf-8")


def test_the_picture_of_a_call_has_the_layers_in_the_order_of_the_chain() -> None:
    shown = lines_of("call")

    places = [shown.index(name.replace("_", " ")) for name in [*BY_NAME][1:]]

    assert places == sorted(places)


@pytest.mark.parametrize("picture", sorted(PICTURES.glob("*.svg")), ids=lambda path: path.name)
def test_a_picture_holds_no_script_and_loads_nothing(picture: Path) -> None:
    text = picture.read_text(encoding="utf-8")

    assert re.findall(r"<script|href=|url\(|@import|on\w+=", text) == []
