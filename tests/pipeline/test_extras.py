import sys
from pathlib import Path

import pytest

from seawall import ConfigurationError
from seawall.pipeline.extras import imported, version_of


@pytest.fixture(name="folder")
def folder_fixture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("framework", "adapting"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return tmp_path


def test_a_module_whose_needs_are_there_is_imported(folder: Path) -> None:
    (folder / "adapting.py").write_text("found = 1")

    assert imported("adapting", "some").found == 1


def test_what_is_missing_is_named_with_what_brings_it(folder: Path) -> None:
    (folder / "adapting.py").write_text("import framework_that_is_not_there.tools")

    with pytest.raises(
        ConfigurationError,
        match=r"^framework_that_is_not_there is not installed; .*pip install 'seawall\[some\]'$",
    ):
        imported("adapting", "some")


@pytest.mark.parametrize("line", ["from framework import Newer", "import framework.newer"])
def test_another_version_than_is_needed_is_not_said_to_be_missing(folder: Path, line: str) -> None:
    (folder / "framework.py").write_text("")
    (folder / "adapting.py").write_text(line)

    with pytest.raises(
        ConfigurationError,
        match=r"^pytest [\d.]+ does not fit \(.*\); .*pip install -U 'seawall\[some\]'$",
    ):
        imported("adapting", "some", "pytest")


def test_what_is_not_installed_has_no_version() -> None:
    assert version_of("pytest") is not None
    assert version_of("no-such-distribution") is None
