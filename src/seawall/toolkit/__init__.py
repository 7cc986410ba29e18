"""Tools that come with Seawall: `bundled()` makes a registry of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from seawall.toolkit.bundle import bundled

__all__ = ["bundled"]


def __getattr__(name: str) -> Any:
    # Loaded when asked for: one tool alone does not bring the others.
    if name != "bundled":
        raise AttributeError(f"module 'seawall.toolkit' has no attribute {name!r}")
    from seawall.toolkit.bundle import bundled  # noqa: PLC0415  # see above

    globals()[name] = bundled
    return bundled
