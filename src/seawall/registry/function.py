"""Make a tool of a typed function: its signature is the schema, its docstring the description.

Validators that JSON Schema cannot say still run before anything else does; what they raise is an
`INVALID_ARGUMENT` at its path. The function gets typed values.
"""

from __future__ import annotations

import functools
import inspect
import re
import typing
from typing import Any, overload

from seawall.contract.annotations import Annotations, Risk
from seawall.contract.errors import ConfigurationError, Fault
from seawall.contract.failure import Failure, FailureCode, Issue, ToolFailed, dotted
from seawall.contract.pointer import escaped
from seawall.contract.sentences import joined
from seawall.contract.tool import ImpliedCheck, Tool
from seawall.pipeline.context import ToolContext
from seawall.registry.implied import Bound, binding

if typing.TYPE_CHECKING:
    from collections.abc import Callable, Mapping
from types import SimpleNamespace

CONTEXT = "context"
"""A parameter of this name, or of type `ToolContext`, gets the context and is no argument."""


@overload
def tool(function: Callable[..., Any], /, **fields: Any) -> Tool: ...


@overload
def tool(**fields: Any) -> Callable[[Callable[..., Any]], Tool]: ...


def tool(
    function: Callable[..., Any] | None = None, /, **fields: Any
) -> Tool | Callable[[Callable[..., Any]], Tool]:
    """Make a `Tool` of a function; `fields` are those of `Tool`, and win over what is derived.

    Sync functions run in a worker thread; an async generator streams. Raises `ConfigurationError`
    for a signature that cannot become a schema.
    """
    if function is None:
        return lambda function: _made(function, fields)
    return _made(function, fields)


def _made(function: Callable[..., Any], fields: dict[str, Any]) -> Tool:
    unknown = sorted(set(fields) - set(Tool.__struct_fields__))
    if unknown:
        said = f"is not a field of Tool; those are {', '.join(Tool.__struct_fields__)}"
        raise ConfigurationError([Fault(said, name) for name in unknown])
    if isinstance(fields.get("risk"), str):
        fields["risk"] = _risk(fields["risk"])
    if not isinstance(fields.get("annotations", Annotations()), Annotations):
        said = "must be Annotations, such as Annotations.for_reading()"
        raise ConfigurationError([Fault(said, "annotations")])
    name = fields.pop("name", None) or getattr(function, "__name__", "")
    doc = Doc.of(function)
    signature = _Signature(name, function, doc)
    derived: dict[str, Any] = {
        "description": doc.description or name.replace("_", " "),
        "input_schema": signature.schema,
        "output_schema": signature.output_schema,
        "executor": signature.executor,
        "check": signature.check,
    }
    return Tool(name=name, **{**derived, **fields})


def _risk(text: str) -> Risk:
    try:
        return Risk.parse(text)
    except ValueError as error:
        raise ConfigurationError([Fault(str(error), "risk")]) from error


class _Signature:
    """A function's parameters as a pydantic model."""

    def __init__(self, name: str, function: Callable[..., Any], doc: Doc) -> None:
        self._name = name
        self._function = function
        hints = _hints(name, function)
        parameters, self._context = _parameters(name, function, hints)
        parameters, hints = _said_by_fields(parameters, hints)
        model = _model(name, parameters, hints, doc)
        self._validate = model.__pydantic_validator__.validate_python
        self._names = [(field, info.alias) for field, info in model.model_fields.items()]
        self._takes_others = model.model_config["extra"] == "allow"
        self._invalid = _pydantic_error()
        self.schema = _schema(model)
        bind = binding(model.__pydantic_core_schema__, parameters)
        self.check = self._check if bind is None else ImpliedCheck(self._check, self.schema, bind)
        self.output_schema = _output_schema(hints.get("return"))
        self.executor = self._executor()

    def _check(self, arguments: Mapping[str, Any]) -> tuple[Bound | None, tuple[Issue, ...]]:
        """Validate by pydantic: typed values, or what is wrong with them."""
        try:
            found = self._validate(arguments)
        except self._invalid as error:
            return None, tuple(
                issue_of(fault)
                for fault in error.errors(
                    include_url=False, include_context=False, include_input=False
                )
            )
        # Each field as it is: `model_dump` would turn nested models back into mappings.
        fields = found.__dict__
        values = Bound()
        for field, name in self._names:
            values[name] = fields[field]
        if self._takes_others:
            values.update(found.model_extra or {})
        return values, ()

    def _bound(self, arguments: Mapping[str, Any], context: Any) -> dict[str, Any]:
        if type(arguments) is not Bound:
            found, issues = self._check(arguments)
            if found is None:
                parts = (f"{dotted(issue.path) or 'root'}: {issue.message}" for issue in issues)
                code, said = FailureCode.INVALID_ARGUMENT, joined(parts)
                raise ToolFailed(Failure(code=code, message=said, issues=issues))
            arguments = found
        return arguments if self._context is None else {**arguments, self._context: context}

    def _executor(self) -> Callable[..., Any]:
        function, bound = self._function, self._bound
        by_name = self._context is not None
        if inspect.isasyncgenfunction(function):

            @functools.wraps(function)
            async def stream(arguments: dict[str, Any], context: Any) -> Any:
                async for item in function(**bound(arguments, context)):
                    yield item

            return stream
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def run(arguments: dict[str, Any], context: Any) -> Any:
                if by_name or type(arguments) is not Bound:  # else a frame less
                    arguments = bound(arguments, context)
                return await function(**arguments)

            return run

        @functools.wraps(function)
        def run_sync(arguments: dict[str, Any], context: Any) -> Any:
            return function(**bound(arguments, context))

        return run_sync


