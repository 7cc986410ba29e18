"""What a server that the proxy starts gets of our environment: all but what is ours alone.

A server is not trusted. With the key of our state, or the token of our gateway, it could approve
its own calls.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

OWN = "SEAWALL"
"""How names begin that are ours."""

POSTGRES = ("PGPASSWORD", "PGPASSFILE", "PGSERVICE", "PGSERVICEFILE", "PGSSLKEY", "PGSSLPASSWORD")
"""What opens a state in PostgreSQL beside its address."""

SHORTEST = 12
"""A shorter value is no secret that could be told from a word."""


def for_servers(
    environment: Mapping[str, str], told: Iterable[str | None], own: Iterable[str | None] = ()
) -> dict[str, str]:
    """Give the environment of a server.

    `told` are addresses and secrets that we were given: what repeats one of them under another name
    is left out too. `own` are further names that are ours.
    """
    given = [text for text in told if text]
    ours = {name.upper() for name in own if name}
    if any(text.startswith("postgres") for text in given):
        ours |= {*POSTGRES}
    values = [value for name, value in environment.items() if _is_own(name, ours)]
    whole, within = _secrets((*given, *values))
    return {
        name: value
        for name, value in environment.items()
        if not _is_own(name, ours)
        and value not in whole
        and not any(part in value for part in within)
    }


def _is_own(name: str, ours: set[str]) -> bool:
    upper = name.upper()
    return upper == OWN or upper.startswith(f"{OWN}_") or upper in ours


def _secrets(texts: Iterable[str]) -> tuple[set[str], set[str]]:
    """What a value must not be, and what it must not hold: passwords stand in addresses."""
    whole: set[str] = set()
    within: set[str] = set()
    for text in texts:
        password = _password_in(text)
        if password:
            within.add(f":{password}@")
        whole |= {each for each in (text, password, unquote(password)) if len(each) >= SHORTEST}
    return whole, within


def _password_in(text: str) -> str:
    """The password of an address, as it is written there."""
    try:
        return urlsplit(text).password or ""
    except ValueError:
        return ""
