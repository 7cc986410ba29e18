"""Kill whoever runs what was approved, at every step of the way, and see what is left."""
