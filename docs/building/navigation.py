"""The side bar: every page under its heading, so that pages need no directives of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sphinx.application import Sphinx


def setup(app: Sphinx) -> dict[str, Any]:
    """Add the setting and what it is for."""
    app.add_config_value("NAVIGATION", {}, "env")
    app.connect("source-read", add_navigation)
    return {"parallel_read_safe": True}


def add_navigation(app: Sphinx, page: str, source: list[str]) -> None:
    """Put the tables of contents below the first page."""
    if page == app.config.root_doc:
        source[0] += "".join(
            f"\n```{{toctree}}\n:hidden:\n:caption: {caption}\n\n{chr(10).join(pages)}\n```\n"
            for caption, pages in app.config.NAVIGATION.items()
        )
