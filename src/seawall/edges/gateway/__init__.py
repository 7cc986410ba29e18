"""Tools over HTTP: one gateway in front of a pipeline, and the console to look at it."""
