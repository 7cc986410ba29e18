"""Which tools there are."""
