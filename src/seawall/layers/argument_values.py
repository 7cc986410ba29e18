"""Paths, hosts and numbers in arguments, read so that nothing passes for what it is not.

Whatever two programs may read in two ways is `Unclear`: whoever asks then takes the stricter
answer. Nothing is looked up: no file system, no name server.
"""

from __future__ import annotations

import ipaddress
import math
import re
import unicodedata
from fractions import Fraction
from typing import Any, NamedTuple
from urllib.parse import urlsplit

MAX_TEXT = 8_192
"""Characters of a path or an address; what is longer is not looked at."""


class Unclear:
    """Stands for what cannot be told for sure; only the class itself is used."""


_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_PORT_ONLY = re.compile(r"[^:/?#@\[\]]+:[0-9]{1,5}(?:[/?#].*)?", re.DOTALL)
_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,99})(?:\.[0-9]{1,99})?")
_ODD_NUMBER = re.compile(r"(?:0x[0-9a-f]*|[0-9]+)(?:\.(?:0x[0-9a-f]*|[0-9]+))*")
_DEFAULT_PORTS = {"http": 80, "https": 443, "ws": 80, "wss": 443, "ftp": 21, "ssh": 22}


def exact_number(value: Any) -> Any:
    """Read a number without rounding: `0.1` is a tenth. Text must be a plain decimal number."""
    if isinstance(value, bool):
        return Unclear
    if isinstance(value, int):
        return Fraction(value)
    if isinstance(value, float):
        # As it was written: the shortest text that gives this float.
        return Fraction(repr(value)) if math.isfinite(value) else Unclear
    if isinstance(value, str) and _NUMBER.fullmatch(value):
        return Fraction(value)
    return Unclear


def path_of(value: Any) -> Any:
    """Read an absolute path as its parts; links are not followed, so `..` cannot be told."""
    if not isinstance(value, str) or not value.startswith("/") or len(value) > MAX_TEXT:
        return Unclear
    if "\\" in value or not value.isprintable():
        return Unclear
    parts = tuple(part for part in value.split("/") if part not in ("", "."))
    return Unclear if ".." in parts else parts


class PathPattern:
    """A folder with all below it."""

    def __init__(self, text: str) -> None:
        parts = path_of(text)
        if parts is Unclear:
            raise ValueError(f"is {text!r}; it takes an absolute path without `..`")
        self._parts: tuple[str, ...] = parts
        self._folded = tuple(map(_folded, parts))

    def has(self, parts: tuple[str, ...], *, strictly: bool) -> bool:
        """Whether a path is there; not strictly, also where a file system takes it to be there."""
        depth = len(self._parts)
        if strictly:
            return parts[:depth] == self._parts
        # Some ignore case, and the ways in which one letter can be written.
        return tuple(map(_folded, parts[:depth])) == self._folded


def _folded(part: str) -> str:
    return unicodedata.normalize("NFKC", part).casefold().rstrip(". ")


class Host(NamedTuple):
    """Where an address leads."""

    name: str
    """In lower case, as name servers have it; an address in its one form."""
    port: int | None
    """None: it is not said, or is the scheme's own."""
    address: ipaddress.IPv4Address | ipaddress.IPv6Address | None


def host_of(value: Any) -> Any:
    """Read the host of an address, or a host with or without a port."""
    if not isinstance(value, str) or not value or len(value) > MAX_TEXT:
        return Unclear
    # Browsers and libraries part ways over these.
    if "\\" in value or " " in value or not value.isprintable():
        return Unclear
    has_scheme = _SCHEME.match(value) is not None and not _PORT_ONLY.fullmatch(value)
    if has_scheme and "://" not in value[: value.index(":") + 3]:
        return Unclear
    try:
        parts = urlsplit(value if has_scheme or value.startswith("//") else f"//{value}")
        name, port = parts.hostname, parts.port
    except ValueError:
        return Unclear
    if not name or parts.netloc.count("@") > 1:
        return Unclear
    if port is not None and port == _DEFAULT_PORTS.get(parts.scheme.lower()):
        port = None
    return _host(name, port)


def _host(name: str, port: int | None) -> Any:
    if ":" in name or _ODD_NUMBER.fullmatch(name):
        try:
            address = ipaddress.ip_address(name)
        except ValueError:
            return Unclear  # a number that some read as an address, or a zone
        if isinstance(address, ipaddress.IPv6Address):
            if address.scope_id is not None:
                return Unclear
            address = address.ipv4_mapped or address
        return Host(str(address), port, address)
    plain = _ascii(name)
    return Unclear if plain is None else Host(plain, port, None)


def _ascii(name: str) -> str | None:
    """Write a name as name servers have it; None for what is no name."""
    name = name.removesuffix(".").lower()
    try:
        plain = name if name.isascii() else name.encode("idna").decode("ascii").lower()
    except UnicodeError:
        return None
    labels = plain.split(".")
    if len(plain) > 253 or not all(map(_LABEL.fullmatch, labels)):
        return None
    return None if labels[-1].isdigit() or labels[-1].startswith("0x") else plain


class HostPattern:
    """A host, all below one (`*.example.org`), an address, or a range of addresses."""

    def __init__(self, text: str) -> None:
        self._range = _range(text)
        self._below = text.startswith("*.")
        self._host: Host | None = None
        if self._range is None:
            found = host_of(text.removeprefix("*."))
            if found is Unclear or "/" in text or "@" in text:
                said = "it takes a host, *.host, host:port, or a range such as 10.0.0.0/8"
                raise ValueError(f"is {text!r}; {said}")
            self._host = found

    def has(self, host: Host, *, strictly: bool) -> bool:
        """Whether a host is meant; strictly, only its usual port where the pattern has none."""
        if self._range is not None:
            return host.address is not None and host.address in self._range
        wanted = self._host
        if wanted is None or not self._is_named(host.name, wanted.name):
            return False
        if wanted.port is not None:
            return host.port == wanted.port or (host.port is None and not strictly)
        return host.port is None or not strictly

    def _is_named(self, name: str, wanted: str) -> bool:
        return name.endswith(f".{wanted}") if self._below else name == wanted


def _range(text: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    if "/" not in text:
        return None
    try:
        return ipaddress.ip_network(text)
    except ValueError as error:
        raise ValueError(f"is {text!r}, which is no range of addresses: {error}") from None
