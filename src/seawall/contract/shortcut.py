"""A shortcut: steps under a name of their own, with parameters. What stores keep of it."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

ParamType = Literal["string", "integer", "number", "boolean", "array", "object"]


class Param(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A parameter of a shortcut; it becomes an argument of the shortcut's tool."""

    name: str
    """As the steps write it, in braces."""
    type: ParamType = "string"
    """Of JSON Schema."""
    required: bool = False
    """Whether a call must give it; else `default` is taken."""
    description: str = ""
    """For the model."""
    default: Any = msgspec.UNSET
    """What stands for it when the caller gives nothing; unset: it is left out."""


class ShortcutStep(msgspec.Struct, frozen=True, kw_only=True):
    """One call: `arguments` is the text of a template, with `{name}` and `{0}` in it."""

    tool: str
    """The name of a tool, which may be another shortcut."""
    arguments: str = "{}"


class Shortcut(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A definition as it was accepted; its `id` is the name of the tool that it becomes."""

    id: str
    name: str
    """For people."""
    description: str = ""
    """For the model."""
    precondition: str = ""
    """For the reader alone: it is never checked."""
    params: tuple[Param, ...] = ()
    """What a call gives."""
    steps: tuple[ShortcutStep, ...]
    """Run in this order, until one fails."""
