"""The engine: statements executed, queries running."""
