"""The steps of a batch or a shortcut, read from what a model or a file gives.

A list or JSON text of `{"tool": …, "arguments": …}`; the arguments inline or as JSON text again.
All faults are told together, each with its place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from seawall.contract.failure import Issue
from seawall.contract.sentences import joined
from seawall.orchestration.template import Template, TemplateFault, document

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

BATCH_RUN = "tool_batch_run"
SHORTCUT_DEFINE = "shortcut_define"
SHORTCUT_LIST = "shortcut_list"
SHORTCUT_RUN = "shortcut_run"

_ALSO = {"name": "tool", "args": "arguments"}
"""What models write instead; each is taken for the key it stands for."""


class StepsFault(ValueError):  # noqa: N818  # a fault of what was sent, not of the program
    """Steps that cannot be used; `issues` say all that is wrong, and where."""

    def __init__(self, *issues: Issue) -> None:
        super().__init__(joined(issue.message for issue in issues))
        self.issues = issues


class Step(msgspec.Struct, frozen=True, eq=False):
    """One call to come, and the document its template was made of."""

    tool: str
    template: Template
    arguments: Any


def read_document(given: Any, path: str) -> Any:
    """Read steps or a definition as `document` does; raises `StepsFault`."""
    try:
        return document(given)
    except TemplateFault as fault:
        raise StepsFault(*_below(path, fault)) from None


def read_steps(
    tree: Any,
    *,
    most: int,
    names: Collection[str] | None = None,
    own_name: Callable[[str], str | None] = lambda name: name,
) -> tuple[Step, ...]:
    """Read the steps in what `read_document` gave; raises `StepsFault`.

    `own_name` gives the name of the tool that is meant.
    """
    if not isinstance(tree, (list, tuple)):
        raise StepsFault(Issue("/steps", 'steps must be a list of {"tool": …, "arguments": …}'))
    if len(tree) > most:
        said = f"there are {len(tree)} steps and {most} is the most; do the rest afterwards"
        raise StepsFault(Issue("/steps", said))
    issues: list[Issue] = []
    steps: list[Step] = []
    for index, item in enumerate(tree):
        try:
            steps.append(_step(item, index, names, own_name))
        except TemplateFault as fault:
            issues.extend(_below(f"/steps/{index}", fault))
    if issues:
        raise StepsFault(*issues)
    return tuple(steps)


def _step(
    item: Any,
    index: int,
    names: Collection[str] | None,
    own_name: Callable[[str], str | None],
) -> Step:
    if not isinstance(item, dict):
        raise TemplateFault(Issue("", f'step {index} must be {{"tool": …, "arguments": …}}'))
    found = {"arguments": None, **_keys(item, index)}
    tool, arguments = found.get("tool"), found["arguments"]
    if not isinstance(tool, str) or not tool.strip():
        raise TemplateFault(Issue("/tool", f"step {index} must name its tool by a text"))
    tool = own_name(tool) or tool
    if tool == SHORTCUT_RUN:
        tool, arguments = _shortcut(arguments, index)
    try:
        template = Template(arguments, before=index, names=names, is_document=True)
    except TemplateFault as fault:
        said = (_said(issue, f"step {index} ({tool[:80]}): ") for issue in fault.issues)
        raise TemplateFault(*_below("/arguments", TemplateFault(*said))) from None
    return Step(tool, template, arguments)


def _keys(item: dict[str, Any], index: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in item.items():
        known = _ALSO.get(key, key)
        if known not in ("tool", "arguments") or known in found:
            said = f"has {key[:80]!r}; it takes tool and arguments, nothing else"
            if known in found:
                said = f"has {known} twice, once as {key[:80]!r}; leave one out"
            raise TemplateFault(Issue(f"/{key[:80]}", f"step {index} {said}"))
        found[known] = value
    return found


def _shortcut(given: Any, index: int) -> tuple[str, Any]:
    """See through a step that runs a shortcut by its id: the step is that shortcut."""
    arguments = document(given) if isinstance(given, str) else given
    if not isinstance(arguments, dict) or not isinstance(arguments.get("id"), str):
        said = f"step {index} must name the shortcut by its id"
        raise TemplateFault(Issue("/arguments/id", said))
    wanted = arguments["id"]
    if "{" in wanted:
        said = f"step {index}: what a step gives cannot choose the shortcut; write its id"
        raise TemplateFault(Issue("/arguments/id", said))
    return wanted, arguments.get("arguments")


def _below(path: str, fault: TemplateFault) -> Iterator[Issue]:
    for issue in fault.issues:
        yield Issue(path + issue.path, issue.message, issue.keyword)


def _said(issue: Issue, prefix: str) -> Issue:
    return Issue(issue.path, prefix + issue.message, issue.keyword)
