"""Runs connectors and tasks, each in a thread of its own."""
