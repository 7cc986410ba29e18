"""How a bundled tool says no: one sentence that names the argument and what would be right."""

from seawall.contract.failure import Failure, FailureCode, Issue, ToolFailed


def invalid(field: str, message: str, *, reason: str = "", guidance: str = "") -> ToolFailed:
    """Build the refusal of one argument; `field` is its name, or a path below it with slashes."""
    return ToolFailed(
        Failure(
            code=FailureCode.INVALID_ARGUMENT,
            message=message,
            reason=reason,
            guidance=guidance,
            layer="executor",
            issues=(Issue(f"/{field}", message),),
        )
    )


def failed(code: FailureCode, message: str, **fields: object) -> ToolFailed:
    """Build any other failure; `fields` are those of `Failure`."""
    return ToolFailed(Failure(code=code, message=message, layer="executor", **fields))  # type: ignore[arg-type]  # checked by Failure's callers: a keyword table would repeat its fields


def shown(text: str, limit: int = 40) -> str:
    """Quote a piece of what was sent, short enough for a message."""
    return repr(text) if len(text) <= limit else f"{text[: limit - 1]!r}…"
