import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from seawall.contract.errors import ConfigurationError
from seawall.contract.policy import PRESETS
from seawall.edges.cli.sources import is_factory, policies_from, registry_from
from seawall.registry.function import tool
from seawall.registry.registry import Registry
from seawall.toolkit.bundle import bundled

Module = Callable[[str, str], str]

SHOP = """
from seawall import Registry, tool

@tool
async def price(item: str) -> str:
    return "1"

async def stock(item: str) -> str:
    return "2"

registry = Registry([price])
listed = [price, stock]
named = {"cost": price}
number = 7

def make():
    return registry

def made() -> "Registry":
    return registry

def configured(*, size: int = 3) -> Registry:
    return registry

def secret() -> str:
    raise AssertionError("a tool must not be run to look at it")

class Inner:
    tools = [price]
"""


@pytest.mark.parametrize(
    ("attribute", "names"),
    [
        (":registry", ("price",)),
        (":listed", ("price", "stock")),
        (":named", ("cost",)),
        (":price", ("price",)),
        (":stock", ("stock",)),
        (":make", ("price",)),
        (":made", ("price",)),
        (":configured", ("price",)),
        (":secret", ("secret",)),
        (":Inner.tools", ("price",)),
        ("", ("price",)),
    ],
)
def test_whatever_wrap_takes_can_be_named(
    module: Module, attribute: str, names: tuple[str, ...]
) -> None:
    where = module("shop_a", SHOP) + attribute

    assert registry_from(where).names() == names


def test_without_a_name_the_bundled_tools_are_used() -> None:
    assert registry_from(None).names() == bundled().names()


def test_a_module_in_a_package_of_this_directory_is_found(module: Module) -> None:
    module("shop_b.__init__", "")

    assert registry_from(module("shop_b.tools", SHOP) + ":registry").names() == ("price",)


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("shop_x:registry", "there is no module 'shop_x'"),
        ("shop_d:registry", "did you mean 'shop_c'?"),
        ("shop_c:registri", "'shop_c' has no 'registri'; did you mean 'registry'"),
        ("shop_c:zzz", "'shop_c' has no 'zzz'; it has price, registry"),
        ("shop_c:Inner.tolls", "'shop_c:Inner' has no 'tolls'; did you mean 'tools'?"),
        ("shop_c.registry", "did you mean 'shop_c:registry'?"),
        ("shop_c.py", "without .py"),
        ("shop_c:number", "cannot make a registry of int"),
        ("./shop_c:registry", "takes a module's name"),
        ("", "takes a module's name"),
        (":registry", "takes a module's name"),
    ],
)
def test_what_is_wrong_with_a_name_is_said(module: Module, where: str, said: str) -> None:
    module("shop_c", SHOP)

    with pytest.raises(ConfigurationError) as caught:
        registry_from(where)

    assert said in str(caught.value)
    assert str(caught.value).startswith("--registry")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("import no_such_thing", "ModuleNotFoundError: No module named 'no_such_thing'"),
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("def broken(:", "SyntaxError"),
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("token = 'x'\nraise ValueError('token=abcdef')", "ValueError: token=…"),
    ],
)
def test_a_module_that_cannot_be_imported_says_why_without_frames(
    module: Module, text: str, said: str
) -> None:
    where = module("shop_e", text)

    with pytest.raises(ConfigurationError) as caught:
        registry_from(f"{where}:registry")

    assert f"module 'shop_e' cannot be imported: {said}" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_factory_that_raises_is_said(module: Module) -> None:
    where = module("shop_f", "def make():\n    raise RuntimeError('no database')")

    with pytest.raises(ConfigurationError, match="was called and raised RuntimeError: no database"):
        registry_from(f"{where}:make")


def test_an_attribute_that_raises_is_said(module: Module) -> None:
    where = module("shop_i", "def __getattr__(name): raise RuntimeError('not yet')")

    with pytest.raises(ConfigurationError, match=r"shop_i.tools raised RuntimeError: not yet"):
        registry_from(f"{where}:tools")


