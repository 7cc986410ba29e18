"""One subschema, read."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import msgspec

from seawall.pipeline.arguments.lenient.rules import Rule
from seawall.pipeline.arguments.lenient.values import NOT_FINITE
from seawall.pipeline.arguments.patterns.patterns import Pattern

if TYPE_CHECKING:
    from collections.abc import Sequence


class Node(msgspec.Struct, eq=False):
    """One subschema. Filled while the schema is read; afterwards only its memory grows."""

    place: str = ""
    verdict: bool | None = None
    """The answer of a boolean schema."""
    shared: bool = False
    """Reached from more than one place, so results for it are worth remembering."""
    kinds: frozenset[str] | None = None
    type_names: tuple[str, ...] = ()
    type_message: str = ""
    is_typed: bool = False
    values: tuple[Rule, ...] = ()
    """`enum` and `const`."""
    literals: tuple[Any, ...] = ()
    constant: tuple[Any, ...] = ()
    """The value of `const`, if there is one."""
    strings: tuple[Rule, ...] = ()
    numbers: tuple[Rule, ...] = ()
    sizes: tuple[Rule, ...] = ()
    lengths: tuple[Rule, ...] = ()
    properties: dict[str, Node] = {}
    patterns: tuple[tuple[Pattern, Node], ...] = ()
    additional: Node | None = None
    required: tuple[str, ...] = ()
    names: Node | None = None
    dependents: tuple[tuple[str, tuple[str, ...] | Node], ...] = ()
    prefix: tuple[Node, ...] = ()
    rest: Node | None = None
    """Items after the prefix, for the check."""
    more: Node | None = None
    """Items after the prefix, for coercion: `additionalItems` is not coerced."""
    is_tuple: bool = False
    contains: Node | None = None
    contains_at_least: float = 1
    contains_at_most: float = math.inf
    all_of: tuple[Node, ...] | None = None
    any_of: tuple[Node, ...] | None = None
    one_of: tuple[Node, ...] | None = None
    negated: Node | None = None
    condition: Node | None = None
    then: Node | None = None
    otherwise: Node | None = None
    reference: Node | None = None
    reference_text: str | None = None
    is_reference: bool = False
    """Is a reference and nothing else."""
    alias: Node | None = None
    """What stands in its place, if it is only a reference."""
    dangles: bool = False
    """The reference names nothing; nothing is accepted in its place."""
    dynamic: Node | None = None
    unevaluated_properties: Node | None = None
    unevaluated_items: Node | None = None
    conversion: str = ""
    """Which rule of pass 2 applies: a scalar type, or the name of a structure."""
    has_members: bool = False
    """Declares members itself, beside a union or an intersection."""
    plain: bool = False
    """Says nothing beyond its type."""
    steps: dict[str, tuple[Any, ...]] = {}
    """What there is to check for a kind of value; found out when the first such value comes."""
    explanations: dict[str, tuple[Any, ...]] = {}
    """What there is to explain for a kind of value, likewise."""
    words: dict[str, Any] | None = {}
    """Its keywords about one value, as jsonschema-rs takes them; None if they cannot be said so."""


_BLANK = Node()
_GROUPS = {
    "any": None,
    "string": frozenset({"string"}),
    "number": frozenset({"integer", "number", *NOT_FINITE}),
    "object": frozenset({"object"}),
    "array": frozenset({"array"}),
}


def relevant(node: Node, kind: str, table: Sequence[tuple[str, str, Any]]) -> tuple[Any, ...]:
    """Choose from a table of groups of kinds, fields of a node and steps what applies to a kind."""
    return tuple(
        step
        for group, fields, step in table
        if _includes(group, kind) and any(_says(node, field) for field in fields.split())
    )


def _includes(group: str, kind: str) -> bool:
    kinds = _GROUPS[group]
    return kinds is None or kind in kinds


def _says(node: Node, field: str) -> bool:
    return bool(getattr(node, field) != getattr(_BLANK, field))
