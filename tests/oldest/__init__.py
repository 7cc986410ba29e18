"""The adapters' tests on the oldest version of each framework that an extra claims."""
