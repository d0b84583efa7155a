"""Benchmarks: `python -m benchmarks broker`."""
