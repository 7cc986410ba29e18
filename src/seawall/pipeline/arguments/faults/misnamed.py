"""Which members of an object were sent under a name that the schema does not know."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

from seawall.pipeline.arguments.faults import wording
from seawall.pipeline.arguments.likeness import nearest
from seawall.pipeline.arguments.schema.redaction import declared, declared_names

if TYPE_CHECKING:
    from collections.abc import Iterable

    from seawall.pipeline.arguments.faults.looking import Looking

_STRANGERS_AT_MOST = 8
"""Of one object; whoever sends more guesses."""


class Misnamed:
    """The members of one object that a schema lacks, where others came that it does not know.

    Unknown members are tolerated, so nothing else would say that one of them was meant.
    """

    __slots__ = ("_finder", "_known", "_meant", "_path", "_value")

    def __init__(
        self, finder: Looking, value: dict[str, Any], path: str, known: Iterable[str]
    ) -> None:
        self._finder = finder
        self._value = value
        self._path = path
        self._known = known
        self._meant: dict[str, str] | None = None

    def instead_of(self, member: str) -> str:
        """Say, after what is said of a missing member, under which name it probably came."""
        if self._meant is None:
            self._meant = self._found(member)
        came = self._meant.get(member)
        if came is None:
            return ""
        where = "here" if self._path else "of this tool"
        known, meant = wording.name(came), wording.name(member)
        return f"; {known} is not a field {where}: did you mean {meant}?"

    def _found(self, member: str) -> dict[str, str]:
        """Give the name that came for each that was meant by one, the first of several."""
        known = self._known
        strangers = [name for name in self._value if name not in known]
        finder = self._finder
        if not strangers or finder.is_secret(self._path):
            return {}
        documents, places = finder.survey.documents, finder.places_at(self._path)
        names = declared_names(places) | dict.fromkeys(known) | {member: None}
        meant: dict[str, str] = {}
        for name in islice(strangers, _STRANGERS_AT_MOST):
            if not finder.may_compare() or declared(documents, places, name, finder.matches):
                continue
            near = nearest(name, names)
            if near is not None and near not in self._value:
                meant.setdefault(near, name)
        return meant
