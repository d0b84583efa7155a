"""Syntax trees of statements and expressions, before names and types are resolved."""
