import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

Module = Callable[[str, str], str]


@pytest.fixture(name="module")
def module_fixture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Module]:
    """Writes a module into the current directory, which is a new one; gives its name."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)

    def write(name: str, text: str) -> str:
        path = tmp_path / f"{name.replace('.', '/')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return name

    yield write
    for name in set(sys.modules) - before:
        if getattr(sys.modules[name], "__file__", None) in {str(p) for p in tmp_path.rglob("*")}:
            del sys.modules[name]
