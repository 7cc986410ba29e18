"""How the site is made of these pages: `python -m sphinx -W -b html docs docs/site`.

The pages are plain Markdown that reads as well without a site. What only a site can have is
added while it is built: its navigation here, links that lead out of this folder, the reference
of names and that of commands by `building/`. Nothing is fetched when it is built or read.
"""

from __future__ import annotations

import sys
from pathlib import Path

import seawall

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

project = "Seawall"
author = "Seawall maintainers"
copyright = author  # noqa: A001 - the name that Sphinx reads
release = seawall.__version__
version = release.rpartition(".")[0]

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "building.navigation",
    "building.outside",
    "building.names",
    "building.commands",
]
exclude_patterns = ["site", "building", "simulations"]
needs_sphinx = "8.2"

NAVIGATION = {
    "Begin": ["quick-start", "concepts", "failures", "failure-semantics", "security"],
    "Layers": [
        *("layers/result_limit", "layers/environment_gate", "layers/risk_gate"),
        *("layers/argument_check", "layers/fallback", "layers/cache", "layers/rate_limit"),
        *("layers/bulkhead", "layers/adaptive_limit", "layers/exclusive", "layers/ledger"),
        *("layers/retry", "layers/hedge", "layers/breaker", "layers/timeout"),
        "writing-a-layer",
    ],
    "Tools and calls": [
        *("writing-a-tool", "registry", "declarations", "adapters", "mcp", "policies"),
        *("approvals", "turns", "hooks", "loops", "batch", "shortcuts", "testing"),
    ],
    "Servers and state": ["proxy", "gateway", "state", "shared-state"],
    "Recipes": sorted(f"recipes/{path.stem}" for path in HERE.glob("recipes/*.md")),
    "Operations": [
        "recording",
        "metrics",
        "opentelemetry",
        "operations",
        "tuning",
        "performance",
        "chaos",
    ],
    "Reference": [
        *("reference/calls", "reference/tools", "reference/failures", "reference/policies"),
        *("reference/approvals", "reference/extending", "reference/recording"),
        *("reference/adapters", "reference/testing", "reference/commands", "command-line"),
        *("reference/environment", "comparison", "changelog"),
    ],
}
"""Every page but the first, under the headings of the side bar."""

_named = {"index", *(page for pages in NAVIGATION.values() for page in pages)}
_pages = {path.relative_to(HERE).with_suffix("").as_posix() for path in HERE.rglob("*.md")}
if _pages - _named:
    NAVIGATION["More"] = sorted(_pages - _named)

# Pages: the Markdown of GitHub, with its anchors.
myst_heading_anchors = 4
default_role = "py:obj"  # in docstrings, `name` leads to the name's entry where it has one

autodoc_preserve_defaults = True
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_class_signature = "mixed"
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88

html_theme = "furo"
html_title = f"Seawall {version}"
html_static_path = ["building/style"]
html_css_files = ["seawall.css"]
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
html_theme_options = {"navigation_with_keys": True}
