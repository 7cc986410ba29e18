"""Addresses that servers of ours listen on, and the names that clients give them."""

from __future__ import annotations

import ipaddress
import socket


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
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With its protocol said, else asyncio leaves Nagle on: 40 ms for every answer in two pieces.
    found = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind((host, port))
        found.listen(backlog)
    except OSError:
        found.close()
        raise
    return found
