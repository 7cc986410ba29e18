"""Bound how often a tool is called."""

from seawall.layers.rate_limit.rate_limit import RateLimit

__all__ = ["RateLimit"]
