"""Check values at single places of a schema, however much the places refer to each other.

A check of one place is compiled with all that it leads to. In a schema whose definitions lead to
one another that is nearly all of it each time, so after a few the rest is compiled at one go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any

Check = Callable[[Any], bool]
Making = Callable[[dict[str, Any]], "Check | None"]
"""Compiles a schema that may refer to the places by address; None if that cannot be."""

_FEW = 8
_ALONE_AT_MOST = 64
"""Of those compiled by themselves: each may hold nearly all of the schema."""


class Checks:
    """Checks by address, each made when it is first asked for."""

    def __init__(self, make: Making, addresses: Callable[[], Iterable[str]]) -> None:
        self._make = make
        self._find_addresses = addresses
        self._made: dict[str, Check] = {}
        self._room = _ALONE_AT_MOST

    def at(self, address: str) -> Check:
        """Give the check of a place; one that cannot be compiled accepts everything."""
        check = self._made.get(address)
        if check is None:
            check = self._of_many(address)
            if check is None:
                check = self._alone(address)
                self._room -= 1
            if self._room >= 0:
                self._made[address] = check
        return check

    def _alone(self, address: str) -> Check:
        return self._make({"$ref": address}) or anything

    def _of_many(self, address: str) -> Check | None:
        if len(self._made) < _FEW or address not in self._addresses or self._all is None:
            return None
        check = self._all
        return lambda value: check({address: value})

    @cached_property
    def _addresses(self) -> frozenset[str]:
        return frozenset(self._find_addresses())

    @cached_property
    def _all(self) -> Check | None:
        return self._make({"properties": {at: {"$ref": at} for at in self._addresses}})


def anything(_: Any) -> bool:
    """Accept."""
    return True
