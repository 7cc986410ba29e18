"""The reference of names: below each table of names, what the code says of them.

A page of the reference lists names with a line about each, which is all that is read without a
site. Which names those are is said by the table alone.
"""

from __future__ import annotations

import importlib
import inspect
import re
from typing import TYPE_CHECKING, Any

from sphinx.pycode import ModuleAnalyzer

import seawall
import seawall.testing

if TYPE_CHECKING:
    from types import ModuleType

    from sphinx.application import Sphinx

LISTED = re.compile(r"^\| `(\w+)` \|", re.MULTILINE)
SECTION = re.compile(r"^## ", re.MULTILINE)


def setup(app: Sphinx) -> dict[str, Any]:
    """Add the entries as pages are read."""
    app.connect("source-read", add_entries)
    app.connect("autodoc-process-docstring", keep_examples)
    return {"parallel_read_safe": True}


def keep_examples(
    _app: Sphinx, _kind: str, _name: str, _thing: Any, _options: Any, lines: list[str]
) -> None:
    """Show what stands indented below a paragraph as code, as Markdown would."""
    kept: list[str] = []
    for line in lines:
        above = next((one for one in reversed(kept) if one.strip()), "")
        begins = line.startswith("    ") and kept and not kept[-1].strip()
        if begins and not above.startswith((" ", "-", "..")):
            kept += ["::", ""]
        kept.append(line)
    lines[:] = kept


def add_entries(_app: Sphinx, page: str, source: list[str]) -> None:
    """Put the entries of a section's names below it."""
    if not page.startswith("reference/"):
        return
    home = seawall.testing if page == "reference/testing" else seawall
    before, *sections = SECTION.split(source[0])
    parts = [before, *(f"## {one}" for one in sections)]
    source[0] = "".join(leading(part, home) + entries(part, home) for part in parts)


def leading(section: str, home: ModuleType) -> str:
    """Make each listed name lead to its entry."""
    return LISTED.sub(
        lambda row: (
            f"| {{py:obj}}`{row[1]} <{home.__name__}.{row[1]}>` |"
            if row[1] in home.__all__
            else row[0]
        ),
        section,
    )


def entries(section: str, home: ModuleType) -> str:
    """Write the directives for the names that a section lists."""
    names = [name for name in LISTED.findall(section) if name in home.__all__]
    if not names:
        return ""
    text = "\n".join(entry(home, name) for name in names)
    return f"\n```{{eval-rst}}\n.. currentmodule:: {home.__name__}\n\n{text}```\n\n"


def entry(home: ModuleType, name: str) -> str:
    """Write the directive for one name."""
    value = getattr(home, name)
    if inspect.isclass(value):
        kind = "exception" if issubclass(value, BaseException) else "class"
        return f".. auto{kind}:: {name}\n   :members:\n   :undoc-members:\n"
    if inspect.isfunction(value):
        return f".. autofunction:: {name}\n"
    said = "\n".join(f"   {line}" for line in said_of(name))
    return f".. py:data:: {name}\n\n{said}\n"


def said_of(name: str) -> list[str]:
    """Read what stands below a constant or an alias where it is made."""
    home = seawall._HOME_OF.get(name)  # noqa: SLF001 - the one place that knows
    module = "seawall" if home is None else importlib.import_module(f"seawall.{home}").__name__
    return ModuleAnalyzer.for_module(module).find_attr_docs().get(("", name), [])
