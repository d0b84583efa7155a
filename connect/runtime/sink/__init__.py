"""Sink tasks: consume, convert, transform, put, and commit what the task has delivered."""
