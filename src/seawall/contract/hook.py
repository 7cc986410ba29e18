"""What a hook may answer. None, from a hook, always means: go on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from seawall.contract.content import Content
from seawall.contract.result import ToolResult


class Deny(msgspec.Struct, frozen=True):
    """Do not run this call."""

    reason: str = ""
    """For the model."""
    result: ToolResult | None = None
    """Answer with this instead of a refusal: a stored answer, an example, an error of your own."""
    terminate: bool = False
    """Ask for the turn to end, as a tool's result may."""


class Rewrite(msgspec.Struct, frozen=True):
    """Run with these arguments instead; they are parsed, mended and checked like the first."""

    arguments: Mapping[str, Any]
    """All of them, not only what is new; they are prepared again."""


class Defer(msgspec.Struct, frozen=True):
    """Ask a person about this call, whatever its risk."""

    reason: str = ""
    """For the person."""


class Abort(msgspec.Struct, frozen=True):
    """Break the turn off: what has not begun is not run. What runs is waited for, and kept."""

    reason: str = ""
    """Told to whoever drives the turn, and in the results of calls that did not run."""


class Replace(msgspec.Struct, frozen=True, kw_only=True):
    """Change a result, field by field. None keeps a field; anything else replaces all of it.

    New `content` drops the structured content, unless that is given too.
    """

    content: str | Sequence[Content | Mapping[str, Any]] | None = None
    structured_content: Any = None
    """For the model, beside the content."""
    details: Any = None
    """For programs; never for the model."""
    is_error: bool | None = None
    """False turns a failure into a success, True a success into a failure."""
    terminate: bool | None = None
    """Whether the turn should end after it."""
    usage: Mapping[str, Any] | None = None
    """For programs."""
    metadata: Mapping[str, Any] | None = None
    """For programs."""


class Stop(msgspec.Struct, frozen=True):
    """End the turn in good order: what has not begun is not run, and the model is not asked again.

    From a before-hook the call itself is not run either.
    """

    reason: str = ""
    """Told to whoever drives the turn."""
    replace: Replace | None = None
    """From an after-hook: change the result as well."""


Before = Deny | Rewrite | Defer | Abort | Stop | None
"""What `before` may answer."""

After = Replace | Stop | Abort | None
"""What `after` may answer."""
