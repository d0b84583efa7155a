"""Backends: what runs a plan."""
