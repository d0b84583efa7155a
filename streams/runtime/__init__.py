"""Runs a topology: tasks, runners, commits. Independent of the operators and the DSL."""
