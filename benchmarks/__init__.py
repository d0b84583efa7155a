"""Measurements: `python -m benchmarks broker`."""
