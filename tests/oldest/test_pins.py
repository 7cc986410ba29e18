"""The oldest versions are pinned, and no adapter is forgotten."""

import re

import pytest
from tests.oldest.pins import ADAPTERS, ROOT, TESTS, pins


@pytest.mark.parametrize("extra", TESTS)
def test_each_extra_has_pins_and_tests(extra: str) -> None:
    assert pins(extra)
    assert all(re.fullmatch(r"[\w-]+==\d+\.\d+\.\d+", pin) for pin in pins(extra))
    assert all((ROOT / "tests" / one).is_file() for one in TESTS[extra])


def test_every_adapter_is_tested_on_its_oldest_version() -> None:
    adapters = {path.stem for path in (ROOT / "src/seawall" / ADAPTERS).glob("[a-z]*.py")}
    tested = {
        one.rpartition("/test_")[2].removesuffix(".py") for all_ in TESTS.values() for one in all_
    }

    assert adapters <= tested
