"""Millstream sql: not built yet; importing it gives nothing."""
