"""What tests need of the machine: found, or skipped with the reason; in CI a lack is a failure."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import NoReturn

import pytest

NPM = "SEAWALL_TEST_NPM"
"""The variable that names a folder with `node_modules`, as `npm install --prefix` makes it."""


def lacking(reason: str) -> NoReturn:
    """Skip for want of something, at a module's top too; in CI, which has everything, fail."""
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason, allow_module_level=True)


def program(*names: str) -> str:
    """The path of a program that is installed under one of these names."""
    found = next(filter(None, map(shutil.which, names)), None)
    if found is None:
        lacking(f"needs {names[0]} on the path")
    return found


def npm_package(name: str) -> Path:
    """The folder of an npm package."""
    folder = os.environ.get(NPM)
    if folder is None:
        lacking(f"needs {NPM}: a folder into which npm installed {name}")
    found = Path(folder) / "node_modules" / name
    if not found.is_dir():
        lacking(f"needs `npm install --prefix {folder} {name}`")
    return found
