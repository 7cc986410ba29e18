"""Results as they are kept: what a model would see of them, sealed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from seawall.contract.content import Content
from seawall.contract.errors import SealBroken
from seawall.contract.failure import Failure
from seawall.contract.result import ToolResult

if TYPE_CHECKING:
    from seawall.stores.seal import Seal

MAX_BYTES = 4 * 1024 * 1024
"""A larger result is not kept."""


class _Kept(msgspec.Struct, frozen=True, omit_defaults=True):
    tool: str
    content: tuple[Content, ...] = ()
    is_error: bool = False
    failure: Failure | None = None
    structured_content: Any = None
    terminate: bool = False


def sealed_result(seal: Seal, result: ToolResult, place: str) -> bytes | None:
    """Seal a result; None if it is too large, or holds what JSON cannot say."""
    kept = _Kept(
        result.tool,
        result.content,
        result.is_error,
        result.failure,
        result.structured_content,
        result.terminate is True,
    )
    try:
        plain = msgspec.json.encode(kept)
    except (TypeError, ValueError, RecursionError):
        return None
    return None if len(plain) > MAX_BYTES else seal.close(plain, place)


def opened_result(seal: Seal, sealed: bytes, place: str) -> ToolResult:
    """Give back a result; raises `SealBroken` if it cannot be opened."""
    try:
        kept = msgspec.json.decode(seal.open(sealed, place), type=_Kept)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise SealBroken(
            "what is kept is in the form of another version of Seawall; use that to read it"
        ) from error
    return ToolResult(
        tool=kept.tool,
        content=kept.content,
        is_error=kept.is_error,
        failure=kept.failure,
        structured_content=kept.structured_content,
        terminate=kept.terminate,
    )
