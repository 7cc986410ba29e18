"""Random schemas and arguments: nothing escapes, nothing takes long. `python -m tests.fuzz`."""
