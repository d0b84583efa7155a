"""Aggregates, windows and suppress, run by the test driver."""
