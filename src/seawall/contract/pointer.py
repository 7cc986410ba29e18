"""Steps of a JSON Pointer (RFC 6901), as they are written and as they are meant."""

from __future__ import annotations


def escaped(step: str | int) -> str:
    """Write one step: `b/c` is `b~1c`."""
    return str(step).replace("~", "~0").replace("/", "~1")


def unescaped(step: str) -> str:
    """Read one step: `b~1c` is `b/c`."""
    return step.replace("~1", "/").replace("~0", "~")


def steps_of(pointer: str) -> list[str]:
    """Read all steps: `/a/0/b~1c` is `a`, `0`, `b/c`; those of the whole, a blank text, are none.

    What stands before the first `/` is left out.
    """
    return [unescaped(step) for step in pointer.split("/")[1:]]
