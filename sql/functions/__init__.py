"""The functions of SQL: one module for each family, all in one registry."""
