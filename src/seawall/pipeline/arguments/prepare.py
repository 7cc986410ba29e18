"""From what a model sent to what a tool is run with: parse, shim, bound, mend, check.

Everything that depends on the tool alone is done once, when its chain is composed. The caller's
object is never changed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any

from seawall.contract.content import TextContent
from seawall.contract.failure import Failure, FailureCode, Issue, dotted
from seawall.contract.pointer import escaped
from seawall.contract.result import ToolResult
from seawall.contract.sentences import joined
from seawall.contract.tool import ImpliedCheck
from seawall.pipeline.arguments.careful.careful import Careful
from seawall.pipeline.arguments.compiled import CompiledSchema, compile_schema
from seawall.pipeline.arguments.faults import wording
from seawall.pipeline.arguments.faults.explain import HIDDEN, Redaction, explain
from seawall.pipeline.arguments.lenient.lenient import Lenient, validation_text
from seawall.pipeline.arguments.likeness import nearest
from seawall.pipeline.arguments.patterns.bounds import PatternBounds, pattern_bounds
from seawall.pipeline.arguments.quick import Quick
from seawall.pipeline.arguments.reading.bounds import out_of_bounds
from seawall.pipeline.arguments.reading.floats import takes_numbers_as_text
from seawall.pipeline.arguments.reading.reader import MAX_VALUES
from seawall.pipeline.arguments.reading.text import (
    ArgumentTextFault,
    exact_object,
    parse_arguments,
    plain_object,
)
from seawall.pipeline.arguments.reading.text_lenient import parse_lenient
from seawall.pipeline.convert import discreet
from seawall.pipeline.copying import SCALARS, copied
from seawall.pipeline.foreign import NOT_OURS, described, log_frames

if TYPE_CHECKING:
    from seawall.contract.policy import RunPolicy
    from seawall.contract.tool import Tool
    from seawall.pipeline.arguments.reading.bounds import Fault
    from seawall.pipeline.invocation import Invocation

LAYER = "argument_check"
MAX_ISSUES = 1_000
"""Issues taken of what a tool's own check gives."""
MAX_NAME = 80
MAX_SAID = 8
"""Faults in the one-line message; the text for the model has more."""

Mend = Callable[[Any], "tuple[Any, tuple[str, ...]]"]
Bind = Callable[[dict[str, Any]], Any]
OwnCheck = Callable[["Invocation", dict[str, Any]], ToolResult | None]

Prepare = Callable[["Invocation"], ToolResult | None]
"""Sets the arguments of a call, or gives the refusal; None means that they are in order."""


def preparing(
    tool: Tool,
    policy: RunPolicy,
    *,
    checked: bool = True,
    compiled: CompiledSchema | None = None,
    count: Callable[[str, str], None] = lambda _layer, _event: None,
) -> Prepare:
    """Make what prepares the arguments of one tool's calls.

    Mappings and texts that are plainly in order go through at once, as nearly all do.
    """
    whole = Preparing(tool, policy, checked=checked, compiled=compiled, count=count)
    return whole if whole.compiled is None or whole.mends_all else _quickly(whole, whole.compiled)


def _quickly(whole: Preparing, compiled: CompiledSchema) -> Prepare:
    bind, own_check = whole.binding
    quick = Quick(compiled, bind)
    read = exact_object if whole.exact else plain_object

    def prepare(call: Invocation) -> ToolResult | None:
        given, is_valid, take = call.given, quick.is_valid, quick.take
        if is_valid is None or call.given_truncated:
            quick.make()
            return whole(call)
        if type(given) is not dict:
            value = read(given)
        elif take is not None:
            value = take(given)
        else:
            value = given.copy()
            for item in value.values():
                if type(item) not in SCALARS:
                    return whole(call)
        try:
            if value is None or not is_valid(value):
                return whole(call)
        except ValueError:  # what is no JSON
            return whole(call)
        call._arguments = value  # noqa: SLF001  # a property takes longer than all this
        call.own_of = quick.own_of
        return None if own_check is None else own_check(call, value)

    return prepare


