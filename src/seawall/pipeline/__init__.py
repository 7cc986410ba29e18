"""How layers fit together, and what they ask for: time, chance, state."""
