"""Backends: run plans."""
