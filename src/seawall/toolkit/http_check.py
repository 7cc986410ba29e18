"""`http_check`: whether an address answers over HTTP, without being a way into the local network.

A name is resolved once, all its addresses are checked, and the connection goes to one of those:
a name that answers otherwise the second time gains nothing. Redirects are told, never followed;
no body is read, proxies of the environment are not used.
"""

import re
import socket
import ssl
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from datetime import UTC, datetime
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Annotated, Any, Literal, NamedTuple
from urllib.parse import SplitResult, quote, urljoin, urlsplit

from pydantic import Field

from seawall.contract.errors import ConfigurationError, Fault
from seawall.contract.failure import FailureCode, ToolFailed
from seawall.policy.addresses import address_rule
from seawall.toolkit.refusal import failed, invalid, shown

Address = tuple[Any, ...]
"""What `socket.connect` takes: the numeric address, the port, and for IPv6 two numbers more."""

_MAX_URL = 2000
_MAX_HEAD = 65_536
_MAX_ADDRESSES = 3
_SHOWN_HEADERS = (
    "cache-control",
    "content-length",
    "content-type",
    "date",
    "etag",
    "last-modified",
    "retry-after",
    "server",
)


class HttpCheck:
    """Asks web servers for their status.

    `allow` opens what is refused otherwise: `host:port` as it stands in the URL, or a network such
    as `10.1.0.0/16`. `now` is a monotonic clock; `timeout_s` bounds everything after the name was
    resolved, whose time is the system resolver's.
    """

    def __init__(
        self,
        now: Callable[[], float],
        *,
        allow: Iterable[str] = (),
        timeout_s: float = 10.0,
        resolve: Callable[[str, int], Sequence[Address]] | None = None,
        trust: ssl.SSLContext | None = None,
    ) -> None:
        self._now = now
        self._allowed = _Allowed(allow)
        self._timeout_s = timeout_s
        self._resolve = resolve or _resolved
        self._trust = trust

    def http_check(
        self,
        url: Annotated[
            str,
            Field(min_length=1, max_length=_MAX_URL, description="Begins with http:// or https://"),
        ],
        method: Literal["GET", "HEAD"] = "GET",
    ) -> dict[str, Any]:
        """Check whether a web address answers: status, latency, some headers, redirect target.

        Redirects are not followed and no body is read. Addresses of private networks are refused.
        An address that does not answer is a result too, with the problem that was met.
        """
        target = _target(url)
        try:
            addresses = self._resolve(target.host, target.port)[:_MAX_ADDRESSES]
        except (OSError, UnicodeError):
            return _unreachable(url, f"the name {target.host} does not resolve")
        self._allowed.check(target, addresses)
        began = self._now()
        try:
            answer = self._ask(target, addresses, method, began + self._timeout_s)
        except OSError as error:
            return _unreachable(url, _problem(error, self._timeout_s))
        answer["latency_ms"] = round((self._now() - began) * 1000, 1)
        return {"url": url, "reachable": True, **answer}

    def _ask(
        self, target: "_Target", addresses: Sequence[Address], method: str, deadline: float
    ) -> dict[str, Any]:
        line = _Line(self._connected(addresses, deadline), lambda: deadline - self._now())
        with closing(line):
            expires = line.secure(target.host, self._context()) if target.secure else None
            line.send(target.request(method))
            status, headers = line.answer()
        return _told(target.url, status, headers) | (
            {"certificate_expires": expires} if expires else {}
        )

    def _connected(self, addresses: Sequence[Address], deadline: float) -> socket.socket:
        problem: OSError = OSError("the name has no address")
        for address in addresses:
            family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
            connection = socket.socket(family, socket.SOCK_STREAM)
            try:
                connection.settimeout(_positive(deadline - self._now()))
                connection.connect(address)
            except OSError as error:
                connection.close()
                problem = error
            else:
                return connection
        raise problem

    def _context(self) -> ssl.SSLContext:
        # Reading the system's certificates takes a while: only once, and only for https.
        if self._trust is None:
            self._trust = ssl.create_default_context()
        return self._trust