def test_faulty_tools_are_said_with_where_they_are_from(module: Module) -> None:
    where = module("shop_g", "def a(x: int) -> int: ...\nlisted = [a, a, 3]")

    with pytest.raises(ConfigurationError, match=r"--registry shop_g:listed: \[2\]: is int"):
        registry_from(f"{where}:listed")


def test_the_current_directory_stands_first_once(module: Module, tmp_path: Path) -> None:
    where = module("shop_h", SHOP)

    registry_from(f"{where}:registry")
    registry_from(f"{where}:registry")

    assert sys.path[0] == str(tmp_path)
    assert sys.path.count(str(tmp_path)) == 1


def _nothing() -> Any:
    raise NotImplementedError


def _typed() -> Registry:
    raise NotImplementedError


def _with_defaults(size: int = 3) -> Registry:
    raise NotImplementedError


def _needs(size: int) -> Registry:
    raise NotImplementedError


def _text() -> str:
    raise NotImplementedError


def _none() -> None:
    raise NotImplementedError


def _optional_tool(zone: str = "UTC") -> dict[str, Any]:
    raise NotImplementedError


async def _later() -> Any:
    raise NotImplementedError


def _generating() -> Any:
    yield 1


@pytest.mark.parametrize(
    ("thing", "expected"),
    [
        (_nothing, True),
        (_typed, True),
        (_with_defaults, True),
        (_needs, False),
        (_text, False),
        (_none, False),
        (_optional_tool, False),
        (_later, False),
        (_generating, False),
        (tool(_nothing), False),
        (Registry, False),
        (Registry(), False),
        (3, False),
    ],
)
def test_only_what_must_give_a_registry_is_called(thing: Any, expected: object) -> None:
    assert is_factory(thing) is expected


def test_a_policy_is_a_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('[tools.calculate]\npreset = "network"\n')

    policies = policies_from(str(path))

    found = bundled().get("calculate")
    assert policies is not None
    assert found is not None
    assert policies.for_tool(found) == PRESETS["network"]


def test_a_policy_that_comes_along_is_named_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/")

    assert policies_from("default") is not None


def test_no_policy_is_left_to_the_pipeline() -> None:
    assert policies_from(None) is None


@pytest.mark.parametrize(
    ("where", "said"),
    [("no-such", "ready-made"), ("no-such.toml", "no such file"), ("a/b", "no such file")],
)
def test_a_policy_that_is_not_there_is_said(
    where: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    with pytest.raises(ConfigurationError, match=said):
        policies_from(where)


FRAMEWORKS = """
from agents import function_tool
from fastmcp import FastMCP
from langchain_core.tools import tool
from pydantic_ai import FunctionToolset
from seawall import wrap

def price(item: str) -> str:
    "Tell a price."
    return "1"

langchain = tool(price)
pydantic_ai = FunctionToolset([price])
openai_agents = function_tool(price)
fastmcp = FastMCP("shop")
fastmcp.tool(price)
mixed = [langchain]
declared = [{"name": "price", "input_schema": {"type": "object"}}]
dictionaries = wrap(declared, dispatch={"price": price})
"""


@pytest.mark.parametrize(
    "attribute", ["langchain", "pydantic_ai", "openai_agents", "fastmcp", "mixed", "dictionaries"]
)
def test_tools_of_frameworks_can_be_named(module: Module, attribute: str) -> None:
    where = f"{module('shop_frameworks', FRAMEWORKS)}:{attribute}"

    assert registry_from(where).names() == ("price",)


def test_dictionaries_alone_are_told_what_they_lack(module: Module) -> None:
    with pytest.raises(ConfigurationError, match="give `dispatch`"):
        registry_from(f"{module('shop_frameworks', FRAMEWORKS)}:declared")
