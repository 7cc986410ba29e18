"""The front door and what an agent does with many calls."""
