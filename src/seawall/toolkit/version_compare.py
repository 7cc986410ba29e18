"""`version_compare`: which of two versions is newer, by Semantic Versioning and what people write.

A version is read into a key, and keys are compared, so the order is total and transitive.
"""

import re
from typing import Annotated, Any, NamedTuple

from pydantic import Field

from seawall.contract.failure import ToolFailed
from seawall.toolkit.refusal import invalid, shown

MAX_LENGTH = 256

_Text = Annotated[str, Field(max_length=MAX_LENGTH, description="Such as 1.10.0 or v2.0.0-rc.1.")]


def version_compare(a: _Text, b: _Text) -> dict[str, Any]:
    """Say whether version a is newer than, older than or equal to version b.

    Numbers compare as numbers of any size, missing parts are zero, a leading v and build metadata
    after + do not count, a pre-release (1.0.0-rc.1, 1.0rc1) is older than its release, and words
    such as post or ubuntu glued to a number are newer than it. The reading of both is given back.
    """
    first, second = parse(a, "a"), parse(b, "b")
    left, right = first.key(), second.key()
    verdict = "equal" if left == right else "newer" if left > right else "older"
    return {"a_is": verdict, "a": first.shown(), "b": second.shown()}


class Version(NamedTuple):
    """A version as it was read."""

    core: tuple[int, ...]
    ladder: tuple[str, ...]
    """Identifiers of the pre-release, or of what was built after the release."""
    after: bool
    """Whether the ladder leads up from the release instead of up to it."""

    def key(self) -> tuple[Any, ...]:
        """Give what versions are compared by."""
        core = self.core
        while core and core[-1] == 0:
            core = core[:-1]
        standing = 0 if not self.ladder else 1 if self.after else -1
        return core, standing, tuple(_rung(word) for word in self.ladder)

    def shown(self) -> dict[str, Any]:
        """Give what the caller may check: at least three numbers, and the ladder."""
        zeros = (0,) * (3 - len(self.core))
        found = {"core": list(self.core + zeros), "pre": list(self.ladder)}
        return {**found, "pre": [], "post": list(self.ladder)} if self.after else found


_ALLOWED = re.compile(r"[0-9A-Za-z._/~-]+\Z")
_GLUED = re.compile(r"([0-9]+)(.*)\Z")
_RUNS = re.compile(r"[0-9]+|[A-Za-z]+")
_LATER = frozenset({"post", "patch", "pl", "sp", "ubuntu", "deb", "el", "fc", "build"})


def parse(text: str, field: str) -> Version:
    """Read one side; raises the refusal that names `field`."""
    bare = text.strip()
    if not bare:
        raise invalid(field, f"version {field} is empty")
    if len(text) > MAX_LENGTH:
        raise invalid(field, f"version {field} is longer than {MAX_LENGTH} characters")
    bare = (bare[1:] if bare[0] in "vV" else bare).partition("+")[0]
    if not _ALLOWED.match(bare):
        raise _unreadable(field, text)
    head, dash, tail = bare.partition("-")
    core, glued = _core(head)
    if not core:
        raise _unreadable(field, text)
    named = tail.split(".") if dash else []
    if not all(named):
        raise invalid(field, f"version {field} has an empty pre-release part: {shown(text)}")
    after = bool(glued) and glued[0].lower() in _LATER
    return Version(core, (*glued, *named), after)


def _core(head: str) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Split the part before the dash into its numbers and whatever follows the last of them."""
    numbers: list[int] = []
    parts = [part for part in re.split(r"[./]", head) if part]
    for position, part in enumerate(parts):
        found = _GLUED.match(part)
        if found:
            numbers.append(int(found.group(1)))
        rest = found.group(2) if found else part
        if rest:
            return tuple(numbers), tuple(_RUNS.findall(".".join([rest, *parts[position + 1 :]])))
    return tuple(numbers), ()


def _rung(word: str) -> tuple[int, int, str]:
    # Numbers come before words, as Semantic Versioning has it.
    return (0, int(word), "") if word.isdecimal() else (1, 0, word)


def _unreadable(field: str, text: str) -> ToolFailed:
    return invalid(
        field,
        f"{shown(text)} holds no version; write numbers with dots, such as 1.4.0 or 2.0.0-rc.1",
    )
