"""The address of a Redis or Valkey: one server, Sentinels, or a cluster."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

import msgspec

from seawall.contract.errors import ConfigurationError

_FORMS = (
    "redis://host:6379/0, rediss://…, redis+unix:///path/to/socket,"
    " redis+sentinel://host:26379,other:26379/service, or redis+cluster://host:7000,other:7000;"
    " valkey in place of redis is fine"
)
_SCHEMES = re.compile(r"(?:redis|valkey)(?P<secure>s)?(?P<how>\+(?:unix|sentinel|cluster))?")
_LISTED = re.compile(r"[\w.-]+:\d{1,5}(?:,[\w.-]+:\d{1,5})*|\[[\da-fA-F:]+\]:\d{1,5}")


class RedisAddress(msgspec.Struct, frozen=True, kw_only=True):
    """A URL that was read."""

    url: str
    """As `limits` and redis-py read it; may hold a password."""
    shown: str
    """The URL without user, password and settings."""
    how: str
    """`one`, `unix`, `sentinel` or `cluster`."""

    def __repr__(self) -> str:
        return f"RedisAddress({self.shown!r})"


def redis_address(url: str) -> RedisAddress:
    """Read a URL; raises `ConfigurationError`, which shows nothing secret, if it is none."""
    scheme, colon, rest = url.partition("://")
    found = _SCHEMES.fullmatch(scheme) if colon else None
    how = ((found["how"] if found else "") or "+one")[1:]
    if found is None or (found["secure"] and how != "one"):
        known = f"{scheme}:…" if colon and re.fullmatch(r"[\w+.-]{1,40}", scheme) else "this text"
        raise ConfigurationError(f"{known} is no address of a shared store; use {_FORMS}")
    # A server of either make answers the same client.
    client = f"redis{found['secure'] or ''}{found['how'] or ''}"
    authority, slash, path = rest.partition("/")
    host = authority.rpartition("@")[2]
    path = path.partition("?")[0].partition("#")[0]
    fault = _fault(how, host, path, url)
    if fault:
        raise ConfigurationError(f"the address of the shared store {fault}; use {_FORMS}")
    return RedisAddress(
        url=f"{client}://{rest}", shown=f"{scheme}://{host.partition('?')[0]}{slash}{path}", how=how
    )


def _fault(how: str, host: str, path: str, url: str) -> str:
    """Say what is wrong with what is behind the scheme; empty if nothing is."""
    if how == "unix":
        return "" if path else "names no socket"
    if how in ("sentinel", "cluster"):
        if not _LISTED.fullmatch(host):
            return "needs each server as host:port, with commas between them"
        return "names no service behind the Sentinels" if how == "sentinel" and not path else ""
    try:
        parts = urlsplit(url)
        fine = bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        fine = False
    return "" if fine and re.fullmatch(r"\d*", path) else "cannot be read"
