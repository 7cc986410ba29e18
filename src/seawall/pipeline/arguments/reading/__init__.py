"""What came in, as text or as a mapping, read as JSON of a bounded size."""
