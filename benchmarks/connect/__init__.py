"""Connectors beside handwritten loops with the same driver."""
