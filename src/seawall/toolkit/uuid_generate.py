"""`uuid_generate`: identifiers of RFC 9562."""

import uuid
from collections.abc import Callable
from typing import Annotated, Any, Literal

from pydantic import Field

from seawall.pipeline.chance import Chance
from seawall.toolkit.refusal import invalid, shown

_NAMESPACES = {
    "dns": uuid.NAMESPACE_DNS,
    "url": uuid.NAMESPACE_URL,
    "oid": uuid.NAMESPACE_OID,
    "x500": uuid.NAMESPACE_X500,
}
_COUNTER = 1 << 12
"""Values of the twelve bits that keep identifiers of one millisecond in order."""


class UuidGenerate:
    """Makes identifiers from the tokens of `chance` and the time of `wall`."""

    def __init__(self, wall: Callable[[], float], chance: Chance) -> None:
        self._wall = wall
        self._chance = chance

    def uuid_generate(
        self,
        version: Annotated[
            Literal["v4", "v5", "v7"],
            Field(description="v4 random, v5 from namespace and name, v7 ordered by time."),
        ] = "v4",
        count: Annotated[int, Field(ge=1, le=1000)] = 1,
        namespace: Annotated[
            str, Field(max_length=64, description="For v5: dns, url, oid, x500 or a UUID.")
        ] = "",
        name: Annotated[str, Field(max_length=2000, description="For v5.")] = "",
    ) -> dict[str, Any]:
        """Make UUIDs: random (v4), derived from a name (v5), or ordered by time (v7)."""
        if version == "v5":
            return {"uuids": [str(_derived(namespace, name, count))]}
        if namespace or name:
            raise invalid("name" if name else "namespace", f"{version} takes no namespace or name")
        made = self._by_time(count) if version == "v7" else self._random(count)
        return {"uuids": [str(one) for one in made]}

    def _random(self, count: int) -> list[uuid.UUID]:
        return [uuid.UUID(bytes=self._entropy(16), version=4) for _ in range(count)]

    def _by_time(self, count: int) -> list[uuid.UUID]:
        """Count upwards within one call, so that its identifiers sort as they were made."""
        began_ms = int(self._wall() * 1000)
        first = int.from_bytes(self._entropy(2)) % (_COUNTER // 2)
        return [self._timed(began_ms, first + place) for place in range(count)]

    def _entropy(self, size: int) -> bytes:
        return bytes.fromhex(self._chance.token(size))

    def _timed(self, time_ms: int, counter: int) -> uuid.UUID:
        time_ms += counter // _COUNTER
        tail = int.from_bytes(self._entropy(8)) & ((1 << 62) - 1)
        number = (time_ms & ((1 << 48) - 1)) << 80 | 0x7 << 76 | (counter % _COUNTER) << 64
        return uuid.UUID(int=number | 0b10 << 62 | tail)


def _derived(namespace: str, name: str, count: int) -> uuid.UUID:
    if count != 1:
        raise invalid("count", "one name has one v5 identifier: count must be 1")
    if not namespace:
        raise invalid("namespace", "v5 needs a namespace", reason="argument_missing")
    try:
        space = _NAMESPACES.get(namespace.lower()) or uuid.UUID(namespace)
    except ValueError:
        raise invalid(
            "namespace", f"namespace must be dns, url, oid, x500 or a UUID, not {shown(namespace)}"
        ) from None
    try:
        return uuid.uuid5(space, name)
    except UnicodeError:
        raise invalid("name", "name holds half of a character (a lone surrogate)") from None
