"""Coercion mode `lenient`: the outcomes of Pi's tool subsystem, value for value."""
