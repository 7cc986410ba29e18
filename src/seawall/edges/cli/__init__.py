"""The command line: `seawall demo`, `seawall tools`, `seawall call`."""

from __future__ import annotations


def main() -> None:
    """Run the command that the program's arguments name, and exit with its code."""
    from seawall.edges.cli.app import run  # noqa: PLC0415  # nothing is loaded before it is needed

    run()
