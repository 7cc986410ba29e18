"""Fill values into JSON: `{0}` is what step 0 gave, `{name}` the value of a parameter.

    {"path": "notes/{name}.md", "limit": {limit}, "body": {0}}

A template is a JSON object: a value, or JSON text in which a placeholder may also stand bare. Bare
it keeps the type of its value, inside a text it becomes text, and there `{{` and `}}` are braces.
Keys are never filled in. What is filled in is never read again, neither as JSON nor as a template:
nothing that a step returned can add an argument or refer to another step.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from seawall.contract.failure import Issue
from seawall.contract.pointer import escaped
from seawall.contract.sentences import joined
from seawall.pipeline.arguments.reading.bounds import out_of_bounds
from seawall.pipeline.arguments.reading.text import ArgumentTextFault, read

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from seawall.contract.result import ToolResult

MAX_INSERTED = 4_000
"""Characters that one placeholder may become, the line that says what was cut included."""

MAX_PLACEHOLDERS = 100
"""Placeholders in one template, so that even the largest stays within what a call may carry."""

_NAME = r"[0-9]+|[A-Za-z_][A-Za-z0-9_]*"
_PIECE = re.compile(rf"\{{\{{|\}}\}}|\{{({_NAME})\}}|[{{}}]")
_OUTSIDE = re.compile(rf'(?:"((?>[^"\\]|\\.)*+)"|\{{({_NAME})\}})(\s*:)?', re.DOTALL)
_FAR = 10_000
_LEFT_OUT: Any = object()


class TemplateFault(ValueError):  # noqa: N818  # a fault of the template, not of the program
    """A template that cannot be used, or not with these values; `issues` say where and why."""

    def __init__(self, *issues: Issue, reason: str = "argument_invalid") -> None:
        super().__init__(joined(issue.message for issue in issues))
        self.issues = issues
        self.reason = reason


class Inserted(msgspec.Struct, frozen=True):
    """What a placeholder stands for: inside a text, and bare."""

    text: str
    value: Any

    @classmethod
    def of_result(cls, result: ToolResult) -> Inserted:
        """What a step gave: its text; bare its structured content, if it has any."""
        structured = result.structured_content
        nothing = structured is None and not result.content
        text = result.text
        return cls(text, structured if nothing or structured is not None else text)

    @classmethod
    def of_value(cls, value: Any) -> Inserted:
        """The value of a parameter; in a text, texts as they are and the rest as JSON."""
        return cls(value if isinstance(value, str) else _json(value) or "", value)


class Bare(msgspec.Struct, frozen=True):
    """A placeholder outside of any text, by what stands between its braces."""

    name: str


class _Slot(msgspec.Struct, frozen=True):
    """A placeholder that was checked: a step's number or a parameter's name."""

    key: int | str
    bare: bool
    path: str


class _Text(msgspec.Struct, frozen=True):
    """A text with placeholders in it."""

    parts: tuple[str | _Slot, ...]


class Template:
    """The arguments of one step.

    `before` is how many steps come earlier: only those can be referred to. `names` are the
    parameters there are; with None there are no parameters, and `{word}` inside a text is text.
    `given` may be a part of what `document` gave; say so by `is_document`. Raises `TemplateFault`
    with everything that is wrong.
    """

    __slots__ = ("_root", "names", "steps")

    def __init__(
        self,
        given: Any,
        *,
        before: int = 0,
        names: Collection[str] | None = None,
        is_document: bool = False,
    ) -> None:
        # A part of a document was checked with it, and may hold bare placeholders.
        tree = given if is_document and not isinstance(given, str) else document(given)
        self._compile(tree, _Compiling(before, names))

    def _compile(self, tree: Any, compiling: _Compiling) -> None:
        if isinstance(tree, Bare):
            raise TemplateFault(Issue("", _WHOLE, "template"))
        if not isinstance(tree, dict):
            if tree is not None and tree != "":
                raise TemplateFault(
                    Issue("", "the arguments must be a JSON object", "parse"),
                    reason="arguments_not_object",
                )
            tree = {}
        self._root = compiling.node(tree, "")
        compiling.check()
        keys = compiling.keys
        self.steps = tuple(sorted(key for key in keys if isinstance(key, int)))
        """Numbers of the steps that are referred to."""
        self.names = frozenset(key for key in keys if isinstance(key, str))
        """Parameters that are used."""

    def fill(
        self, steps: Sequence[Inserted] = (), values: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """Put in what steps gave and the values of parameters; gives arguments of their own.

        A parameter without a value leaves out the member or item it is, and is nothing inside a
        text. Raises `TemplateFault` for a bare value that is too large: it cannot be cut.
        """
        filled: dict[str, Any] = _filled(self._root, {**self._given(values or {}), **_all(steps)})
        return filled

    def shown(self, values: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """For a reader before any step has run: references stay as they are.

        So do parameters if `values` is None. A value too large to be inserted is cut.
        """
        known = {key: _short(found) for key, found in self._given(values or {}).items()}
        open_keys = (*self.steps, *(self.names if values is None else ()))
        stand_ins = {key: Inserted(f"{{{key}}}", f"{{{key}}}") for key in open_keys}
        filled: dict[str, Any] = _filled(self._root, {**known, **stand_ins})
        return filled

    def _given(self, values: Mapping[str, Any]) -> dict[int | str, Inserted]:
        return {name: Inserted.of_value(values[name]) for name in self.names if name in values}


def escape(text: str) -> str:
    """Write a text so that a template gives it back as it is: its braces twice."""
    return text.replace("{", "{{").replace("}", "}}")


def bounded(text: str) -> str:
    """Cut what is inserted into a text, and say how long it was."""
    if len(text) <= MAX_INSERTED:
        return text
    marker = f"… [cut: it has {len(text):,} characters]"
    return text[: MAX_INSERTED - len(marker)] + marker


def document(given: Any) -> Any:
    """Read JSON text with bare placeholders, which become `Bare`; other values are only checked."""
    if isinstance(given, str):
        return _read(given)
    value = dict(given) if isinstance(given, Mapping) and not isinstance(given, dict) else given
    fault = out_of_bounds(value)
    if fault is not None:
        reason, path, message = fault
        raise TemplateFault(Issue(path, message, "parse"), reason=reason)
    return value


def written(tree: Any) -> str:
    """Write what `document` gave as template text again."""
    if isinstance(tree, Bare):
        return f"{{{tree.name}}}"
    if isinstance(tree, dict):
        members = (f"{json.dumps(key)}: {written(item)}" for key, item in tree.items())
        return f"{{{', '.join(members)}}}"
    if isinstance(tree, (list, tuple)):
        return f"[{', '.join(map(written, tree))}]"
    return json.dumps(tree, ensure_ascii=False)


def _read(text: str) -> Any:
    try:
        return read(text, repair=True)[0]
    except ArgumentTextFault as fault:
        has_bare = any(found[2] is not None for found in _OUTSIDE.finditer(text))
        if not has_bare or fault.reason in ("too_deep", "too_large"):
            raise _unread(fault, fault.message) from None
    # Each text that is a value begins with `s` now, and what was a bare placeholder with `p`: read
    # strictly, so that nothing but a text in double quotes can be taken for one.
    try:
        return _unmarked(read(_OUTSIDE.sub(_mark, text), repair=False)[0])
    except ArgumentTextFault as fault:
        said = f"with something in place of its placeholders, {fault.message}"
        raise _unread(fault, said) from None


def _mark(found: re.Match[str]) -> str:
    text, name, colon = found.groups()
    if name is None:
        return found[0] if colon else f'"s{text}"'
    if colon:
        raise TemplateFault(
            Issue("", f"{{{name[:40]}}} stands for a key; keys are never filled in", "template")
        )
    return f'"p{name}"'


def _unmarked(node: Any) -> Any:
    if isinstance(node, str):
        return node[1:] if node[0] == "s" else Bare(node[1:])
    if isinstance(node, dict):
        return {key: _unmarked(item) for key, item in node.items()}
    return [_unmarked(item) for item in node] if isinstance(node, list) else node


def _unread(fault: ArgumentTextFault, message: str) -> TemplateFault:
    return TemplateFault(Issue("", message, "parse"), reason=fault.reason)


class _Compiling:
    """Turns a document into nodes, and keeps what is wrong with it."""

    def __init__(self, before: int, names: Collection[str] | None) -> None:
        self.keys: set[int | str] = set()
        self._before = before
        self._names = names
        self._count = 0
        self._issues: list[Issue] = []

    def node(self, tree: Any, path: str) -> Any:
        if isinstance(tree, dict):
            return {key: self.node(item, f"{path}/{escaped(key)}") for key, item in tree.items()}
        if isinstance(tree, (list, tuple)):
            return [self.node(item, f"{path}/{index}") for index, item in enumerate(tree)]
        if isinstance(tree, str):
            return self._text(tree, path) if "{" in tree or "}" in tree else tree
        return self._slot(tree.name, path, bare=True) if isinstance(tree, Bare) else tree

    def check(self) -> None:
        if self._count > MAX_PLACEHOLDERS:
            said = f"there are {self._count} placeholders; {MAX_PLACEHOLDERS} at most"
            self._issues.append(Issue("", said, "template"))
        if self._issues:
            raise TemplateFault(*self._issues)

    def _text(self, text: str, path: str) -> _Text | str:
        parts: list[str | _Slot] = []
        at = 0
        single = double = False
        for found in _PIECE.finditer(text):
            parts.append(text[at : found.start()])
            at = found.end()
            piece, name = found[0], found[1]
            if name is not None and self._is_placeholder(name):
                parts.append(self._slot(name, path, bare=False))
                continue
            twice = piece in ("{{", "}}")
            double, single = double or twice, single or not twice
            parts.append(piece[0] if twice else piece)
        if single and double:
            self._fault(path, _BOTH)
        parts.append(text[at:])
        if not any(isinstance(part, _Slot) for part in parts):
            return "".join(part for part in parts if isinstance(part, str))
        return _Text(tuple(part for part in parts if part != ""))

    def _is_placeholder(self, name: str) -> bool:
        return name[0].isdigit() or self._names is not None

    def _slot(self, name: str, path: str, *, bare: bool) -> _Slot:
        self._count += 1
        key: int | str = name
        if name[0].isdigit():
            key = int(name) if len(name) <= 9 else _FAR
            if key >= self._before:
                self._fault(path, _no_step(name, self._before))
        elif name not in (self._names or ()):
            self._fault(path, _no_parameter(name, self._names))
        self.keys.add(key)
        return _Slot(key, bare, path)

    def _fault(self, path: str, message: str) -> None:
        if len(self._issues) < 16:
            self._issues.append(Issue(path, message, "template"))


def _short(found: Inserted) -> Inserted:
    return found if too_large(found.value) is None else Inserted(found.text, found.text)


def _all(steps: Sequence[Inserted]) -> dict[int | str, Inserted]:
    return dict(enumerate(steps))


def _filled(node: Any, given: Mapping[int | str, Inserted]) -> Any:
    if isinstance(node, dict):
        members = ((key, _filled(item, given)) for key, item in node.items())
        return {key: value for key, value in members if value is not _LEFT_OUT}
    if isinstance(node, list):
        items = (_filled(item, given) for item in node)
        return [value for value in items if value is not _LEFT_OUT]
    if isinstance(node, _Text):
        return "".join(part if isinstance(part, str) else _text(part, given) for part in node.parts)
    return _bare(node, given) if isinstance(node, _Slot) else node


def _text(slot: _Slot, given: Mapping[int | str, Inserted]) -> str:
    found = given.get(slot.key)
    return "" if found is None else bounded(found.text)


def _bare(slot: _Slot, given: Mapping[int | str, Inserted]) -> Any:
    found = given.get(slot.key)
    if found is None:
        return _LEFT_OUT
    value = found.value
    if isinstance(value, str):
        return bounded(value)
    if not isinstance(value, (dict, list, tuple)):
        return value
    fault = too_large(value)
    if fault is not None:
        whose = f"what step {slot.key} gave" if isinstance(slot.key, int) else f"{slot.key!r}"
        inside = f' In quotes, "{{{slot.key}}}" inserts the beginning of its text.'
        raise TemplateFault(Issue(slot.path, f"{whose} {fault}.{inside}", "template"))
    return value


def too_large(value: Any) -> str | None:
    """Say why a value cannot be inserted as it is, or None: cutting it would change its shape."""
    text = value if isinstance(value, str) else _json(value)
    if text is None:
        return "is no JSON"
    if len(text) <= MAX_INSERTED:
        return None
    return f"has {len(text):,} characters and cannot be inserted whole; {MAX_INSERTED:,} at most"


def _json(value: Any) -> str | None:
    """Write a value as JSON, or None if it is none."""
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return None


def _no_step(name: str, before: int) -> str:
    there_are = {0: "no step comes before this one", 1: "only step 0 comes before this one"}
    there = there_are.get(before, f"only the steps 0 to {before - 1} come before this one")
    shown = name if len(name) <= 9 else f"{name[:9]}…"
    return (
        f"{{{shown}}} would be what step {shown} gave, but {there}."
        f" If the braces are meant as text, write {{{{{shown}}}}}"
    )


def _no_parameter(name: str, names: Collection[str] | None) -> str:
    shown = name if len(name) <= 40 else f"{name[:40]}…"
    if names is None:
        return f"{{{shown}}} is no reference: steps are referred to by number, such as {{0}}"
    there = f"there are {', '.join(sorted(names))}" if names else "no parameter is declared"
    return (
        f"{{{shown}}} is no declared parameter; {there}."
        f" If the braces are meant as text, write {{{{{shown}}}}}"
    )


_WHOLE = (
    "a placeholder cannot be all the arguments: what is inserted would choose them."
    ' Name the argument that it is for, such as {"text": {0}}'
)
_BOTH = (
    "some braces of this text are doubled and some are not, so it is not clear which are text:"
    " double every brace that is text, {{ and }}, and leave references such as {0} single"
)
