"""Connectors compared with hand-written loops that use the same driver."""
