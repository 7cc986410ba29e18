"""What is wrong with a value that its schema refuses, found and put into words."""
