"""The shell: statements typed or read from files, and their answers as tables."""
