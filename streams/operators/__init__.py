"""Operators: the code of every DSL operation, which tasks run."""
