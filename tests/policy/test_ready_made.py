"""Policy files by name."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from seawall.contract.errors import ConfigurationError
from seawall.policy import ready_made as module
from seawall.policy.ready_made import label_of, ready_made, ready_made_names

if TYPE_CHECKING:
    from pathlib import Path


def test_each_ready_made_file_is_found_by_its_name() -> None:
    names = ready_made_names()

    assert "default" in names
    assert all(ready_made(name).name == f"{name}.toml" for name in names)
    assert all(ready_made(name).is_file() for name in names)


@pytest.mark.parametrize("name", ["", "../pyproject", "/etc/passwd", "default.toml"])
def test_a_name_that_is_not_ready_made_finds_nothing(name: str) -> None:
    with pytest.raises(ConfigurationError, match="is unknown"):
        ready_made(name)


def test_a_misspelt_name_is_told_what_was_meant() -> None:
    with pytest.raises(ConfigurationError, match=r"did you mean strict\?"):
        ready_made("strikt")


def test_an_installed_package_has_the_files_inside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies" / "mine.toml").touch()
    monkeypatch.setattr(module, "resources", SimpleNamespace(files=lambda package: tmp_path))

    assert ready_made_names() == ("mine",)


def test_a_checkout_has_the_files_beside_the_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "resources", SimpleNamespace(files=lambda package: tmp_path))

    assert "default" in ready_made_names()


def test_a_ready_made_file_is_named_shorter_than_its_path(tmp_path: Path) -> None:
    assert label_of(ready_made("strict")) == "policies/strict.toml"
    assert label_of(tmp_path / "strict.toml") == str(tmp_path / "strict.toml")
