"""Whether a call that was broken off had begun: said by what broke it off, to who started the call.

A call that never came to its tool had no effect, so it may be asked for again.
"""

from __future__ import annotations

_BEGAN = "_seawall_began"


def note_begun(error: BaseException, *, begun: bool) -> None:
    """Note it on its way out; what one of the calls inside has begun, those around it have too."""
    said = vars(error)  # also of one that lets nobody set its attributes
    said[_BEGAN] = begun or said.get(_BEGAN, False)


def had_begun(error: BaseException) -> bool:
    """Whether the call may have had an effect: also where nothing was noted."""
    return bool(vars(error).get(_BEGAN, True))
