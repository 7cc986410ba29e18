"""What is passed around: frozen values without I/O."""
