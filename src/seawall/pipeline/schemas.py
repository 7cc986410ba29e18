"""What a tool's schemas compile to: made once, by whoever needs it first, and handed on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from seawall.contract.errors import ConfigurationError, Fault
from seawall.pipeline.arguments.compiled import CompiledSchema, compile_schema

if TYPE_CHECKING:
    from seawall.contract.tool import Tool


class Schemas(msgspec.Struct, frozen=True, eq=False):
    """The schemas of one tool, ready to check with."""

    arguments: CompiledSchema
    output: CompiledSchema | None = None


def schemas_of(tool: Tool) -> Schemas:
    """Compile a tool's schemas; raises ConfigurationError with the faults of both."""
    faults: list[Fault] = []
    arguments = _compiled(tool, "input_schema", faults)
    output = None if tool.output_schema is None else _compiled(tool, "output_schema", faults)
    if arguments is None or faults:
        raise ConfigurationError(faults)
    return Schemas(arguments, output)


def _compiled(tool: Tool, field: str, faults: list[Fault]) -> CompiledSchema | None:
    try:
        return compile_schema(
            getattr(tool, field), where=f"{tool.name}.{field}", root_object=field == "input_schema"
        )
    except ConfigurationError as error:
        faults.extend(error.faults)
        return None
