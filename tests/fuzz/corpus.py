"""Cases that were found, kept to be tried again."""

from __future__ import annotations

import ast
import base64
import json
import math
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.fuzz.probe import Case

if TYPE_CHECKING:
    from collections.abc import Iterator

FOLDER = Path(__file__).parent / "corpus"
_ZIPPED_FROM = 20_000


def kept() -> Iterator[tuple[str, Case]]:
    """All cases, each with its name: that of its file, or its own in a file of many."""
    for path in sorted(FOLDER.glob("*.json")):
        found = json.loads(path.read_text())
        for data in found if isinstance(found, list) else [found]:
            yield data.get("name", path.stem), read(data)


def keep(name: str, case: Case, found: str) -> Path:
    """Write a case; `found` says what was wrong with it."""
    path = FOLDER / f"{name}.json"
    path.write_text(json.dumps(written(case, found), indent=1) + "\n")
    return path


def written(case: Case, found: str) -> dict[str, Any]:
    """Say a case in JSON: text as it is, other values as Python writes them."""
    kind = "text" if isinstance(case.given, str) else "python"
    said = case.given if kind == "text" else repr(case.given)
    if len(said) > _ZIPPED_FROM:
        packed = zlib.compress(said.encode("utf-8", "surrogatepass"), 9)
        kind, said = f"{kind}, zipped", base64.b85encode(packed).decode()
    return {"found": found, "schema": case.schema, "kind": kind, "given": said}


def read(data: dict[str, Any]) -> Case:
    """Read a case: a text, Python's literals, or a unit repeated so often."""
    kind, said = data["kind"], data["given"]
    if kind == "repeated":
        return Case(data["schema"], said["open"] + said["unit"] * said["times"] + said["close"])
    if kind.endswith(", zipped"):
        unpacked = zlib.decompress(base64.b85decode(said))
        kind, said = kind.removesuffix(", zipped"), unpacked.decode("utf-8", "surrogatepass")
    return Case(data["schema"], said if kind == "text" else _evaluated(said))


def _evaluated(text: str) -> Any:
    """Python's literals; `nan` and `inf` too, and other objects as one that is no JSON."""
    tree = ast.parse(text, mode="eval")
    return ast.literal_eval(_Plain().visit(tree))


class _Plain(ast.NodeTransformer):
    def visit_Name(self, node: ast.Name) -> ast.AST:
        known: dict[str, Any] = {"nan": math.nan, "inf": math.inf, "odd": ...}
        return ast.copy_location(ast.Constant(known[node.id]), node)
