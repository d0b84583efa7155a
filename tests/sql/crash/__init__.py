"""A SQL server that is killed while its queries work."""
