"""Benchmarks: ratios measured in one run, never absolute times. `python -m tests.bench`."""
