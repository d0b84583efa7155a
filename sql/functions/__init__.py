"""SQL functions: one module per family, combined in one registry."""
