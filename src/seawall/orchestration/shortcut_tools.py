"""How the tools around shortcuts are declared to a model, and how the list is written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from seawall.contract.annotations import Annotations, Risk
from seawall.contract.result import ToolResult
from seawall.contract.tool import Executor, Tool
from seawall.orchestration.batch import ANSWERS_S, DEFAULT_BUDGET_S
from seawall.orchestration.shortcut_definition import MAX_PARAMS, MAX_STEPS
from seawall.orchestration.steps import SHORTCUT_DEFINE, SHORTCUT_LIST, SHORTCUT_RUN

if TYPE_CHECKING:
    from collections.abc import Iterable

    from seawall.contract.shortcut import Shortcut


class Declared(msgspec.Struct, frozen=True, kw_only=True):
    """What a tool is, apart from what it does."""

    name: str
    title: str
    description: str
    input_schema: dict[str, Any]
    annotations: Annotations
    risk: Risk
    self_gated: bool = False
    duration: float | None = None

    def tool(self, executor: Executor) -> Tool:
        """Make the tool."""
        return Tool(executor=executor, category="orchestration", **msgspec.structs.asdict(self))


DEFINE = Declared(
    name=SHORTCUT_DEFINE,
    title="Define a shortcut",
    description=(
        f"Keep 1 to {MAX_STEPS} tool calls under a name, to be called as one tool. In the arguments"
        " of a step, {name} stands for a param and {0} for what step 0 gave; braces that are meant"
        " as text are written twice, {{ and }}. A definition with the same id is replaced."
    ),
    input_schema={
        "type": "object",
        "properties": {
            "definition": {
                "description": "The definition, or JSON text of it, where {name} may stand without"
                " quotes and then keeps its type.",
                "anyOf": [
                    {
                        "type": "object",
                        "properties": {
                            "id": {
                                "type": "string",
                                "description": "shortcut. and 2 to 40 of a-z, 0-9 and _",
                            },
                            "name": {"type": "string"},
                            "description": {"type": "string"},
                            "precondition": {
                                "type": "string",
                                "description": "When to use it; for the reader alone.",
                            },
                            "params": {
                                "type": "array",
                                "description": f"{MAX_PARAMS} at most, each used by a step.",
                                "items": {
                                    "type": "object",
                                    "properties": {
                                        "name": {"type": "string"},
                                        "type": {
                                            "enum": [
                                                "string",
                                                "integer",
                                                "number",
                                                "boolean",
                                                "array",
                                                "object",
                                            ]
                                        },
                                        "required": {"type": "boolean"},
                                        "description": {"type": "string"},
                                        "default": {},
                                    },
                                },
                            },
                            "steps": {
                                "type": "array",
                                "items": {
                                    "type": "object",
                                    "properties": {
                                        "tool": {"type": "string"},
                                        "arguments": {"type": ["object", "string"]},
                                    },
                                },
                            },
                        },
                    },
                    {"type": "string"},
                ],
            }
        },
        "required": ["definition"],
    },
    annotations=Annotations(read_only=False, destructive=False, idempotent=True, open_world=False),
    risk=Risk.MEDIUM,
)

LIST = Declared(
    name=SHORTCUT_LIST,
    title="List shortcuts",
    description="List the shortcuts there are: what each does, its params, its steps, its risk.",
    input_schema={"type": "object", "properties": {}},
    annotations=Annotations.for_reading(),
    risk=Risk.LOW,
)

RUN = Declared(
    name=SHORTCUT_RUN,
    title="Run a shortcut",
    description="Run a shortcut by its id, with its params as arguments.",
    input_schema={
        "type": "object",
        "properties": {
            "id": {"type": "string", "description": "Such as shortcut.note_page."},
            "arguments": {
                "type": ["object", "string"],
                "description": "Its params, or JSON text of them.",
            },
        },
        "required": ["id"],
    },
    annotations=Annotations(read_only=False, destructive=True, idempotent=False, open_world=True),
    risk=Risk.HIGH,
    # The shortcut asks by itself, about each step that needs it.
    self_gated=True,
    duration=DEFAULT_BUDGET_S + (MAX_STEPS + 1) * ANSWERS_S,
)


def listed(found: Iterable[tuple[Shortcut, Tool | None, tuple[str, ...]]]) -> ToolResult:
    """Write the list for a model: each shortcut with its tool and the tools it lacks."""
    shortcuts = [_entry(*one) for one in found]
    if not shortcuts:
        return ToolResult.of_text(f"There are no shortcuts; {DEFINE.name} makes one.")
    text = "\n\n".join(_paragraph(one) for one in shortcuts)
    return msgspec.structs.replace(
        ToolResult.of_text(text), structured_content={"shortcuts": shortcuts}
    )


def _entry(shortcut: Shortcut, tool: Tool | None, missing: tuple[str, ...]) -> dict[str, Any]:
    risk = Risk.MEDIUM if tool is None else tool.effective_risk
    return {
        "id": shortcut.id,
        "name": shortcut.name,
        "description": shortcut.description,
        "precondition": shortcut.precondition,
        "params": [msgspec.to_builtins(param) for param in shortcut.params],
        "steps": [step.tool for step in shortcut.steps],
        "risk": risk.name.lower(),
        "missing": list(missing),
    }


def _paragraph(one: dict[str, Any]) -> str:
    params = ", ".join(
        f"{param['name']} ({param.get('type', 'string')}{_how(param)})" for param in one["params"]
    )
    lines = [
        f"{one['id']}: {one['name']}",
        f"  {one['description']}" if one["description"] else "",
        f"  precondition: {one['precondition']}" if one["precondition"] else "",
        f"  params: {params or 'none'}",
        f"  steps: {', '.join(one['steps'])}; risk: {one['risk']}",
        f"  cannot run now, as these are missing: {', '.join(one['missing'])}"
        if one["missing"]
        else "",
    ]
    return "\n".join(line for line in lines if line)


def _how(param: dict[str, Any]) -> str:
    return ", required" if param.get("required") else ""
