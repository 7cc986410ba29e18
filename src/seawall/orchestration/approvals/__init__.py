"""Calls that wait for a person, kept so that the answer may come later, and somewhere else."""
