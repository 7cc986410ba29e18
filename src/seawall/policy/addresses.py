"""Addresses that an operator opens: `host:port` as it stands in a URL, or a network."""

from __future__ import annotations

from ipaddress import IPv4Network, IPv6Network, ip_network

Network = IPv4Network | IPv6Network


def address_rule(rule: str) -> Network | tuple[str, int]:
    """Read a network such as `10.1.0.0/16`, or a host and its port; `ValueError` for others."""
    try:
        return ip_network(rule, strict=False)
    except ValueError:
        host, _, port = rule.rpartition(":")
        if host and port.isascii() and port.isdecimal() and 0 < int(port[:6]) < 65_536:
            return host.strip("[]").lower(), int(port)
    raise ValueError(
        f"{rule!r} is neither host:port nor a network; write internal:8080 or 10.1.0.0/16"
    )
