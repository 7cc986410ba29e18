"""What a user meets as an error says what to do: no text is a complaint alone.

Every text of a `Fault`, of an exception that a user can meet, and of a refusal without guidance of
its own is read from the source; a `RuntimeError` is a mistake in a program, and is left out. A text
must hold a word that says what is wanted, or hand on the words of whoever found the fault. Refusals
are not held to it where their code's guidance says what to do.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from seawall.contract.failure import GUIDANCE, FailureCode

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

SOURCE = Path(__file__).parents[2] / "src" / "seawall"
KINDS = {
    *("Fault", "ConfigurationError", "ValueError", "TypeError", "BadParameter", "_fault"),
    *("SealBroken", "OSError", "fault", "_wrong", "NotUsable"),
}
PLACES = {"_fault": 2, "_wrong": 1, "fault": 1}
"""Which argument is the text, where it is not the first."""
SAYS = re.compile(
    r"\b(must|use|give|needs?|needed|takes?|choose|set|write|make|pass|check|leave|known"
    r"|pip install|instead|at most|one of|split|save|lower|raise|remove|add|close|share|send"
    r"|flatten|describe|fewer|wants|expected|allowed|name|exclude|put|cut|take|keeps?|run"
    r"|call_sync|had|asked for"
    r"|did you mean|connected|is the most|are enough|may be above|lists those|those are)\b"
    r"|[:;] ?[^:;]*\{\}$|\{\} \{\}$|is named with|^\{\}, not \{\}$|^(?:\{\}[ .]?)+(?:raised )?\{\}$"
)
"""Words that say what is wanted; or, after a colon, what whoever found the fault says of it."""
INSIDE = {
    # Never seen by a user: asserts of our own code, or words that are wrapped before they are.
    *(
        "contract",
        "pipeline/drive.py",
        "pipeline/clock.py",
        "pipeline/threads.py",
        "pipeline/arguments/lenient",
    ),
    *("pipeline/arguments/patterns", "pipeline/arguments/schema/validators.py", "stores/chain.py"),
    *("pipeline/arguments/careful", "edges/mcp/results.py", "toolkit", "pipeline/convert.py"),
    *("orchestration/replay", "layers/rate_limit/table.py", "layers/risk_questions.py"),
    *("pipeline/invocation.py", "layers/ledger.py", "policy/build.py", "testing"),
}


class Said(NamedTuple):
    where: str
    text: str


def skeleton(node: ast.expr, names: dict[str, ast.expr]) -> str | None:
    """The text of an expression, with `…` for what is filled in; None for what is no text."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(
            str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values
        )
    if isinstance(node, ast.BinOp):
        parts = [skeleton(side, names) or "{}" for side in (node.left, node.right)]
        return "".join(parts)
    if isinstance(node, ast.Name) and node.id in names:
        return skeleton(names[node.id], {})
    return None


def texts_of(path: Path) -> Iterator[Said]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    where = str(path.relative_to(SOURCE))
    common = names_in(tree.body)
    for scope in ast.walk(tree):
        if not isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        names = {**common, **names_in(list(ast.walk(scope)))}
        for node in ast.walk(scope):
            if isinstance(node, ast.Call) and _name(node.func) in KINDS and node.args:
                name, many = _name(node.func), len(node.args) > 1
                place = min(len(node.args) - 1, PLACES.get(name, 0)) if many else 0
                text = skeleton(node.args[place], names)
                if text is not None:
                    yield Said(f"{where}:{node.lineno}", text)


def names_in(nodes: Iterable[ast.AST]) -> dict[str, ast.expr]:
    """What names stand for, where they are given a value once; a text in two versions is both."""
    found: dict[str, ast.expr] = {}
    for node in nodes:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            found.setdefault(node.targets[0].id, node.value)
    return found


def _name(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def told() -> list[Said]:
    found = {
        said
        for path in sorted(SOURCE.rglob("*.py"))
        if not any(str(path.relative_to(SOURCE)).startswith(inside) for inside in INSIDE)
        for said in texts_of(path)
    }
    return sorted(found)


def test_there_are_texts_to_look_at() -> None:
    assert len(told()) > 200


def test_every_text_says_what_is_wanted_or_hands_on_what_was_found() -> None:
    bare = [f"{said.where}: {said.text}" for said in told() if not SAYS.search(said.text)]

    assert bare == []


WHAT_TO_DO = re.compile(
    r"\b(ask|begin|close|end|may have|must|needs?|send|served at|start|takes?|use|wants?)\b|\{\}$"
)


def test_what_the_proxy_refuses_over_http_says_what_to_send_instead() -> None:
    told = [
        (path.name, text)
        for path in sorted((SOURCE / "edges" / "mcp" / "proxy").glob("http_*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if (text := _status_text(node)) is not None
    ]

    assert len(told) > 10
    assert [(where, text) for where, text in told if not WHAT_TO_DO.search(text)] == []


def _status_text(node: ast.AST) -> str | None:
    """The text beside a status of HTTP, in a tuple or handed to `refuse`."""
    parts: list[ast.expr] = []
    if isinstance(node, ast.Tuple):
        parts = node.elts
    elif isinstance(node, ast.Call) and _name(node.func) == "refuse":
        parts = node.args
    if len(parts) != 2:
        return None
    status, text = parts
    is_status = isinstance(status, ast.Constant) and status.value in range(400, 600)
    return skeleton(text, {}) if is_status else None


def test_words_that_were_handed_on_are_joined_so_that_no_semicolon_follows_a_sentence() -> None:
    bare = [
        f"{path.relative_to(SOURCE)}:{node.lineno}"
        for path in sorted(SOURCE.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.JoinedStr) and any(map(_is_bare, node.values, node.values[1:]))
    ]

    assert bare == []


def _is_bare(before: ast.expr, after: ast.expr) -> bool:
    """Whether words from elsewhere, which may be a sentence, are followed by a semicolon."""
    return (
        isinstance(before, ast.FormattedValue)
        and isinstance(before.value, ast.Attribute)
        and before.value.attr in {"reason", "message", "guidance", "_why"}
        and isinstance(after, ast.Constant)
        and str(after.value).startswith(";")
    )


@pytest.mark.parametrize("code", FailureCode)
def test_every_code_says_what_to_do_next(code: FailureCode) -> None:
    assert len(GUIDANCE[code].split()) >= 5
