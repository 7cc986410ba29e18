"""Links that lead out of the docs: on the site, the file itself can be had."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sphinx.application import Sphinx

LINK = re.compile(r"(?<!!)\[(?P<text>[^\]]*)\]\((?P<target>\.\./[^)#\s]+)(?:#[^)\s]*)?\)")


def setup(app: Sphinx) -> dict[str, Any]:
    """Rewrite links as pages are read."""
    app.connect("source-read", keep_reachable)
    return {"parallel_read_safe": True}


def keep_reachable(app: Sphinx, page: str, source: list[str]) -> None:
    """Make a download of each link to a file outside of the pages' folder."""
    docs = Path(app.srcdir).resolve()
    folder = (docs / page).parent

    def rewritten(link: re.Match[str]) -> str:
        path = (folder / link["target"]).resolve()
        if path.is_relative_to(docs) or not path.is_file():
            return link[0]
        text = link["text"].replace("`", "")
        return f"{{download}}`{text} <{Path(os.path.relpath(path, folder)).as_posix()}>`"

    source[0] = LINK.sub(rewritten, source[0])
