"""The engine: executes statements and runs queries."""
