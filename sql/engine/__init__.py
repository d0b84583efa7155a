"""The engine: statements carried out, queries running."""