def _pydantic_error() -> Any:
    from pydantic import ValidationError  # noqa: PLC0415  # pydantic comes with the first tool

    return ValidationError


def _hints(name: str, function: Callable[..., Any]) -> dict[str, Any]:
    target = function if inspect.isroutine(function) else function.__call__  # type: ignore[operator]  # an object that is called
    try:
        return typing.get_type_hints(target, include_extras=True)
    except (NameError, TypeError):
        return _hints_of_parameters(name, target)


def _hints_of_parameters(name: str, function: Any) -> dict[str, Any]:
    """Do without the hint of what is returned: it may be imported for type checkers only."""
    plain = inspect.unwrap(function)
    hints = {key: hint for key, hint in plain.__annotations__.items() if key != "return"}
    scope = getattr(plain, "__globals__", {})
    try:
        return typing.get_type_hints(
            SimpleNamespace(__annotations__=hints), scope, include_extras=True
        )
    except (NameError, TypeError) as error:
        raise ConfigurationError(
            [Fault(f"has a type hint that cannot be resolved: {error}", name)]
        ) from error


def _parameters(
    name: str, function: Callable[..., Any], hints: Mapping[str, Any]
) -> tuple[list[inspect.Parameter], str | None]:
    """The parameters that are arguments, and the one that gets the context."""
    found: list[inspect.Parameter] = []
    context: str | None = None
    faults: list[Fault] = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name == CONTEXT or hints.get(parameter.name) is ToolContext:
            context = parameter.name
        elif parameter.kind in (parameter.VAR_POSITIONAL, parameter.POSITIONAL_ONLY):
            faults.append(
                Fault(
                    "cannot be given by name; tools take arguments by name", f"{name}.{parameter}"
                )
            )
        else:
            found.append(parameter)
    if faults:
        raise ConfigurationError(faults)
    return found, context


def _said_by_fields(
    parameters: list[inspect.Parameter], hints: dict[str, Any]
) -> tuple[list[inspect.Parameter], dict[str, Any]]:
    """Read `x: int = Field(5, ge=1)` as pydantic does: such a default says more than a value."""
    from pydantic.fields import FieldInfo  # noqa: PLC0415  # as above

    read, hints = [], {**hints}
    for parameter in parameters:
        field = parameter.default
        if not isinstance(field, FieldInfo):
            read.append(parameter)
            continue
        hints[parameter.name] = typing.Annotated[hints.get(parameter.name, Any), field]
        # What is made anew each time, pydantic makes by what the hint says now.
        is_value = field.default_factory is None and not field.is_required()
        read.append(parameter.replace(default=field.default if is_value else parameter.empty))
    return read, hints


