"""Recorded calls through the real layers on a virtual clock: what another policy would do."""