class Preparing:
    """Prepares the arguments of one tool, whatever they are."""

    def __init__(
        self,
        tool: Tool,
        policy: RunPolicy,
        *,
        checked: bool = True,
        compiled: CompiledSchema | None = None,
        count: Callable[[str, str], None] = lambda _layer, _event: None,
    ) -> None:
        self._tool = tool
        self._count = count
        self._checked = checked and policy.check_mode != "off"
        self._shadow = policy.check_mode == "shadow"
        self._mode = policy.coercion
        self._compiled: CompiledSchema | None = None
        self._lenient: Lenient | None = None
        self._patterns: PatternBounds | None = None
        self._refuses_unknown = False
        self._mend: Mend | None = None
        self.exact = takes_numbers_as_text(tool.input_schema)
        """Whether numbers that no float can keep are read as texts."""
        if not self._checked:
            return
        self._refuses_unknown = policy.unknown_arguments == "refuse"
        schema = closed(tool) if self._refuses_unknown else tool.input_schema
        self._compiled = compiled if schema is tool.input_schema else None
        if self._compiled is None:
            self._compiled = compile_schema(schema, where=f"{tool.name}.input_schema")
        self._patterns = pattern_bounds(self._compiled.schema)
        if self._mode == "careful":
            self._mend = Careful(self._compiled.schema, self._compiled.is_valid).mend
        elif self._mode == "lenient":
            self._lenient = Lenient(schema)
            self._mend = self._lenient.coerce

    @cached_property
    def _redaction(self) -> Redaction:
        return Redaction(self._tool.input_schema)

    @property
    def compiled(self) -> CompiledSchema | None:
        """What arguments are checked against, if they are."""
        return self._compiled

    @property
    def mends_all(self) -> bool:
        """Whether even valid arguments may be changed, or must be seen by a shim."""
        return self._mode == "lenient" or self._tool.prepare_arguments is not None

    @property
    def binding(self) -> tuple[Bind | None, OwnCheck | None]:
        """What makes of arguments in order what the tool gets, or asks its own check about it."""
        check = self._tool.check
        if isinstance(check, ImpliedCheck) and check.schema is self._tool.input_schema:
            return check.bind, None
        return None, None if check is None else self._own_check

    def __call__(self, call: Invocation) -> ToolResult | None:
        """Prepare `call`: sets its arguments, or gives the refusal."""
        if isinstance(call.given, str):
            return self._prepared(call)
        try:
            return self._prepared(call)
        except NOT_OURS:
            raise
        except BaseException as error:  # noqa: BLE001  # of code that came with the values
            log_frames(f"the arguments of {self._tool.name!r} raised", error)
            return self._refused(call, "arguments_not_object", _UNREADABLE, issue=True)

    def _prepared(self, call: Invocation) -> ToolResult | None:
        given = call.given
        if given.__class__ is dict:
            value: Any = given
        elif isinstance(given, str):
            value = {}
            refusal = self._parsed(call, str.__str__(given))
            if isinstance(refusal, ToolResult):
                return refusal
            (value,) = refusal
        elif given is None:
            value = {}
        else:
            value = _own(given)
        if call.given_truncated:
            return self._refused(call, "arguments_truncated", _CUT_OFF)
        if self._tool.prepare_arguments is not None:
            shimmed = self._shimmed(call, value)
            if isinstance(shimmed, ToolResult):
                return shimmed
            (value,) = shimmed
        if value.__class__ is not dict:
            return self._refused(call, "arguments_not_object", _not_object(value), issue=True)
        return self._in_order(call, value)

    def _in_order(self, call: Invocation, value: dict[str, Any]) -> ToolResult | None:
        fault = out_of_bounds(value) or self._too_long(value)
        if fault is None and self._mend is not None:
            fit, mended = self._mend(value)
            if mended and fit.__class__ is dict:  # a call has arguments by name, whatever it mends
                value = fit
                call.mended += mended
                fault = out_of_bounds(value) or self._too_long(value)
        if fault is not None:
            reason, path, message = fault
            return self._refused(call, reason, message, path=path, issue=True)
        # What came as text belongs to nobody else.
        value = call.arguments = value if isinstance(call.given, str) else copied(value)
        compiled = self._compiled
        if compiled is None:
            return None
        if not compiled.is_valid(value):
            # In shadow there is no refusal, and nothing more to be asked of faulty arguments.
            return self._faulty(call, value, compiled)
        return None if self._tool.check is None else self._own_check(call, value)

    def _too_long(self, value: dict[str, Any]) -> Fault | None:
        return None if self._patterns is None else self._patterns.fault(value)

    def _parsed(self, call: Invocation, text: str) -> ToolResult | tuple[Any]:
        try:
            if self._mode == "lenient":
                return (parse_lenient(text),)
            value, call.mended = parse_arguments(
                text, repair=self._mode == "careful", exact=self.exact
            )
        except ArgumentTextFault as fault:
            return self._refused(call, fault.reason, str(fault), issue=True)
        return (value,)

    def _shimmed(self, call: Invocation, value: Any) -> ToolResult | tuple[Any]:
        shim = self._tool.prepare_arguments
        assert shim is not None  # noqa: S101  # asked before; keeps the happy path flat
        if isinstance(value, dict):
            fault = out_of_bounds(value)
            if fault is not None:
                reason, path, message = fault
                return self._refused(call, reason, message, path=path, issue=True)
            # So that a shim that works in place cannot change the caller's object.
            value = copied(value)
        try:
            return (shim(value),)
        except NOT_OURS:
            raise
        except BaseException as error:  # noqa: BLE001  # a shim raises what it likes
            secrets = self._redaction.secrets(call.given) + self._redaction.secrets(value)
            log_frames(f"prepare_arguments of {self._tool.name!r} raised", error, secrets=secrets)
            return call.refuse(
                FailureCode.PERMISSION_DENIED,
                f"the arguments could not be prepared: {described(error, secrets)}",
                reason="gate_failed",
                layer=LAYER,
            )

    def _own_check(self, call: Invocation, value: dict[str, Any]) -> ToolResult | None:
        check = self._tool.check
        assert check is not None  # noqa: S101  # asked before; keeps the happy path flat
        copy = call.own_of or copied
        call.own_of = None  # what the check binds is what the executor gets
        try:
            call.bound, said = check(copy(value))
            issues = tuple(islice(said, MAX_ISSUES)) if said else ()
            bound = call.bound
            if not issues and isinstance(bound, dict) and not value.keys() <= bound.keys():
                issues = self._ignored(call, [name for name in value if name not in bound])
        except NOT_OURS:
            raise
        except BaseException as error:  # noqa: BLE001  # a check raises what it likes
            secrets = self._redaction.secrets(value)
            log_frames(f"the check of {self._tool.name!r} raised", error, secrets=secrets)
            issues = (Issue("", described(error, secrets), "check"),)
        return self._said(call, self._sound(issues, value), value) if issues else None

    def _ignored(self, call: Invocation, names: list[str]) -> tuple[Issue, ...]:
        """Keep which arguments the tool does not get. A span has names of the schema alone."""
        call.ignored = tuple(name[:MAX_NAME] for name in names[:MAX_SAID])
        known = self._tool.input_schema.get("properties", {})
        for name in call.ignored:
            meant = nearest(name, known)
            call.note(f"{LAYER}:ignored:{meant}" if meant else f"{LAYER}:ignored")
        if not self._refuses_unknown:
            return ()
        return tuple(
            Issue(f"/{escaped(name)}", wording.unknown(name, list(known)), "additionalProperties")
            for name in call.ignored
        )

    def _sound(self, issues: tuple[Any, ...], value: dict[str, Any]) -> tuple[Issue, ...]:
        """Give issues as a model may read them: nobody has looked at what a check made."""
        secrets = self._redaction.secrets(value)
        return tuple(
            discreet(issue, secrets) if _is_issue(issue) else _NO_ISSUE for issue in issues
        )

    def _faulty(
        self, call: Invocation, value: dict[str, Any], compiled: CompiledSchema
    ) -> ToolResult | None:
        issues = () if self._lenient is None else self._lenient.faults(value)
        if not issues:  # the two engines differ: what one cannot name the other may accept
            issues = compiled.faults_of_refused(value)
        return self._said(call, issues, value) if issues else None

    def _said(
        self, call: Invocation, issues: tuple[Issue, ...], value: dict[str, Any]
    ) -> ToolResult | None:
        tool = self._tool.name
        compiled = self._compiled
        reason = "argument_invalid" if compiled is None else compiled.reason(issues)
        if self._shadow:
            self._count(LAYER, "shadow_refused")
            call.note(f"{LAYER}:would_refuse:{reason}")
            return None
        shown = [f"{dotted(i.path) or 'root'}: {i.message}" for i in issues[:MAX_SAID]]
        if len(issues) > MAX_SAID:
            shown.append(f"and {len(issues) - MAX_SAID} more")
        failure = Failure(
            code=FailureCode.INVALID_ARGUMENT,
            message=f"the arguments of {tool} do not fit: {joined(shown)}",
            reason=reason,
            layer=LAYER,
            may_have_run=None if call.started else False,
            issues=issues,
        )
        if self._mode == "lenient":
            text = self._pi_text(issues, call.given)
        else:
            redaction = self._redaction if compiled is None else compiled.redaction
            text = f"{explain(tool, issues, value, redaction)}\n{failure.guidance} Nothing was run."
            text = f"Error: {reason.replace('_', ' ')}: {text}"
        return ToolResult(
            call_id=call.call_id,
            tool=tool,
            content=(TextContent(text=text),),
            is_error=True,
            failure=failure,
        )

    def _pi_text(self, issues: tuple[Issue, ...], given: Any) -> str:
        """The text of `lenient`, which shows the arguments as they came, without secrets."""
        text = validation_text(self._tool.name, issues, given)
        shown = self._redaction.show(given)
        if HIDDEN not in shown:
            return text
        return f"{text.partition(_RECEIVED)[0]}{_RECEIVED}{shown}"

    def _refused(
        self, call: Invocation, reason: str, message: str, *, path: str = "", issue: bool = False
    ) -> ToolResult:
        return call.refuse(
            FailureCode.INVALID_ARGUMENT,
            f"the arguments of {self._tool.name} cannot be used: {message}",
            reason=reason,
            layer=LAYER,
            issues=(Issue(path, message, "parse"),) if issue else (),
        )


