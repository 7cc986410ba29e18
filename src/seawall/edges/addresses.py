"""Addresses that servers of ours listen on, and the names that clients give them."""

from __future__ import annotations

import ipaddress
import socket

LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})
"""Names of this machine that no page of another site can make point here."""


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def without_port(host: str) -> str:
    """Give the name in a `Host`."""
    name, colon, port = host.rpartition(":")
    return name if colon and port.isdigit() else host


def listen(host: str, port: int, backlog: int) -> socket.socket:
    """Open an address; raises `OSError` if it cannot be had."""
    found = bind(host, port)
    try:
        found.listen(backlog)
    except OSError:
        found.close()
        raise
    return found


def bind(host: str, port: int, *, shared: bool = False) -> socket.socket:
    """Take an address without listening yet; raises `OSError` if it cannot be had.

    A shared one may be taken again by processes of the same user that share it too: the system
    spreads connections over those that listen. One socket that several processes inherit does not:
    whichever wakes first takes all connections that wait, and so mostly one takes all.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With its protocol said, else asyncio leaves Nagle on: 40 ms for every answer in two pieces.
    found = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if shared:
            found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        found.bind((host, port))
    except OSError:
        found.close()
        raise
    return found


class HeldAddress:
    """An address for processes that share it; no others may have it while this is open.

    Nothing listens here: whoever serves takes the address for itself. For Linux, as other systems
    do not spread connections. Raises `OSError` if it cannot be had.
    """

    def __init__(self, host: str, port: int) -> None:
        # Whoever shares an address may take it without asking. So it is tried unshared first, and
        # two groups of processes that try at once are kept apart by a name: one of them gets it.
        with listen(host, port, 1) as found:
            self.host, self.port = found.getsockname()[:2]
        self._name = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            self._name.bind(f"\0seawall/{self.host}/{self.port}")
            listen(self.host, self.port, 1).close()
            self._held = bind(self.host, self.port, shared=True)
        except OSError:
            self._name.close()
            raise

    def close(self) -> None:
        """Give it back; in a process that was forked, only to the one that it was forked from."""
        self._held.close()
        self._name.close()
