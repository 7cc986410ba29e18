"""One file per layer; none knows another."""