class _Target(NamedTuple):
    url: str
    secure: bool
    host: str
    port: int
    path: str

    def request(self, method: str) -> bytes:
        default = self.port == (443 if self.secure else 80)
        host = f"[{self.host}]" if ":" in self.host else self.host
        return (
            f"{method} {self.path} HTTP/1.1\r\n"
            f"Host: {host if default else f'{host}:{self.port}'}\r\n"
            "User-Agent: seawall-http-check\r\nAccept: */*\r\nConnection: close\r\n\r\n"
        ).encode("ascii")


def _target(url: str) -> _Target:
    """Read a URL strictly: what two parsers might understand differently is refused."""
    if len(url) > _MAX_URL or re.search(r"[\x00-\x20\x7f\\]", url):
        raise _bad_url("it is too long, or holds blanks, backslashes or control characters")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise _bad_url(str(error)) from None
    if parts.scheme not in ("http", "https"):
        raise _bad_url("it must begin with http:// or https://")
    if parts.username is not None or parts.password is not None:
        raise _bad_url("it must not hold a user name or password")
    secure = parts.scheme == "https"
    if port is None:
        port = 443 if secure else 80
    return _Target(url, secure, _host(parts.hostname or ""), port, _path(parts))


def _host(name: str) -> str:
    if ":" in name:
        return name
    try:
        plain = name.encode("idna").decode("ascii").lower() if len(name) <= 253 else ""
    except UnicodeError:
        plain = ""
    if not re.fullmatch(r"[a-z0-9_.-]+", plain):
        raise _bad_url("it names no valid host")
    return plain


def _path(parts: SplitResult) -> str:
    try:
        path = quote(parts.path or "/", safe="/%:@!$&'()*+,;=~-._")
        query = quote(parts.query, safe="/%:@!$&'()*+,;=~-._?")
    except UnicodeError:
        raise _bad_url("it holds half of a character") from None
    return f"{path}?{query}" if query else path


def _bad_url(why: str) -> ToolFailed:
    return invalid("url", f"url cannot be used: {why}")


def _resolved(host: str, port: int) -> Sequence[Address]:
    return [found[4] for found in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]


class _Allowed:
    """Which addresses may be asked: public ones, and what the operator opened by name."""

    def __init__(self, rules: Iterable[str]) -> None:
        self._networks = []
        self._hosts = set()
        faults = []
        for rule in rules:
            try:
                found = address_rule(rule)
            except ValueError as error:
                faults.append(Fault(str(error), key="allow"))
                continue
            if isinstance(found, tuple):
                self._hosts.add(found)
            else:
                self._networks.append(found)
        if faults:
            raise ConfigurationError(faults)

    def check(self, target: _Target, addresses: Sequence[Address]) -> None:
        """Raise the refusal if any address is off limits: names that mix are up to something."""
        if (target.host, target.port) in self._hosts:
            return
        for address in addresses:
            found = ip_address(address[0].partition("%")[0])
            if not is_public(found) and not any(found in network for network in self._networks):
                raise failed(
                    FailureCode.PERMISSION_DENIED,
                    f"{shown(target.host, 80)} is not a public address; those of private networks,"
                    " of this machine and of cloud metadata are not asked",
                    reason="address_refused",
                    may_have_run=False,
                )


_NOT_PUBLIC = tuple(
    ip_network(network)
    for network in (
        "100.64.0.0/10",  # carriers' own, and metadata of Alibaba Cloud
        "168.63.129.16/32",  # metadata of Azure, although the address is a public one
        "192.0.0.0/24",  # protocol assignments, and metadata of Oracle Cloud
        "192.88.99.0/24",  # relays into IPv6
        "64:ff9b:1::/48",  # translation into local networks
        "fec0::/10",  # site-local, given up but still routed by some
    )
)
_TRANSLATED = ip_network("64:ff9b::/96")


