"""Millstream streams: not built yet; importing it gives nothing."""
