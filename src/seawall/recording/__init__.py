"""Listeners to calls: spans, usage, metrics. One that fails harms no call."""
