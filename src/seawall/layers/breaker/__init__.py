"""Leave a tool alone that keeps failing, and find out when it works again."""

from seawall.layers.breaker.breaker import Breaker
from seawall.layers.breaker.circuit import Circuit

__all__ = ["Breaker", "Circuit"]
