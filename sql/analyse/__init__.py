"""Analysis of statements: resolves names and determines types."""