def is_public(address: IPv4Address | IPv6Address) -> bool:
    """Whether an address is one of the open internet, also where it carries another inside."""
    if isinstance(address, IPv6Address):
        if address in _TRANSLATED:
            return is_public(IPv4Address(int(address) & 0xFFFF_FFFF))
        if address.ipv4_mapped or address.sixtofour or address.teredo:
            # Ways around a check of IPv6 addresses; no public server is reached only by them.
            return False
    if address.is_multicast or address.is_reserved or not address.is_global:
        return False
    return not any(address in network for network in _NOT_PUBLIC)


class _Line:
    """A connection whose every step ends when the time of the whole is up."""

    def __init__(self, connection: socket.socket, left: Callable[[], float]) -> None:
        self._connection = connection
        self._left = left

    def secure(self, host: str, context: ssl.SSLContext) -> str | None:
        """Turn to TLS with the certificate checked; tells when that expires."""
        self._connection.settimeout(_positive(self._left()))
        secured = context.wrap_socket(self._connection, server_hostname=host)
        self._connection = secured
        ends = (secured.getpeercert() or {}).get("notAfter")
        if not isinstance(ends, str):
            return None
        return datetime.fromtimestamp(ssl.cert_time_to_seconds(ends), UTC).date().isoformat()

    def send(self, request: bytes) -> None:
        self._connection.settimeout(_positive(self._left()))
        self._connection.sendall(request)

    def answer(self) -> tuple[int, dict[str, str]]:
        """Read the head of the answer; interim ones (100, 103) are passed over."""
        received = b""
        while True:
            head, separator, rest = received.partition(b"\r\n\r\n")
            if separator:
                status, headers = _head(head)
                if status >= 200 or status == 101:
                    return status, headers
                received = rest
                continue
            received += self._more(_MAX_HEAD - len(received))

    def close(self) -> None:
        self._connection.close()

    def _more(self, room: int) -> bytes:
        if room <= 0:
            raise _BadAnswerError(f"the headers are larger than {_MAX_HEAD} bytes")
        self._connection.settimeout(_positive(self._left()))
        received = self._connection.recv(min(room, 8192))
        if not received:
            raise _BadAnswerError("the connection was closed before an answer came")
        return received


class _BadAnswerError(OSError):
    """The other side speaks, but not HTTP as it should."""


def _positive(left_s: float) -> float:
    if left_s <= 0:
        raise TimeoutError
    return left_s


_STATUS = re.compile(r"HTTP/[0-9](?:\.[0-9])? ([1-9][0-9]{2})(?: |\Z)")


def _head(head: bytes) -> tuple[int, dict[str, str]]:
    first, *lines = head.decode("latin-1").split("\r\n")
    found = _STATUS.match(first)
    if found is None:
        raise _BadAnswerError("what answers there is no HTTP server")
    headers: dict[str, str] = {}
    for line in lines:
        name, _, value = line.partition(":")
        headers.setdefault(name.strip().lower(), _printable(value))
    return int(found.group(1)), headers


def _printable(text: str) -> str:
    return "".join(character for character in text.strip()[:500] if character.isprintable())


def _told(url: str, status: int, headers: dict[str, str]) -> dict[str, Any]:
    told: dict[str, Any] = {
        "status": status,
        "ok": 200 <= status < 400,
        "headers": {name: headers[name] for name in _SHOWN_HEADERS if name in headers},
    }
    if 300 <= status < 400 and (location := headers.get("location")):
        told["redirect"] = _joined(url, location)
    return told


def _joined(url: str, location: str) -> str:
    try:
        return urljoin(url, location)
    except ValueError:
        return location


def _unreachable(url: str, problem: str) -> dict[str, Any]:
    return {"url": url, "reachable": False, "ok": False, "problem": problem}


def _problem(error: OSError, timeout_s: float) -> str:
    if isinstance(error, TimeoutError):
        return f"no answer within {timeout_s:g} s"
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not to be trusted: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        return f"TLS failed: {error.reason or 'the connection was cut'}".lower().replace("_", " ")
    if isinstance(error, ConnectionRefusedError):
        return "the connection was refused"
    if isinstance(error, _BadAnswerError):
        return str(error)
    return f"the connection failed: {error.strerror or error}"
