"""What a user can set or meet stands somewhere in the pages, checked against the code."""

from __future__ import annotations

import ast
import inspect
import itertools
import json
import re
import textwrap
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import seawall
import seawall.testing

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = {path: path.read_text(encoding="utf-8") for path in DOCS.rglob("*.md")}
SOURCES = sorted((ROOT / "src" / "seawall").rglob("*.py"))
VARIABLE = re.compile(r'"((?:SEAWALL|PROMETHEUS|XDG)_[A-Z_]+)"|`((?:NO)_[A-Z]+)`')
LISTED = re.compile(r"^\| `(\w+)` \|", re.MULTILINE)
HOMES: dict[str, ModuleType] = {"seawall": seawall, "seawall.testing": seawall.testing}
NAMES = [(home, name) for home, module in HOMES.items() for name in module.__all__]


def code_in(text: str) -> str:
    blocks = re.findall(r"^```\w+\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    rest = re.sub(r"^```\w+\n.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    return "\n".join([*blocks, *re.findall(r"`([^`]+)`", rest)])


CODE = "\n".join(map(code_in, PAGES.values()))


def test_every_variable_of_the_environment_is_listed() -> None:
    page = PAGES[DOCS / "reference" / "environment.md"]
    read = {
        "".join(found)
        for path in SOURCES
        for found in VARIABLE.findall(path.read_text(encoding="utf-8"))
    }

    assert len(read) >= 8
    assert [name for name in sorted(read) if f"`{name.rstrip('_')}" not in page] == []


def test_every_extra_is_listed() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    page = PAGES[DOCS / "reference" / "environment.md"]

    listed = re.findall(r"`([\w-]+)`", "".join(re.findall(r"^\| (`.*?) \|", page, re.MULTILINE)))

    assert [name for name in project["optional-dependencies"] if name not in listed] == []


def keys_of(schema: Any) -> Iterator[str]:
    """Every key that the JSON Schema of policy files gives a name to."""
    if isinstance(schema, dict):
        properties = schema.get("properties", {})
        yield from properties
        for value in schema.values():
            yield from keys_of(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from keys_of(value)


def test_every_key_of_a_policy_file_is_told() -> None:
    schema = json.loads((ROOT / "policies" / "policy.schema.json").read_text(encoding="utf-8"))
    keys = set(keys_of(schema))

    assert len(keys) > 80
    assert [key for key in sorted(keys) if not re.search(rf"\b{re.escape(key)}\b", CODE)] == []


def test_every_public_name_is_listed_once_in_the_reference() -> None:
    listed = [
        ("seawall.testing" if path.stem == "testing" else "seawall", name)
        for path, text in PAGES.items()
        if path.parent.name == "reference"
        for name in LISTED.findall(text)
        if path.stem not in {"environment", "commands"}
    ]

    assert sorted(listed) == sorted(NAMES)


def parts_of(kind: type) -> Iterator[tuple[str, Any]]:
    """The public methods and properties that a class adds, with their functions."""
    for name, value in vars(kind).items():
        if not name.startswith("_"):
            found = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
            if inspect.isfunction(found):
                yield name, found


@pytest.mark.parametrize(("home", "name"), NAMES)
def test_a_public_name_says_what_it_is_and_so_does_each_of_its_methods(
    home: str, name: str
) -> None:
    value = getattr(HOMES[home], name)
    if not (inspect.isclass(value) or inspect.isfunction(value)):
        return  # constants and aliases are told where they are made

    undocumented = (
        [part for part, function in (*parts_of(value), ("itself", value)) if not function.__doc__]
        if inspect.isclass(value)
        else []
        if value.__doc__
        else ["itself"]
    )

    assert undocumented == []


def fields_of(kind: type) -> Iterator[tuple[type, str]]:
    """The fields of a value that anybody can make or read, with the class that has each."""
    for base in kind.__mro__:
        if base.__module__.startswith("seawall"):
            yield from (
                (base, name)
                for name in vars(base).get("__annotations__", ())
                if not name.startswith("_")
            )


def said_below(kind: type) -> set[str]:
    """The fields of a class that have a docstring."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(kind)))
    body = tree.body[0].body if isinstance(tree.body[0], ast.ClassDef) else []
    return {
        above.target.id
        for above, below in itertools.pairwise(body)
        if isinstance(above, ast.AnnAssign)
        and isinstance(above.target, ast.Name)
        and isinstance(below, ast.Expr)
    }


@pytest.mark.parametrize(("home", "name"), NAMES)
def test_each_field_of_a_public_class_says_what_it_holds(home: str, name: str) -> None:
    value = getattr(HOMES[home], name)
    if not inspect.isclass(value):
        return

    silent = [
        field
        for base, field in fields_of(value)
        if field not in said_below(base) and f"`{field}`" not in (value.__doc__ or "")
    ]

    assert silent == []


def test_the_pipeline_says_what_each_of_its_options_is() -> None:
    options = [*inspect.signature(seawall.Pipeline).parameters]

    assert [name for name in options if f"`{name}`" not in (seawall.Pipeline.__doc__ or "")] == []


@pytest.mark.parametrize(("home", "name"), NAMES)
def test_a_public_class_can_be_asked_how_it_is_made(home: str, name: str) -> None:
    value = getattr(HOMES[home], name)
    if inspect.isclass(value) and not issubclass(value, BaseException):
        inspect.signature(value)


MEASURED = re.compile(r"µs|\d\s?ms\b|×T")
COMMAND = re.compile(r"python -m tests\.|docs/simulations/\w+\.py|seawall demo")


def test_a_page_with_measured_numbers_in_a_table_names_the_command_that_made_them() -> None:
    tables = {
        path: "\n".join(re.findall(r"^\|.*\|$", text, re.MULTILINE))
        for path, text in PAGES.items()
        if re.search(r"[Mm]easured|median|slowest|python -m tests\.bench", text)
    }
    numbered = [path for path, table in tables.items() if MEASURED.search(table)]

    silent = [path.name for path in numbered if not COMMAND.search(PAGES[path])]

    assert len(numbered) >= 2
    assert silent == []
