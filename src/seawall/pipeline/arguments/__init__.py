"""From what a model sent to arguments a tool can trust: read, mend, check, explain."""
