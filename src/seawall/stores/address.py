"""The address of a state: one URL."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

import msgspec

from seawall.contract.errors import ConfigurationError

_POSTGRES = ("postgresql", "postgres", "postgresql+asyncpg")
_FORMS = "sqlite:///state.db, postgresql://user@host/name, or memory:"


class Address(msgspec.Struct, frozen=True, kw_only=True):
    """A URL that was read."""

    kind: str
    """`memory`, `sqlite` or `postgresql`."""
    shown: str
    """The URL without what is secret in it."""
    path: Path | None = None
    """The file of an SQLite state."""
    url: str = ""
    """What SQLAlchemy is given; holds the password."""

    def __repr__(self) -> str:
        return f"Address({self.shown!r})"


def address_of(url: str | None) -> Address:
    """Read a URL; raises `ConfigurationError` if it is none that a state can have."""
    if url is None or url in ("memory:", "memory://"):
        return Address(kind="memory", shown="memory:")
    scheme, colon, _ = url.partition(":")
    if colon and scheme in ("sqlite", "sqlite+aiosqlite"):
        return _sqlite(url)
    if colon and scheme in _POSTGRES:
        return _postgres(url)
    known = f"{scheme}:…" if colon and re.fullmatch(r"[\w+.-]{1,40}", scheme) else "this text"
    raise ConfigurationError(f"{known} is no address of a state; use {_FORMS}")


def _sqlite(url: str) -> Address:
    found = re.fullmatch(r"sqlite(?:\+aiosqlite)?:///(?P<path>[^?#]+)", url)
    if found is None or unquote(found["path"]) == ":memory:":
        raise ConfigurationError(
            "an SQLite state is a file: sqlite:///state.db, or sqlite:////var/lib/agent/state.db"
            " for a path from the root; without a file use memory:"
        )
    # The path is made whole once: a program may change its folder later.
    path = Path(unquote(found["path"])).expanduser().absolute()
    return Address(kind="sqlite", shown=f"sqlite:///{path}", path=path)


def _postgres(url: str) -> Address:
    try:
        parts = urlsplit(url)
        port = f":{parts.port}" if parts.port is not None else ""
    except ValueError as error:
        raise ConfigurationError(
            "the PostgreSQL address of the state cannot be read: write postgresql://user@host:5432/name"
        ) from error
    if not parts.path.strip("/"):
        raise ConfigurationError(
            "the PostgreSQL address of the state names no database: write postgresql://user@host/name"
        )
    user, at, host = parts.netloc.rpartition("@")
    name = user.partition(":")[0]
    place = host if port and host.endswith(port) else f"{host}{port}"
    query = urlencode([_known(*pair) for pair in parse_qsl(parts.query, keep_blank_values=True)])
    return Address(
        kind="postgresql",
        shown=f"postgresql://{name}{at}{place}{parts.path}",
        url=f"postgresql+asyncpg://{parts.netloc}{parts.path}{'?' if query else ''}{query}",
    )


def _known(key: str, value: str) -> tuple[str, str]:
    """Name a setting as the driver knows it: what libpq calls `sslmode` is its `ssl`."""
    return ("ssl", value) if key == "sslmode" else (key, value)
