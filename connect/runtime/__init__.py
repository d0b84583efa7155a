"""Runs connectors and tasks, each in its own thread."""
