"""The one place that catches what foreign code raises.

Executors, gates, rules, hooks, shims and listeners are written by others. What they raise becomes
a value here; the model gets a safe line, the log gets the type and the frames, nobody gets the raw
text of an exception.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import traceback
from collections import deque
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote, quote_plus

from seawall.contract.sentences import joined

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

T = TypeVar("T")

log = logging.getLogger("seawall")

MAX_MESSAGE = 500
MAX_NAME = 100
"""Characters of the name of a type."""

NOT_OURS = (KeyboardInterrupt,)
"""What is no answer of foreign code, whoever raises it; all else becomes a value.

`SystemExit` too: a tool must not end the program around it. And `GeneratorExit`: a coroutine is
closed where it waits, so what a plain call raises is that call's own.
"""

NOT_OURS_AWAITED = (KeyboardInterrupt, GeneratorExit)
"""The same of foreign code that is awaited: it may be closed while it waits."""

_KEY = (
    r"(?:key|token|secret|passw(?:or)?d|passphrase|pwd|signature|sig|credentials?|session[_-]?id)"
)
_PHRASE = r"(?:passw(?:or)?d|passphrase|passcode|pwd)"
_COUNTABLE = (
    r"(?:tokens|secrets|(?:api|access|account|auth|private|secret|signing)[_-]?keys"
    rf"|{_KEY}\d{{1,3}})"
)
_SEP = r"""(?:\[\w{0,20}\])?\\?["'\]]?\s*(?:=>?|:=?|->|%3[ad])\s*"""
_COUNT = r"(?:\d[\d.,:_/%-]{0,20}+[kmb]?(?![\w+=]))"
"""A number, which is usage and not a secret where the name may be of something that is counted."""
_QUOTED = (
    r"""(?:[bru]{0,2}\\*"(?>[^"\\]|\\(?s:.))*+(?:"|\\?\Z)"""
    r"""|[bru]{0,2}\\*'(?>[^'\\]|\\(?s:.))*+(?:'|\\?\Z))"""
)
_NESTED = (
    r"""(?:[\w.]{0,40}[\[({]{1,3}(?=\w|\s*[bru]{0,2}\\*["'])"""
    rf"""(?>{_QUOTED}|[^\])}}"'])*+[\])}}]{{0,3}})"""
)
_PLAIN = r"""(?:(?:bearer\s+|basic\s+)?[^\s&"',;)}\]\\]+)"""
_VALUE = rf"(?:{_QUOTED}|{_NESTED}|{_PLAIN})"
"""Quoted forms first: of `b'…'` and `Name('…')` the plain one would take the beginning only."""
_NO_VALUE = (
    r"(?:is|was|are|were|or|and|must|not|has|have|had|to|for|in|with|without|cannot|can|needs?"
    r"|requires?|required|option|flag|argument|as|from|given|missing|if|when|the|should|expects?)\b"
)
_RUN = r"(?<![\w+/=-])(?=[a-z+/=_-]*[0-9])[\w+=-][\w+/=-]{31,}+"
_IN_CODE = r"[\w.~/+%-]"
_CODE = (
    rf"(?!\d*+[a-z]*+(?>[-_.](?:[a-z]++|\d{{1,4}}))*+(?!{_IN_CODE}))"
    rf"(?={_IN_CODE}{{0,120}}\d)(?={_IN_CODE}{{0,120}}[a-z]) {_IN_CODE}{{16,}}+"
)
"""What an OAuth redirect brings back: long, of letters and digits, and no words with a number."""
_SECRETS = re.compile(
    rf"""(?ix)
    (?=[\w-]) (?:
      (?<![\w-]) (?:
        (?P<line>(?:[\w-]{{0,40}}authorization|(?:set-)?cookie2?)
          \\?["']?\s*(?:=>?|:|%3d)\s*) [^\r\n]+
        | (?P<keyed>[\w-]*(?:
            (?:{_KEY}|{_PHRASE}s?\d{{0,3}})\b{_SEP}
            | {_COUNTABLE}\b{_SEP} (?!{_COUNT})
            | (?:auth|jwt|(?<![a-z])pass)(?:\\?["']\s*(?:=>?|:)|\s*=>?|%3d)\s* (?!{_COUNT})
            | (?:auth|jwt|session|bearer)\b{_SEP} (?!{_COUNT})
                (?=[^\s&,;)}}\]]{{0,80}}\d)
          )) {_VALUE}
        | (?P<option>--[\w-]*(?:{_KEY}|{_PHRASE})\s+) (?!--|{_NO_VALUE}) {_VALUE}
        | (?P<near>[\w-]*{_KEY}\b
            (?:[^\w\r\n]{{1,4}}\w{{1,12}}){{0,3}}?[^\w\r\n]{{1,4}}) {_RUN}
      )
      | \b (?:
        (?P<scheme>(?:bearer|basic)\s+) [\w+/=.~-]{{6,}}
        | (?:sk|pk|rk|gh[oprsu]|github_pat|glpat|gldt|xapp|hf|npm|pypi|whsec|shpat|dop_v1)
            [-_][\w-]{{8,}}
        | xox[a-z][-_.][\w.-]{{8,}}
        | AKIA[0-9A-Z]{{12,}} | (?-i:ASIA[0-9A-Z]{{12,}}) | AIza[\w-]{{10,}}
        | SG\.[\w-]{{16,}}\.[\w-]{{16,}} | ya29\.[\w-]{{10,}}
        | eyJ[\w-]{{8,}}\.[\w.-]+ | e[wy][\w-]{{15,}}\.[\w-]{{15,}}\.[\w-]{{15,}}
      )
      | -----BEGIN[ ][A-Z ]*PRIVATE[ ]KEY-----(?s:.*?)(?:-----END[ ][A-Z ]*KEY-----|\Z)
    )
    | {_RUN} (?= (?:[^\w\r\n]{{1,4}}\w{{1,12}}){{0,4}}?[^\w\r\n]{{1,4}}[\w-]{{0,40}}{_KEY}\b )
    | (?=:\\?/) (?:
      (?P<user>:(?://|\\/\\/)[^\s/:@]*:) (?!\d{{1,5}}[/"']) (?:[^\s/]|/(?![/\\]))+ (?=@)
      | (?P<torn>:(?://|\\/\\/)[^\s/:@\[]*:) (?!\d{{1,5}}(?:[,;?\#]|\W*\Z)) [^\s/]+ \Z
      | (?P<hook>://hooks\.slack\.com/services/) [\w/]+
      | (?P<host>:(?://|\\/\\/)) (?!git@)[^\s/:@]+ (?=@)
    )
    | (?P<code>[?&]code=) {_CODE}
    | (?=[\[(]) (?:
      (?P<pair>[\[(]\s*b?\\?["'](?:[\w-]{{0,40}}authorization|(?:set-)?cookie2?)
        \\?["']\s*,\s*) {_QUOTED} (?=\s*[\])]|\Z)
      | (?P<tuple>\(\s*b?\\?["'][\w-]{{0,40}}(?:{_KEY}|{_PHRASE})
        \\?["']\s*,\s*) {_QUOTED} (?=\s*\)|\Z)
    )
    """
)

_NAMES = (
    *("key", "token", "secret", "password", "passwd", "passphrase", "passcode", "pass", "pwd"),
    *("signature", "sig", "credential", "session", "auth", "authorization", "cookie", "jwt"),
    "bearer",
)
_MAKERS = (
    *("sk", "pk", "rk", "gho", "ghp", "ghr", "ghs", "ghu", "github_pat", "glpat", "gldt", "xapp"),
    *("hf", "npm", "pypi", "whsec", "shpat", "dop_v1"),
)
_GIVEN = r"""(?:[_-]?id)?s?\d{0,3}(?:\[\w{0,20}\])?\\?["'\]]?\s*(?:=|:|->|%3[ad]|,)"""
_USER = r"(?:[^\s/:@]*[:@]|hooks\.)"
_SIGNS = {
    **dict.fromkeys(_NAMES, _GIVEN),
    **{maker: rf"(?<=\b{maker})[-_]" for maker in _MAKERS},
    **dict.fromkeys(("://", ":\\/\\/"), _USER),
    "akia": r"\w{12}",
    "asia": r"\w{12}",
    "sg.": r"[\w-]{16}",
    **dict.fromkeys(("ey", "ew"), r"(?<=\be[wy])[\w-]{9}"),
    "bearer": rf"(?:\s|{_GIVEN})",
    "basic": r"\s",
    "--": r"[\w-]",
    **dict.fromkeys(("?code=", "&code="), rf"{_IN_CODE}{{16}}"),
    **dict.fromkeys(("xox", "aiza", "ya29.", "-----begin"), ""),
}
"""What is in everything that the pattern finds, with what has to follow it."""


def _any_of(words: Mapping[str, str]) -> str:
    """Write a pattern for words, each with what follows; it branches at letters, for speed."""
    rests: dict[str, dict[str, str]] = {}
    for word, then in words.items():
        rests.setdefault(word[:1], {})[word[1:]] = then
    branches = [re.escape(one) + _any_of(rest) if one else rest[""] for one, rest in rests.items()]
    return f"(?:{'|'.join(branches)})"


_sign_in = re.compile(_any_of(_SIGNS)).search
_name_in = re.compile(_any_of(dict.fromkeys(_NAMES, ""))).search
_LONG = 32
_long_in = re.compile(rf"[\w+/=-]{{{_LONG}}}").search
"""What may be a secret for a name that is near."""

_WORDLIKE = 4
"""Characters below which a secret is only looked for as a word of its own."""
_TORN = 200
"""Characters of a word at a cut that is left out; what is longer is no word."""
_TELLING = 12
"""Characters of a secret's beginning that give it away: texts are cut, by `int()` for one."""

# As Python keeps them: what a class puts over these names is foreign code.
_name = type.__dict__["__name__"].__get__
_exceptions = BaseExceptionGroup.__dict__["exceptions"].__get__
_cause = BaseException.__dict__["__cause__"].__get__
_traceback = BaseException.__dict__["__traceback__"].__get__


def masked(text: str) -> str:
    """Replace what looks like a secret: keyed values, tokens of known shapes, URL passwords."""
    if text.isascii():
        lowered = text.lower()
        near = len(lowered) > _LONG and _long_in(lowered) and _name_in(lowered)
        if not (near or _sign_in(lowered)):
            return text  # most are so, and the pattern takes its time to see that

    def mask(found: re.Match[str]) -> str:
        return f"{found.group(found.lastgroup) if found.lastgroup else ''}…"

    return _SECRETS.sub(mask, text)


def without(text: str, secrets: Iterable[str]) -> str:
    """Replace what is known to be secret, also as `repr`, JSON or an address would write it.

    Of a long secret its beginning is replaced too, as a text that was cut may hold no more.
    """
    if not secrets:
        return text
    forms = {form for secret in secrets for form in _forms(secret)}
    for form in sorted(forms, key=len, reverse=True):
        text = _cleared(text, form)
    return text


def _forms(secret: str) -> Iterable[str]:
    whole = secret.encode("utf-8", "replace").decode()
    for part in (secret, whole, *whole.splitlines()):
        yield from (part, part.strip(), repr(part)[1:-1], json.dumps(part)[1:-1])
        yield json.dumps(part, ensure_ascii=False)[1:-1]
    yield from (quote(whole), quote(whole, safe=""), quote_plus(whole))


def _cleared(text: str, secret: str) -> str:
    if len(secret) < _WORDLIKE:
        return re.sub(rf"(?<!\w){re.escape(secret)}(?!\w)", "…", text) if secret else text
    start = secret[:_TELLING]
    kept = []
    at, found = 0, text.find(start)
    while found >= 0:
        kept += [text[at:found], "…"]
        at = found + _agreeing(text[found : found + len(secret)], secret)
        found = text.find(start, at)
    return "".join([*kept, text[at:]])


def _agreeing(text: str, other: str) -> int:
    """How many characters at the beginning are the same."""
    pairs = enumerate(zip(text, other, strict=False))
    return next((at for at, (one, two) in pairs if one != two), min(len(text), len(other)))


def attempted(work: Callable[[], T], otherwise: T) -> T:
    """Look at what belongs to foreign code; what it raises means `otherwise`."""
    try:
        return work()
    except NOT_OURS:
        raise
    except BaseException:  # noqa: BLE001  # properties and texts of others raise what they like
        return otherwise


def type_name(thing: Any) -> str:
    """The name of a value's type, whatever its class says of itself."""
    name: str = _name(type(thing))
    return name if len(name) <= MAX_NAME else name[: MAX_NAME - 1] + "…"


def first_line(
    error: BaseException, *, limit: int = MAX_MESSAGE, secrets: Iterable[str] = ()
) -> str:
    """The first line of what an exception says: masked, printable, `limit` characters at most."""
    # Cut before masking, as a message may be megabytes.
    said = _said(error, 4 * limit)
    if len(said) <= limit and said.isascii() and said.isprintable():  # one line, as most are
        line = said.strip()
        return masked(without(line, secrets) if secrets else line)
    lines = said.strip().splitlines()
    line = without(lines[0], secrets) if lines else ""
    if len(said) == 4 * limit and len(lines) == 1:
        line = _without_torn(line)
    line = masked(line)
    if not line.isascii():
        line = line.encode("utf-8", "replace").decode("utf-8")
    return line if len(line) <= limit else line[: limit - 1] + "…"


def _said(error: BaseException, most: int) -> str:
    """As `attempted` would ask for it: each failed attempt comes by here."""
    try:
        return str.__getitem__(str(error), slice(most))
    except NOT_OURS:
        raise
    except BaseException:  # noqa: BLE001  # as above
        return ""


def _without_torn(text: str) -> str:
    """Leave out the word that a cut went through: half a secret is not known for one."""
    rest, _, word = text.rpartition(" ")
    if len(word) <= _TORN:
        return f"{rest} …".lstrip()
    address = text.rfind("://", len(rest))
    return text if address < 0 else f"{text[:address]}://…"


def leaves(error: BaseException, *, depth: int = 8) -> list[BaseException]:
    """The exceptions inside nested groups, or the exception itself; 16 at most."""
    if not issubclass(type(error), BaseExceptionGroup) or depth == 0:
        return [error]
    found: list[BaseException] = []
    for inner in _exceptions(error):
        found.extend(leaves(inner, depth=depth - 1))
        if len(found) >= 16:
            break
    return found[:16]


def described(error: BaseException, secrets: Iterable[str] = ()) -> str:
    """Say an exception safely: type and first line, of the leaves if it is a group."""
    secrets = tuple(secrets)
    said = joined(_with_type(leaf, type_name(leaf), secrets) for leaf in leaves(error)[:4])
    return said if len(said) <= 2 * MAX_MESSAGE else said[: 2 * MAX_MESSAGE - 1] + "…"


def _with_type(error: BaseException, kind: str, secrets: Iterable[str]) -> str:
    line = first_line(error, secrets=secrets)
    return f"{kind}: {line}" if line else kind


def type_names(error: BaseException) -> tuple[str, ...]:
    """Type names, outermost first: the error, the leaves of groups, and what caused it."""
    names, cause = [type_name(error)], _cause(error)
    if issubclass(type(error), BaseExceptionGroup):
        names.extend(map(type_name, leaves(error)))
    while cause is not None and len(names) < 16:
        names.append(type_name(cause))
        cause = _cause(cause)
    return tuple(dict.fromkeys(names))


def account_of(error: BaseException, secrets: Iterable[str]) -> tuple[str, tuple[str, ...]]:
    """Give what `described` and `type_names` do, in one go for an exception that stands alone."""
    if _cause(error) is not None or issubclass(type(error), BaseExceptionGroup):
        return described(error, secrets), type_names(error)
    kind = type_name(error)
    return _with_type(error, kind, secrets), (kind,)


def log_frames(
    what: str,
    error: BaseException,
    *,
    level: int = logging.WARNING,
    secrets: Iterable[str] = (),
) -> None:
    """Log where an exception came from: types and frames; what it says, masked, at DEBUG only."""
    if not log.isEnabledFor(level):
        return
    frames = deque(traceback.walk_tb(_traceback(error)), 12)
    lines = "".join(
        f"\n  {frame.f_code.co_filename}:{line} in {frame.f_code.co_name}" for frame, line in frames
    )
    log.log(level, "%s: %s%s", what, ", ".join(type_names(error)), lines)
    if log.isEnabledFor(logging.DEBUG):
        log.debug("%s and said: %s", what, described(error, secrets))


def tell(listeners: Iterable[Callable[[T], Any]], news: T) -> None:
    """Tell each listener one thing; one that raises is logged and harms nobody."""
    for listener in listeners:
        try:
            listener(news)
        except NOT_OURS:
            raise
        except BaseException as error:  # noqa: BLE001  # a listener raises what it likes
            log_frames("a listener failed", error)


def told(listeners: Iterable[Callable[..., Any]], *news: Any) -> int:
    """Tell each listener; one that raises is logged and harms nobody. How many raised."""
    failed = 0
    for listener in listeners:
        try:
            listener(*news)
        except NOT_OURS:
            raise
        except BaseException as error:  # noqa: BLE001  # a listener raises what it likes
            failed += 1
            log_frames("a listener failed", error)
    return failed


def guarded(what: str, work: Callable[[], T], otherwise: Callable[[BaseException], T]) -> T:
    """Run foreign code; what it raises is logged and becomes `otherwise(error)`."""
    try:
        return work()
    except NOT_OURS:
        raise
    except BaseException as error:  # noqa: BLE001  # foreign code raises what it likes
        log_frames(what, error)
        return otherwise(error)


def begun(work: Callable[[], T]) -> T:
    """Call what may give a coroutine; what closes nothing here is said to be an error."""
    try:
        return work()
    except GeneratorExit as own:
        raise RuntimeError("it raised GeneratorExit") from own


def is_cancelled() -> bool:
    """Whether this task is being cancelled, as opposed to something that it waited for."""
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0


async def guarded_async(
    what: str,
    work: Callable[[], Any],
    otherwise: Callable[[BaseException], T],
    passing: tuple[type[BaseException], ...] = (),
) -> T | Any:
    """Run foreign code that may be a coroutine; what it raises becomes `otherwise(error)`.

    So does a `CancelledError` of its own; the cancel of the task that waits here passes through,
    even if the coroutine swallowed it. Exceptions of the types in `passing` are raised as they are.
    """
    cancels = _cancels()
    try:
        value = begun(work)
        found = await value if hasattr(value, "__await__") else value
    except NOT_OURS_AWAITED:
        raise
    except asyncio.CancelledError as error:
        if is_cancelled():
            raise
        log_frames(what, error)
        return otherwise(error)
    except passing:
        raise
    except BaseException as error:  # noqa: BLE001  # foreign code raises what it likes
        log_frames(what, error)
        found = otherwise(error)
    if _cancels() > cancels:
        raise asyncio.CancelledError
    return found


def _cancels() -> int:
    task = asyncio.current_task()
    return 0 if task is None else task.cancelling()
