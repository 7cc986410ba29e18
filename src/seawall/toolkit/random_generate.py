"""`random_generate`: numbers, choices and secrets, drawn from the chance that is handed in."""

import math
import secrets
import string
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal

from pydantic import Field

from seawall.pipeline.chance import Chance, SystemChance
from seawall.toolkit.documents import MAX_SIZE, fits
from seawall.toolkit.refusal import invalid

MAX_COUNT = 1000
_LARGEST = 2**53
"""Beyond it a JSON number is no longer every whole number."""


_SYMBOLS = "!#%+-.:=?@_"
_CLASSES = (string.ascii_lowercase, string.ascii_uppercase, string.digits, _SYMBOLS)


class RandomGenerate:
    """Draws from `chance`; with a seed from what `seeded` makes of it, the same each time.

    Passwords come from `below`, which must be unguessable: the system's source unless replaced.
    """

    def __init__(
        self,
        chance: Chance,
        seeded: Callable[[int], Chance] = SystemChance,
        below: Callable[[int], int] = secrets.randbelow,
    ) -> None:
        self._chance = chance
        self._seeded = seeded
        self._below = below

    def random_generate(
        self,
        kind: Annotated[
            Literal["integer", "float", "choice", "shuffle", "token", "password"],
            Field(description="choice draws from items, shuffle puts all of them in a new order."),
        ],
        *,
        low: Annotated[float, Field(ge=-_LARGEST, le=_LARGEST)] = 0,
        high: Annotated[
            float, Field(ge=-_LARGEST, le=_LARGEST, description="Included for integers.")
        ] = 100,
        items: Annotated[tuple[Any, ...], Field(max_length=1000)] = (),
        length: Annotated[
            int, Field(ge=8, le=128, description="Bytes of a token, characters of a password.")
        ] = 20,
        count: Annotated[int, Field(ge=1, le=MAX_COUNT)] = 1,
        seed: Annotated[
            int | None,
            Field(ge=0, le=_LARGEST, description="The same seed gives the same values."),
        ] = None,
    ) -> dict[str, Any]:
        """Draw random numbers, choices, tokens or passwords; repeatable with a seed.

        Tokens and passwords cannot be seeded: what can be repeated can be guessed.
        """
        if kind in ("token", "password"):
            if seed is not None:
                raise invalid("seed", f"a {kind} must not be predictable; leave the seed out")
            return {"values": [self._secret(kind, length) for _ in range(count)]}
        chance = self._chance if seed is None else self._seeded(seed)
        if kind in ("choice", "shuffle"):
            return {"values": _drawn(chance, kind, items, count)}
        draw = _numbers(chance, kind, low, high)
        return {"values": [draw() for _ in range(count)]}

    def _secret(self, kind: str, length: int) -> str:
        return self._chance.token(length) if kind == "token" else self._password(length)

    def _password(self, length: int) -> str:
        """Draw one character of each class, the rest from all, and mix them."""
        drawn = [self._one(characters) for characters in _CLASSES]
        drawn += [self._one("".join(_CLASSES)) for _ in range(length - len(drawn))]
        return "".join(_shuffled(drawn, self._below))

    def _one(self, characters: str) -> str:
        return characters[self._below(len(characters))]


def _numbers(chance: Chance, kind: str, low: float, high: float) -> Callable[[], float]:
    if low > high:
        raise invalid("high", f"high ({high:g}) must not be below low ({low:g})")
    if kind == "float":
        return lambda: chance.uniform(low, high)
    least, most = math.ceil(low), math.floor(high)
    if least > most:
        raise invalid("high", f"there is no whole number from {low:g} to {high:g}")
    return lambda: chance.integer(least, most)


def _drawn(chance: Chance, kind: str, items: Sequence[Any], count: int) -> list[Any]:
    if not items:
        raise invalid("items", f"{kind} needs items", reason="argument_missing")
    if kind == "shuffle":
        if count != 1:
            raise invalid("count", "shuffle gives one order of all items: count must be 1")
        return _shuffled(items, lambda bound: chance.integer(0, bound - 1))
    drawn = [items[chance.integer(0, len(items) - 1)] for _ in range(count)]
    if not fits(drawn):
        raise invalid("count", f"the result is larger than {MAX_SIZE} characters of JSON")
    return drawn


def _shuffled(items: Sequence[Any], below: Callable[[int], int]) -> list[Any]:
    mixed = list(items)
    for last in range(len(mixed) - 1, 0, -1):
        other = below(last + 1)
        mixed[last], mixed[other] = mixed[other], mixed[last]
    return mixed