def _model(
    name: str, parameters: list[inspect.Parameter], hints: Mapping[str, Any], doc: Doc
) -> Any:
    from pydantic import (  # noqa: PLC0415  # as above
        BaseModel,
        ConfigDict,
        Field,
        PydanticUserError,
        create_model,
    )

    fields: dict[str, Any] = {}
    extra: typing.Literal["allow", "ignore"] = "ignore"
    others: Any = Any
    for parameter in parameters:
        if parameter.kind is parameter.VAR_KEYWORD:
            extra, others = "allow", hints.get(parameter.name, Any)
            continue
        hint = hints.get(parameter.name, Any)
        said = doc.parameters.get(parameter.name)
        if said and not _is_described(hint):
            hint = typing.Annotated[hint, Field(description=said)]
        # By an alias: `schema`, `copy` or `_x` cannot be the name of a field itself.
        default = {} if parameter.default is parameter.empty else {"default": parameter.default}
        fields[f"p{len(fields)}"] = (hint, Field(**default, alias=parameter.name))
    config = ConfigDict(extra=extra, arbitrary_types_allowed=False, protected_namespaces=())
    try:
        base = type(
            "Arguments",
            (BaseModel,),
            {
                "model_config": config,
                "__annotations__": {"__pydantic_extra__": dict[str, others]},
                "__module__": __name__,
            },
        )
        return create_model(name or "arguments", __base__=base, **fields)
    except (PydanticUserError, TypeError, NameError) as error:
        said = str(error).split("\n", 1)[0]
        raise ConfigurationError([Fault(f"cannot become a schema: {said}", name)]) from error


def _is_described(hint: Any) -> bool:
    return any(getattr(meta, "description", None) for meta in getattr(hint, "__metadata__", ()))


def _schema(model: Any) -> dict[str, Any]:
    from pydantic.json_schema import GenerateJsonSchema  # noqa: PLC0415  # as above

    class Untitled(GenerateJsonSchema):
        def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002  # pydantic's name
            return False

    schema: dict[str, Any] = model.model_json_schema(schema_generator=Untitled)
    for part in (schema, *schema.get("$defs", {}).values()):
        part.pop("title", None)
    schema.setdefault("properties", {})
    if schema.get("additionalProperties") is True:
        del schema["additionalProperties"]
    return schema


def _output_schema(hint: Any) -> dict[str, Any] | None:
    """Schema of what the function promises, if that is an object with named fields."""
    from pydantic import BaseModel, PydanticUserError, TypeAdapter  # noqa: PLC0415  # as above

    if not isinstance(hint, type):
        return None
    # `is_typeddict` knows its own module's kind only; before 3.12 pydantic wants the other one.
    marks = ("__dataclass_fields__", "__required_keys__")
    if not issubclass(hint, BaseModel) and not any(hasattr(hint, mark) for mark in marks):
        return None
    try:
        return TypeAdapter(hint).json_schema(mode="serialization")
    except PydanticUserError:
        return None  # a promise that pydantic cannot read is not checked


def issue_of(fault: Mapping[str, Any]) -> Issue:
    """Say one of pydantic's errors as an issue."""
    path = "".join(f"/{escaped(step)}" for step in fault["loc"])
    message = str(fault["msg"])
    return Issue(path, message if len(message) <= 300 else message[:299] + "…", str(fault["type"]))


class Doc(typing.NamedTuple):
    """A docstring: what the tool does, and what its parameters mean."""

    description: str
    parameters: dict[str, str]

    @classmethod
    def of(cls, function: Callable[..., Any]) -> Doc:
        """Read Google's `Args:` and Sphinx's `:param name:`; the rest is the description."""
        text = inspect.getdoc(function) or ""
        section = _ARGS.search(text)
        head = text[: section.start()] if section else text
        parameters = dict(_google(text[section.end() :])) if section else {}
        parameters.update((name, " ".join(said.split())) for name, said in _SPHINX.findall(text))
        return cls(_SPHINX_START.split(head, maxsplit=1)[0].strip(), parameters)


_ARGS = re.compile(r"^(?:Args|Arguments|Parameters):[ \t]*$", re.MULTILINE)
_SPHINX_START = re.compile(r"^:(?:param|return|returns|raises|type|rtype)\b", re.MULTILINE)
_SPHINX = re.compile(r"^:param (?:[\w\[\], .|]+ )?(\w+):[ \t]*((?:.|\n(?!:|\n))*)", re.MULTILINE)
_ITEM = re.compile(r"^(\s+)(\w+)(?:\s*\([^)]*\))?:\s*(.*)$")


def _google(section: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    indent: str | None = None
    for line in section.strip("\n").split("\n"):
        if line.strip() and not line[:1].isspace():
            break  # the next section
        item = _ITEM.match(line)
        if item and (indent is None or item[1] == indent):
            indent = item[1]
            found.append((item[2], item[3].strip()))
        elif found and line.strip():
            found[-1] = (found[-1][0], f"{found[-1][1]} {line.strip()}".strip())
    return found
