"""Runs a topology: tasks, runners, commits. Knows no operator and no DSL."""
