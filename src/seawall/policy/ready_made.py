"""The policy files that come with Seawall, by name."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from seawall.contract.errors import ConfigurationError, Fault
from seawall.policy.changes import unknown
from seawall.policy.origins import READY_MADE


def ready_made_names() -> tuple[str, ...]:
    """Name the ready-made files, without `.toml`."""
    return tuple(sorted(file.stem for file in _folder().glob("*.toml")))


def ready_made(name: str) -> Path:
    """Find a ready-made policy file."""
    names = ready_made_names()
    if name not in names:
        raise ConfigurationError([Fault(unknown(name, names), key=f"ready-made policy {name!r}")])
    return _folder() / f"{name}.toml"


def label_of(path: Path) -> str:
    """Name a policy file for a reader: one that comes with Seawall shorter than its path."""
    return f"{READY_MADE}{path.name}" if path.parent == _folder() else str(path)


def _folder() -> Path:
    installed = resources.files("seawall") / "policies"
    if isinstance(installed, Path) and installed.is_dir():
        return installed
    # In a checkout the files stand beside `src`; only a build puts them into the package.
    return Path(__file__).parents[3] / "policies"