def _own(given: Any) -> Any:
    """Read a mapping, of any kind, as far as arguments may go."""
    if isinstance(given, dict) or not isinstance(given, Mapping):
        return dict(given) if isinstance(given, dict) else given
    return {key: given[key] for key in islice(given, MAX_VALUES + 1)}


def _is_issue(issue: Any) -> bool:
    return type(issue) is Issue and all(
        type(part) is str for part in (issue.path, issue.message, issue.keyword)
    )


_NO_ISSUE = Issue("", "the tool's own check refused them and did not say why", "check")

_UNREADABLE = "they could not be read; send a JSON object with the arguments by name"

_RECEIVED = "Received arguments:\n"

_CUT_OFF = (
    "the provider cut this call off before it was complete; send it again with complete, shorter"
    " arguments"
)


def _not_object(value: Any) -> str:
    kinds = {list: "a list", tuple: "a list", str: "a text", bool: "a boolean"}
    kind = kinds.get(type(value), "a number" if isinstance(value, (int, float)) else "no object")
    return f"expected a JSON object with the arguments by name, got {kind}"


_SAY_MORE = ("$ref", "$dynamicRef", "allOf", "anyOf", "oneOf", "if", "dependentSchemas")
_SAY_IT = ("additionalProperties", "unevaluatedProperties")


def closed(tool: Tool) -> Mapping[str, Any]:
    """Give the schema with no arguments but those it names, unless it says of others itself.

    A tool with a check of its own says by that which arguments it takes.
    """
    schema = tool.input_schema
    if tool.check is not None or not schema.keys().isdisjoint((*_SAY_MORE, *_SAY_IT)):
        return schema
    return {**schema, "additionalProperties": False}
