"""The one place that catches what foreign code raises.

Executors, gates, rules, hooks, shims and listeners are written by others. What they raise becomes
a value here; the model gets a safe line, the log gets the type and the frames, nobody gets the raw
text of an exception.
"""

from __future__ import annotations

import logging
import re
import traceback
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

T = TypeVar("T")

log = logging.getLogger("seawall")

MAX_MESSAGE = 500

Foreign = (Exception, SystemExit)
"""What is turned into a value. `SystemExit` too: a tool must not end the program around it."""

NOT_OURS = (KeyboardInterrupt, GeneratorExit)
"""What is no answer of a tool, whoever raises it."""

_SECRETS = re.compile(
    r"""(?ix)
    (?P<keyed>\b[\w-]*(?:key|token|secret|passw(?:or)?d|pwd|authorization|signature|credential|sig)\b
        ["']?\s*(?:=|:|%3d)\s*["']?) (?:bearer\s+|basic\s+)? [^\s&"',;)}\]]+
    | (?P<scheme>\b(?:bearer|basic)\s+) [\w+/=.~-]{6,}
    | (?P<user>://[^\s/:@]*:) [^\s/@]+ (?=@)
    | \b(?:sk|pk|rk|ghp|gho|ghs|github_pat|glpat|xox[abprs]|hf|npm|pypi)[-_][\w-]{8,}
    | \bAKIA[0-9A-Z]{12,} | \bAIza[\w-]{10,} | \beyJ[\w-]{8,}\.[\w.-]+
    | -----BEGIN[ ][A-Z ]*PRIVATE[ ]KEY-----.*
    """
)


def masked(text: str) -> str:
    """Replace what looks like a secret: keyed values, tokens of known shapes, URL passwords."""

    def mask(found: re.Match[str]) -> str:
        kept = found.group("keyed") or found.group("scheme") or found.group("user") or ""
        return f"{kept}…"

    return _SECRETS.sub(mask, text)


def first_line(error: BaseException, *, limit: int = MAX_MESSAGE) -> str:
    """The first line of what an exception says: masked, printable, `limit` characters at most."""
    try:
        said = str(error)
    except Exception:  # noqa: BLE001  # an exception whose text raises has no text
        return ""
    # Cut before masking: a message may be megabytes; a secret at the cut is cut too.
    head = said[: 4 * limit].strip().splitlines()
    line = masked(head[0] if head else "")
    line = line.encode("utf-8", "replace").decode("utf-8")
    return line if len(line) <= limit else line[: limit - 1] + "…"


def leaves(error: BaseException, *, depth: int = 8) -> list[BaseException]:
    """The exceptions inside nested groups, or the exception itself; 16 at most."""
    if not isinstance(error, BaseExceptionGroup) or depth == 0:
        return [error]
    found: list[BaseException] = []
    for inner in error.exceptions:
        found.extend(leaves(inner, depth=depth - 1))
        if len(found) >= 16:
            break
    return found[:16]


def described(error: BaseException) -> str:
    """Say an exception safely: type and first line, of the leaves if it is a group."""
    parts = []
    for leaf in leaves(error)[:4]:
        line = first_line(leaf)
        parts.append(f"{type(leaf).__name__}: {line}" if line else type(leaf).__name__)
    said = "; ".join(parts)
    return said if len(said) <= 2 * MAX_MESSAGE else said[: 2 * MAX_MESSAGE - 1] + "…"


def type_names(error: BaseException) -> tuple[str, ...]:
    """Type names, outermost first: the error, the leaves of groups, and what caused it."""
    names = [type(error).__name__]
    if isinstance(error, BaseExceptionGroup):
        names.extend(type(leaf).__name__ for leaf in leaves(error))
    cause = error.__cause__
    while cause is not None and len(names) < 16:
        names.append(type(cause).__name__)
        cause = cause.__cause__
    return tuple(dict.fromkeys(names))


def log_frames(what: str, error: BaseException, *, level: int = logging.WARNING) -> None:
    """Log where an exception came from: types and frames, the message only masked."""
    if not log.isEnabledFor(level):
        return
    frames = traceback.extract_tb(error.__traceback__)[-12:]
    lines = "".join(f"\n  {f.filename}:{f.lineno} in {f.name}" for f in frames)
    log.log(level, "%s: %s%s", what, described(error), lines)


def tell(listeners: Iterable[Callable[[T], Any]], news: T) -> None:
    """Tell each listener one thing; one that raises is logged and harms nobody."""
    for listener in listeners:
        try:
            listener(news)
        except Foreign as error:  # free while nothing is raised
            log_frames("a listener failed", error)


def told(listeners: Iterable[Callable[..., Any]], *news: Any) -> int:
    """Tell each listener; one that raises is logged and harms nobody. How many raised."""
    failed = 0
    for listener in listeners:
        try:
            listener(*news)
        except Foreign as error:
            failed += 1
            log_frames("a listener failed", error)
    return failed


def guarded(what: str, work: Callable[[], T], otherwise: Callable[[BaseException], T]) -> T:
    """Run foreign code; what it raises is logged and becomes `otherwise(error)`."""
    try:
        return work()
    except Foreign as error:
        log_frames(what, error)
        return otherwise(error)


async def guarded_async(
    what: str, work: Callable[[], Any], otherwise: Callable[[BaseException], T]
) -> T | Any:
    """Run foreign code that may be a coroutine; what it raises becomes `otherwise(error)`."""
    try:
        value = work()
        return await value if hasattr(value, "__await__") else value
    except Foreign as error:
        log_frames(what, error)
        return otherwise(error)
