"""What a rule of a policy says: a whole `RunPolicy`, or single values over what was there.

Rules are compared and laid over each other in a flat form: `timeout_s`, `breaker.threshold`, and
`breaker` itself, which is None for no breaker and True before the values of one. The other parts
of a policy that are tables (`cache`, `hedge`, …) are written in the same way.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from seawall.contract.errors import ConfigurationError, Fault
from seawall.contract.policy import SECTIONS, RunPolicy
from seawall.pipeline.arguments.likeness import nearest

if TYPE_CHECKING:
    from collections.abc import Iterable

RUN_FIELDS = RunPolicy.__struct_fields__
SECTION_FIELDS: Mapping[str, tuple[str, ...]] = {
    name: kind.__struct_fields__ for name, kind in SECTIONS.items()
}
_KINDS: Mapping[str, type[msgspec.Struct]] = {
    "": RunPolicy,
    **{f"{name}.": kind for name, kind in SECTIONS.items()},
}
LIMITS = frozenset(
    prefix + field.name
    for prefix, kind in _KINDS.items()
    for field in msgspec.structs.fields(kind)
    if field.default is None
)
"""Keys for which None means that there is no limit; the others must have a value."""


class Changes:
    """Single values over what a tool would get otherwise; `preset` starts from that preset.

    `breaker` and the other tables take a mapping of single values too; None takes them away.
    """

    __slots__ = ("preset", "values")

    def __init__(self, *, preset: str | None = None, **values: Any) -> None:
        self.preset = preset
        self.values: Mapping[str, Any] = _flat(values)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Changes):
            return NotImplemented
        return (self.preset, self.values) == (other.preset, other.values)

    __hash__ = None  # type: ignore[assignment]  # it holds a mapping

    def __repr__(self) -> str:
        said = {"preset": self.preset} if self.preset else {}
        return f"Changes({', '.join(f'{k}={v!r}' for k, v in {**said, **self.values}.items())})"


class Family(msgspec.Struct, frozen=True, kw_only=True):
    """A rule for many tools: those that name this family, and those that fit what is given here.

    Within one field any entry will do; the fields that are given must all fit.
    """

    match: tuple[str, ...] = ()
    """Names, with `*`, `?` and `[…]`."""
    tags: tuple[str, ...] = ()
    """Tools with one of these tags."""
    categories: tuple[str, ...] = ()
    """Tools of one of these categories."""
    servers: tuple[str, ...] = ()
    """What stands before the `__` in the names of a server's tools."""
    annotations: Mapping[str, bool] = {}
    """Hints that were given, all of them with this value."""
    policy: RunPolicy | Changes = msgspec.field(default_factory=Changes)
    """How they are run: a whole policy, or changes of single values."""

    def __post_init__(self) -> None:
        for field in ("match", "tags", "categories", "servers"):
            given = getattr(self, field)
            plain = (given,) if isinstance(given, str) else tuple(given)
            msgspec.structs.force_setattr(self, field, plain)


def gives_timeout(policy: RunPolicy | Changes) -> bool:
    """Whether a rule says itself how long an attempt may take, not by a preset."""
    if isinstance(policy, Changes):
        return "timeout_s" in policy.values
    return policy.timeout_s is not None


def flattened(policy: RunPolicy) -> dict[str, Any]:
    """Write a whole policy in the flat form."""
    return _flat({name: getattr(policy, name) for name in RUN_FIELDS})


def unknown(key: str, known: Iterable[str]) -> str:
    """Say that a key is unknown and what it may have been meant for."""
    names = list(known)
    near = nearest(key, names)
    hint = f"did you mean {near}?" if near else f"known are {', '.join(names)}"
    return f"is unknown; {hint}"


def _flat(values: Mapping[str, Any]) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    faults = []
    for key, value in values.items():
        if key not in RUN_FIELDS:
            faults.append(Fault(unknown(key, ("preset", *RUN_FIELDS)), key=key))
        elif key not in SECTIONS:
            flat[key] = _frozen(value)
        elif value is None or value is False:
            flat[key] = None
        elif (parts := _section(key, value, faults)) is not None:
            flat[key] = True
            flat.update(parts)
    if faults:
        raise ConfigurationError(faults)
    return flat


def _section(name: str, value: Any, faults: list[Fault]) -> dict[str, Any] | None:
    if value is True:
        return {}
    if isinstance(value, SECTIONS[name]):
        value = msgspec.structs.asdict(value)
    if not isinstance(value, Mapping):
        faults.append(Fault("takes a table of values, or false for none", key=name))
        return None
    known = SECTION_FIELDS[name]
    faults.extend(
        Fault(unknown(key, known), key=f"{name}.{key}") for key in value if key not in known
    )
    return {f"{name}.{key}": _frozen(part) for key, part in value.items()}


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
