"""A tool as it is registered, and a call as a model sends it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

import msgspec

from seawall.contract.annotations import Annotations, Risk
from seawall.contract.failure import Issue

Executor = Callable[[dict[str, Any], Any], Any]
"""`async (arguments, context) -> ToolResult` or any value.

Text stays text; JSON-able values become text plus `structured_content`. An async generator
streams: each item is progress, the last one the result. A plain function runs in a worker thread.
"""

Check = Callable[[dict[str, Any]], tuple[Any, tuple[Issue, ...]]]
"""A validator of the tool's own, after the schema: what the executor gets, and the faults.

It may give typed values, which the executor then gets instead of the JSON arguments; spans,
approvals and digests are about the JSON arguments all the same.
"""


class ImpliedCheck(msgspec.Struct, frozen=True, eq=False):
    """A check that adds nothing to a schema: what meets that in exact types always passes.

    Exact are the types of JSON, and 3.0 is no integer. Where the schema is the tool's, such
    arguments are not given to the check, but bound for each attempt.
    """

    check: Check
    """Asked about all others."""
    schema: Mapping[str, Any]
    """What it adds nothing to; compared by identity."""
    bind: Callable[[dict[str, Any]], Any]
    """Makes of such arguments what the check gives: a new object, with the same containers in it.

    They must not be changed by it, and are copied before if they hold containers.
    """

    def __call__(self, arguments: dict[str, Any]) -> tuple[Any, tuple[Issue, ...]]:
        """Do as any check does."""
        return self.check(arguments)


class Tool(msgspec.Struct, frozen=True, eq=False):
    """Something a model can call. Compared by identity: two tools may share all their fields."""

    name: str
    """What a model calls it by: 1 to 128 characters, without blanks around them."""
    description: str
    """For the model."""
    input_schema: Mapping[str, Any]
    """JSON Schema of the arguments, an object; 2020-12 unless `$schema` says otherwise."""
    executor: Executor
    """The function that does the work."""
    title: str | None = None
    """For people."""
    output_schema: Mapping[str, Any] | None = None
    """JSON Schema of `structured_content`; results are held to it."""
    annotations: Annotations = Annotations()
    """What a call does to the world."""
    risk: Risk | None = None
    """None: derived from the hints that were given."""
    family: str | None = None
    """The policy family it belongs to."""
    category: str = "utility"
    """For lists, and for rules of policies."""
    tags: tuple[str, ...] = ()
    """For lists, and for rules of policies."""
    examples: tuple[tuple[dict[str, Any], Any], ...] = ()
    """Pairs of arguments and what the tool gives for them."""
    execution: Literal["parallel", "sequential"] = "parallel"
    """A `sequential` tool makes its whole turn run one call after the other."""
    exclusive: str | None = None
    """Calls that share this key wait for each other; `$name` stands for that argument's value."""
    replay: Literal["never", "safe"] = "never"
    """Whether a call whose outcome a crash made unknown may be run again."""
    needs: tuple[str, ...] = ()
    """Environment flags without which it cannot work at all."""
    detach: bool = False
    """Goes on when the client of a server that offers it has gone, instead of being cancelled."""
    self_gated: bool = False
    """Asks the user by itself, so the risk gate does not ask a second time."""
    duration: float | str | None = None
    """Seconds it is known to take, or the argument that holds them: widens the timeout."""
    prepare_arguments: Callable[[Any], Any] | None = None
    """Sees the decoded arguments before the check and gives what is to be checked."""
    check: Check | None = None
    """Sees the arguments after the schema, for what a schema cannot say."""
    constrained_sampling: Any = None
    """True or False become `strict` in declarations of providers that have it."""
    imported: bool = False
    """Came from somewhere else than this program's code: undeclared risk is MEDIUM, not LOW."""
    origin: str = ""
    """Which server or program it belongs to, for people: an approval holds for that one alone."""
    control_flow: tuple[type[BaseException], ...] = ()
    """What it raises to hand control back to the framework it runs in, such as an interrupt.

    It passes through as it is: no result, no failure, never tried again, charged to no breaker.
    """

    @property
    def effective_risk(self) -> Risk:
        """The declared risk, or what the hints mean; sensitive tools are MEDIUM at least."""
        undeclared = Risk.MEDIUM if self.imported else Risk.LOW
        found = self.annotations.risk(undeclared=undeclared) if self.risk is None else self.risk
        return max(found, Risk.MEDIUM) if self.annotations.sensitive else found

    @property
    def retry_safe(self) -> bool:
        """Whether the same call may be made again blindly."""
        return self.annotations.retry_safe


class ToolCall(msgspec.Struct, frozen=True):
    """A call as it arrived; never changed afterwards."""

    name: str
    """As the model wrote it."""
    arguments: str | Mapping[str, Any] | None = None
    """Text as the model wrote it, or a mapping that something has parsed before."""
    id: str | None = None
    """The model's; it comes back in the result."""
    arguments_error: str | None = None
    """Why an outer parser could not read the arguments; the call is then refused."""
    truncated: bool = False
    """The provider cut the call off (finish reason `length`): it is refused, never completed."""
