"""A shortcut: steps under a name of their own, with parameters. What stores keep of it."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

ParamType = Literal["string", "integer", "number", "boolean", "array", "object"]


class Param(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A parameter of a shortcut; it becomes an argument of the shortcut's tool."""

    name: str
    type: ParamType = "string"
    required: bool = False
    description: str = ""
    default: Any = msgspec.UNSET
    """What stands for it when the caller gives nothing; unset: it is left out."""


class ShortcutStep(msgspec.Struct, frozen=True, kw_only=True):
    """One call: `arguments` is the text of a template, with `{name}` and `{0}` in it."""

    tool: str
    arguments: str = "{}"


class Shortcut(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A definition as it was accepted; its `id` is the name of the tool that it becomes."""

    id: str
    name: str
    description: str = ""
    precondition: str = ""
    """For the reader alone: it is never checked."""
    params: tuple[Param, ...] = ()
    steps: tuple[ShortcutStep, ...]
