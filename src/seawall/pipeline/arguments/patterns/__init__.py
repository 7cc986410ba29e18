"""The regular expressions of schemas: read as JavaScript has them, and run within bounds."""
