"""Sink tasks: consume, convert, transform, put, and commit offsets."""
