"""Millstream connect: not built yet; importing it gives nothing."""
