"""Whether memory stays flat however long a pipeline runs."""
