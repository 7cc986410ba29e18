"""The outside world: the only place with web, agent and command-line frameworks."""
