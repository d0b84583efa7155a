"""Settings of workers and connectors: read, check, describe, hide."""
