"""Read the definition of a shortcut, and say everything that is wrong with it at once.

A definition has `id, name, description, precondition, params` and `steps`, inline or as JSON text.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, get_args

import msgspec

from seawall.contract.failure import Issue
from seawall.contract.shortcut import Param, ParamType, Shortcut, ShortcutStep
from seawall.orchestration.steps import (
    BATCH_RUN,
    SHORTCUT_DEFINE,
    SHORTCUT_LIST,
    Step,
    StepsFault,
    read_document,
    read_steps,
)
from seawall.orchestration.template import MAX_INSERTED, Bare, too_large, written

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

PREFIX = "shortcut."
MAX_STEPS = 8
MAX_PARAMS = 8
MAX_NAME = 80
MAX_WORDS = 2_000
"""Characters of a description or precondition."""

_ID = re.compile(r"shortcut\.[a-z0-9_]{2,40}")
_PARAM = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,30}")
_TYPES: tuple[str, ...] = get_args(ParamType)
_KEYS = ("id", "name", "description", "precondition", "params", "steps")
_PARAM_KEYS = ("name", "type", "required", "description", "default")
_NO_STEPS = (BATCH_RUN, SHORTCUT_DEFINE, SHORTCUT_LIST)

_KINDS: dict[str, type | tuple[type, ...]] = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "array": list,
    "object": dict,
}


class Compiled:
    """A definition with its steps ready to run."""

    __slots__ = ("plan", "shortcut")

    def __init__(self, shortcut: Shortcut, plan: tuple[Step, ...]) -> None:
        self.shortcut = shortcut
        self.plan = plan

    @property
    def name(self) -> str:
        """The tool's name, which is the shortcut's id."""
        return self.shortcut.id

    def values(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """What the parameters are for these arguments: given, or by default."""
        found = {
            param.name: param.default
            for param in self.shortcut.params
            if param.default is not msgspec.UNSET
        }
        names = {param.name for param in self.shortcut.params}
        return found | {name: arguments[name] for name in names & arguments.keys()}

    def faults(self, arguments: Mapping[str, Any]) -> list[Issue]:
        """Say which parameters are missing, or too large to be inserted."""
        found = []
        for param in self.shortcut.params:
            if param.name not in arguments:
                if param.required:
                    found.append(Issue(f"/{param.name}", f"{param.name} is required", "required"))
            elif (fault := too_large(arguments[param.name])) is not None:
                found.append(Issue(f"/{param.name}", f"{param.name} {fault}", "maxLength"))
        return found

    @property
    def schema(self) -> dict[str, Any]:
        """The input schema of the tool."""
        params = self.shortcut.params
        return {
            "type": "object",
            "properties": {param.name: _property(param) for param in params},
            "required": [param.name for param in params if param.required],
            "additionalProperties": False,
        }


def read_shortcut(given: Any, *, is_tool: Callable[[str], bool] = lambda _: True) -> Compiled:
    """Read a definition, inline or as JSON text; raises `StepsFault` with all that is wrong."""
    tree = read_document(given, "")
    if not isinstance(tree, dict):
        raise StepsFault(Issue("", "a definition is an object with id, name and steps"))
    reading = _Reading(tree, is_tool)
    found = reading.shortcut()
    if reading.issues:
        raise StepsFault(*reading.issues)
    return found


class _Reading:
    def __init__(self, tree: Mapping[str, Any], is_tool: Callable[[str], bool]) -> None:
        self.issues: list[Issue] = []
        self._tree = tree
        self._is_tool = is_tool

    def shortcut(self) -> Compiled:
        self._known(self._tree, _KEYS, "", "a definition")
        wanted = self._id()
        name = self._words("name", MAX_NAME)
        if name is not None and not name.strip():
            self._fault("/name", "name must be a text that is not blank")
        params = self._params()
        plan = self._plan([param.name for param in params if param.name], wanted)
        self._unused(params, plan)
        steps = tuple(ShortcutStep(tool=one.tool, arguments=_text(one)) for one in plan)
        shortcut = Shortcut(
            id=wanted,
            name=name or "",
            description=self._words("description", MAX_WORDS) or "",
            precondition=self._words("precondition", MAX_WORDS) or "",
            params=tuple(params),
            steps=steps,
        )
        return Compiled(shortcut, plan)

    def _id(self) -> str:
        found = self._tree.get("id")
        if isinstance(found, str) and _ID.fullmatch(found):
            return found
        said = f"id must be {PREFIX!r} and 2 to 40 of a-z, 0-9 and _, not {_shown(found)}"
        self._fault("/id", said)
        return ""

    def _words(self, key: str, most: int) -> str | None:
        found = self._tree.get(key, "")
        if isinstance(found, str) and len(found) <= most:
            return found
        self._fault(f"/{key}", f"{key} must be a text of {most:,} characters at most")
        return None

    def _params(self) -> list[Param]:
        given = self._tree.get("params", [])
        if not isinstance(given, (list, tuple)):
            self._fault("/params", 'params must be a list of {"name": …, "type": …}')
            return []
        if len(given) > MAX_PARAMS:
            self._fault("/params", f"there are {len(given)} params and {MAX_PARAMS} is the most")
        params = [self._param(item, f"/params/{at}") for at, item in enumerate(given[:MAX_PARAMS])]
        names = [param.name for param in params]
        for name in dict.fromkeys(name for name in names if names.count(name) > 1):
            self._fault("/params", f"the param {name!r} is declared twice; leave one out")
        return params

    def _param(self, item: Any, path: str) -> Param:
        if not isinstance(item, dict):
            self._fault(path, 'a param is an object: {"name": …, "type": …}')
            return Param(name="")
        self._known(item, _PARAM_KEYS, path, "a param")
        name, kind = item.get("name"), item.get("type", "string")
        if not isinstance(name, str) or not _PARAM.fullmatch(name):
            said = "must begin with a letter or _ and have 31 letters, digits and _ at most"
            self._fault(f"{path}/name", f"the name of a param {said}, not {_shown(name)}")
            name = ""
        if not isinstance(kind, str) or kind not in _TYPES:
            said = f"the type of {name!r} must be one of {', '.join(_TYPES)}"
            self._fault(f"{path}/type", said)
            kind = "string"
        required, description = item.get("required", False), item.get("description", "")
        if not isinstance(required, bool):
            self._fault(f"{path}/required", f"required of {name!r} must be true or false")
        if not isinstance(description, str) or len(description) > MAX_WORDS:
            self._fault(f"{path}/description", f"the description of {name!r} must be a short text")
        default = item.get("default", msgspec.UNSET)
        self._default(name, kind, default, path, is_required=required is True)
        return Param(
            name=name,
            type=kind,  # type: ignore[arg-type]  # one of the types, as was just asked
            required=required is True,
            description=str(description),
            default=default,
        )

    def _default(self, name: str, kind: str, default: Any, path: str, *, is_required: bool) -> None:
        if default is msgspec.UNSET:
            return
        if is_required:
            self._fault(
                f"{path}/default",
                f"{name!r} is required, so its default is never used; leave one of them out",
            )
        if not _is_of(kind, default):
            self._fault(f"{path}/default", f"the default of {name!r} is no {kind}; give one")
        elif (fault := too_large(default)) is not None:
            self._fault(f"{path}/default", f"the default of {name!r} {fault}")

    def _plan(self, names: Sequence[str], wanted: str) -> tuple[Step, ...]:
        given = self._tree.get("steps")
        if isinstance(given, (list, tuple)) and not given:
            self._fault("/steps", "a shortcut needs a step")
            return ()
        try:
            plan = read_steps(given, most=MAX_STEPS, names=names)
        except StepsFault as fault:
            self.issues.extend(fault.issues)
            return ()
        for at, step in enumerate(plan):
            self._tool(step.tool, at, wanted)
        return plan

    def _tool(self, tool: str, at: int, wanted: str) -> None:
        path = f"/steps/{at}/tool"
        if tool in _NO_STEPS:
            self._fault(
                path, f"step {at}: {tool} cannot be a step of a shortcut; name the tools themselves"
            )
        elif tool == wanted:
            self._fault(path, f"step {at}: {tool} would call itself without end; name another tool")
        elif not self._is_tool(tool):
            self._fault(
                path, f"step {at}: there is no tool {_shown(tool)}; name one that is registered"
            )

    def _unused(self, params: Sequence[Param], plan: Sequence[Step]) -> None:
        if not plan:
            return
        used = frozenset[str]().union(*(step.template.names for step in plan))
        for at, param in enumerate(params):
            if param.name and param.name not in used:
                said = f"no step uses {param.name!r}; write {{{param.name}}} where it belongs"
                self._fault(f"/params/{at}", said)

    def _known(self, item: Mapping[str, Any], keys: Sequence[str], path: str, what: str) -> None:
        for key in item:
            if key not in keys:
                said = f"{what} has no {_shown(key)}; it takes {', '.join(keys)}"
                self._fault(f"{path}/{key[:40]}", said)

    def _fault(self, path: str, message: str) -> None:
        self.issues.append(Issue(path, message))


def _is_of(kind: str, value: Any) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    return isinstance(value, _KINDS[kind]) and not _has_bare(value)


def _has_bare(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_has_bare, value.values()))
    return any(map(_has_bare, value)) if isinstance(value, list) else isinstance(value, Bare)


def _property(param: Param) -> dict[str, Any]:
    found: dict[str, Any] = {"type": param.type}
    if param.type == "string":
        found["maxLength"] = MAX_INSERTED
    if param.description:
        found["description"] = param.description
    if param.default is not msgspec.UNSET:
        found["default"] = param.default
    return found


def _text(step: Step) -> str:
    """The template's text, as it is stored."""
    given = step.arguments
    return given.strip() or "{}" if isinstance(given, str) else written(given or {})


def _shown(value: Any) -> str:
    text = repr(value) if isinstance(value, (str, int, float, bool)) else type(value).__name__
    return text if len(text) <= 60 else f"{text[:59]}…"


def as_given(shortcut: Shortcut) -> dict[str, Any]:
    """Write a definition as it may be given again."""
    found: dict[str, Any] = msgspec.to_builtins(shortcut)
    return found


def issues_of(fault: StepsFault) -> Iterator[Issue]:
    """What is wrong, as issues of the argument `definition`."""
    for issue in fault.issues:
        yield Issue(f"/definition{issue.path}", issue.message, issue.keyword)
